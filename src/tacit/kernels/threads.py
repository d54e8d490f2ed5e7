"""Kernels that run on all cores where that is safe, and on one where it is not.

numba's thread pools do not survive a fork: GNU OpenMP ends the child, and the queue of
numba's own has no threads there. Its own queue also ends the process when two threads
use it at once. So a kernel has two forms, compiled from the same lines; each iteration
is independent of the others, so both give the same bits. Why not another way:
docs/decisions/kernel_threads.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any

from numba import njit

_pool = threading.Lock()  # held by the thread that uses numba's pool
_is_forked = False  # whether the pool, if there is one, was left behind by a fork


def _after_fork() -> None:
    global _is_forked
    _is_forked = True


os.register_at_fork(after_in_child=_after_fork)


def parallel(**options: Any) -> Callable[[Any], Parallel]:
    """Compile a function whose `prange` loops may run on all cores."""
    return lambda function: Parallel(function, options)


class Parallel:
    """A kernel on all cores, or on one: after a fork, or while another one runs.

    Whoever finds the pool in use does not wait: other threads keep the cores busy.
    """

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        # `nogil`: whoever waits for this thread with a deadline must be able to wake.
        self.on_all = njit(cache=True, parallel=True, nogil=True, **options)(function)
        # Without locks: several threads may each run their own.
        one = njit(cache=True, nogil=True, **options)
        self.on_one = one(_named(function, f"{function.__qualname__}_on_one"))

    def __call__(self, *arguments: Any) -> Any:
        """The kernel's result, the same bits whichever form runs."""
        if _is_forked or not _pool.acquire(blocking=False):
            return self.on_one(*arguments)
        try:
            return self.on_all(*arguments)
        finally:
            _pool.release()


def _named(function: FunctionType, name: str) -> FunctionType:
    """The same function under another name, by which numba's cache tells them apart."""
    code = function.__code__.replace(co_name=name.rpartition(".")[2], co_qualname=name)
    twin = FunctionType(
        code, function.__globals__, code.co_name, closure=function.__closure__
    )
    twin.__module__, twin.__qualname__ = function.__module__, name
    return twin
