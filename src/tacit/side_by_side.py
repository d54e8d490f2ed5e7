"""A function over a few large pieces of work, side by side on all cores.

For work that leaves the interpreter's lock alone: compiled kernels, numpy on large
arrays. The calling thread works too, so two cores need one new thread and not two. A
pool that is kept would save that one as well, and would be dead after a fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The function of every item, in their order.

    If some fail, all others are still finished; the first failure in order is raised.

    >>> side_by_side(len, ["a", "bcd"])
    [1, 3]
    """
    made: dict[int, R] = {}
    failed: dict[int, BaseException] = {}
    numbers = count()

    def work() -> None:
        for number in numbers:
            if number >= len(items):
                return
            try:
                made[number] = function(items[number])
            except BaseException as error:  # to be raised where it was asked for
                failed[number] = error

    n_others = min(os.cpu_count() or 1, len(items)) - 1
    others = [threading.Thread(target=work) for _ in range(n_others)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    if failed:
        raise failed[min(failed)]
    return [made[number] for number in range(len(items))]
