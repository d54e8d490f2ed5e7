"""Figures as coarse as an operator may see them: they tell of a crowd, not of anybody.

A count that grows with every report is shown down to the next 50, and not at all below
the least number of reports of a round. Whoever looks again a moment later learns
nothing of one report, then. For the same reason times are whole hours, and the queue
has steps of at least 50 of the largest reports that are taken.
"""

from __future__ import annotations

from collections.abc import Sequence

STEP = 50  # reports, refusals or batches
HOUR = 3600
QUEUE_STEP = 16 * 2**20  # bytes at the least
DISK_STEP = 256 * 2**20
_KEPT = 200  # durations; an aggregator remembers 256


def floored(count: int | None, least: int, *, step: int = STEP) -> int | None:
    """A count as operators see it: down to the next 50, hidden below the minimum.

    >>> floored(1234, 1000), floored(999, 1000)
    (1200, None)
    """
    return None if count is None or count < least else down_to(step, count)


def queue_step(largest: int) -> int:
    """The step of a queue in bytes, for reports of at most so many bytes.

    Whole multiples of the least step: 50 reports of the largest fit into one.

    >>> queue_step(2804) // 2**20, queue_step(2**25) // 2**20
    (16, 1600)
    """
    return QUEUE_STEP * max(1, -(-STEP * largest // QUEUE_STEP))


def down_to(step: int, value: float) -> int:
    """The largest multiple of `step` that is not above the value.

    >>> down_to(3600, 7300.5)
    7200
    """
    return int(value // step) * step


def quantiles(seconds: Sequence[float], count: int) -> tuple[float, float] | None:
    """The median and the 99th percentile of the last durations of so many.

    Those after the last full 50 are left out, and of the others the last 200 count, so
    that neither figure moves with one more. None until there are 50.

    >>> quantiles([0.1] * 60 + [9.0] * 7, count=107)
    (0.1, 0.1)
    """
    whole = sorted(seconds[: len(seconds) - count % STEP][-_KEPT:])
    if not whole:
        return None
    return whole[len(whole) // 2], whole[min(len(whole) - 1, len(whole) * 99 // 100)]
