"""What is read off a curve: where it ends, how fast it rises, how steadily."""

from __future__ import annotations

from collections.abc import Iterator

from tacit.reproduction.fedvae.trials import Curve
from tacit.reproduction.tables import Line
from tacit.results import Evaluation, Metric


def last(curve: Curve) -> Evaluation:
    """After the last epoch."""
    return curve[max(curve)]


def means(curve: Curve, metric: str) -> dict[int, float]:
    """The mean over people at every epoch looked at."""
    return {epoch: found.mean for epoch, found in _metrics(curve, metric)}


def epochs_to(curve: Curve, metric: str, level: float) -> int | None:
    """The first epoch looked at with at least this mean; None if there is none."""
    found = means(curve, metric).items()
    return next((epoch for epoch, mean in found if mean >= level), None)


def largest_drop(curve: Curve, metric: str) -> float:
    """How far the mean falls below its best so far, at the worst."""
    best, drop = 0.0, 0.0
    for mean in means(curve, metric).values():
        best = max(best, mean)
        drop = max(drop, best - mean)
    return drop


def line(curve: Curve, metric: str) -> Line:
    """A line of a chart."""
    found = dict(_metrics(curve, metric))
    return Line(
        tuple(map(float, found)),
        tuple(one.mean for one in found.values()),
        tuple(one.se or 0.0 for one in found.values()),
    )


def _metrics(curve: Curve, metric: str) -> Iterator[tuple[int, Metric]]:
    return ((epoch, Metric.of(curve[epoch].values[metric])) for epoch in sorted(curve))
