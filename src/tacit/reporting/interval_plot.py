"""Means with their intervals as a plot of characters, one row per contender."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.reporting.tables import MISSING, Table

_WIDTH = 20  # characters of the plot
_DEVIATIONS = 1.96  # of a 95 % interval


@dataclass(frozen=True)
class Point:
    """The mean of a contender at an epsilon; None where nothing is proven."""

    name: str
    epsilon: float | None
    mean: float
    se: float | None

    @property
    def low(self) -> float:
        """The lower end of the interval, or the mean itself where there is none."""
        return self.mean - _DEVIATIONS * (self.se or 0.0)

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.mean + _DEVIATIONS * (self.se or 0.0)


def interval_plot(points: Sequence[Point], metric: str) -> Table:
    """A table whose last column draws the intervals on one scale."""
    least, most = min(p.low for p in points), max(p.high for p in points)
    rows = tuple(
        (
            point.name,
            MISSING if point.epsilon is None else f"{point.epsilon:g}",
            f"{point.mean:.4f}",
            _drawn(point, least, most),
        )
        for point in points
    )
    header = ("contender", "epsilon", metric, f"{least:.4f} to {most:.4f}")
    return Table(
        f"{metric} by epsilon, each with its own 95 % interval",
        header,
        rows,
        frozenset({1, 2}),
    )


def _drawn(point: Point, least: float, most: float) -> str:
    """Such as `····├──●──┤·····`: dots instead of blanks, so that it is one word."""
    span = most - least or 1.0

    def place(value: float) -> int:
        return round((_WIDTH - 1) * (value - least) / span)

    drawn = ["·"] * _WIDTH
    low, middle, high = place(point.low), place(point.mean), place(point.high)
    drawn[low : high + 1] = ["─"] * (high + 1 - low)
    drawn[low], drawn[high] = "├", "┤"
    drawn[middle] = "●"
    return "".join(drawn)
