"""Times that can be compared: interleaved in one process, the minimum of many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

Run = Callable[[], Any]

FEWEST_REPEATS = 7
REST = 0.2  # seconds; idle threads of the one before spin for a while, then sleep
_is_smoke = False


@contextmanager
def smoke() -> Iterator[None]:
    """Inside, everything is timed once: it shows what runs, not how fast."""
    global _is_smoke
    _is_smoke = True
    try:
        yield
    finally:
        _is_smoke = False


def fastest(runs: Mapping[str, Run], *, repeats: int = 9) -> dict[str, float]:
    """The shortest time of each, in seconds; all take turns, after one turn unmeasured.

    A machine's speed varies within minutes. Taking turns lets all meet the same moods,
    and the minimum is what each does when nobody else is in the way.
    """
    if repeats < FEWEST_REPEATS:
        raise ValueError(f"repeats={repeats} must be >= {FEWEST_REPEATS}")
    if _is_smoke:
        return {name: seconds(run) for name, run in runs.items()}
    for run in runs.values():
        run()
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            time.sleep(REST)
            best[name] = min(best[name], seconds(run))
    return best


def fastest_each(
    runs: Mapping[str, Callable[[int], Any]], n: int, *, repeats: int = 9
) -> dict[str, float]:
    """For short runs: the mean over 0 … n - 1 of the shortest time of each.

    All n of one come before all n of the other: what changes hands are whole thread
    pools, which takes longer than a short run. A first run of each turn wakes them and
    is not timed.
    """
    best = {name: np.full(n, np.inf) for name in runs}

    def turn(name: str) -> None:
        runs[name](0)
        for i in range(n):
            took = seconds(partial(runs[name], i))
            best[name][i] = min(best[name][i], took)

    fastest({name: partial(turn, name) for name in runs}, repeats=repeats)
    return {name: float(times.mean()) for name, times in best.items()}


def seconds(run: Run) -> float:
    """How long one run takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


class Sgemm:
    """A 1024³ matrix product in single precision: how fast the machine is just now."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._a, self._b = rng.random((2, 1024, 1024), np.float32)
        self._out = np.empty_like(self._a)
        self.gflops: list[float] = []

    def take(self, *, repeats: int = FEWEST_REPEATS) -> float:
        """The best of some products, in billions of operations a second."""
        best = fastest({"sgemm": self._multiply}, repeats=repeats)["sgemm"]
        self.gflops.append(2 * 1024**3 / best / 1e9)
        return self.gflops[-1]

    def _multiply(self) -> None:
        np.matmul(self._a, self._b, out=self._out)
