"""A comparison as a page: every line, the trade-off and the paired differences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict

from tacit.evaluation.significance import Difference
from tacit.experiment.comparison import Comparison, Line
from tacit.experiment.comparison_verdict import verdict_of
from tacit.reporting.interval_plot import Point
from tacit.reporting.report_data import (
    Contender,
    Costs,
    Estimate,
    Paired,
    Report,
    Tradeoff,
)


def comparison_of(
    found: Comparison,
    differences: Mapping[str, Mapping[str, Difference]],
    *,
    against: str,
    command: str,
) -> Report:
    """What `tacit compare` shows; `differences` are those to the line `against`."""
    first = found.lines[0].evaluations[0]  # all lines have the same users
    shown = (("test impressions per seed", f"{len(first):,}"),)
    return Report(
        title=f"Comparison on {found.source}",
        command=command,
        simulation=True,
        facts=(
            ("data", found.source),
            ("protocol", first.protocol),
            ("seeds", ", ".join(map(str, found.seeds))),
            ("noise draws per seed", str(found.draws)),
            ("test users per seed", f"{first.n_users:,}"),
            *(shown if first.per == "impression" else ()),
        ),
        comparison=tuple(_contestant(line) for line in found.lines),
        tradeoff=_tradeoff(found),
        differences=tuple(
            Paired(label, against, metric, d.mean, d.low, d.high, d.p_value)
            for label, by_metric in differences.items()
            for metric, d in by_metric.items()
        ),
        verdict=verdict_of(found),
        costs=tuple(Costs(line.label, **asdict(line.cost)) for line in found.lines),
    )


def points_of(found: Comparison) -> list[Point]:
    """The first metric of every line, those of a method by epsilon.

    The error is the larger of that over users and that over seeds.
    """
    metric = next(iter(found.lines[0].evaluations[0].values))
    names = list(dict.fromkeys(line.name for line in found.lines))
    ordered = sorted(
        found.lines, key=lambda x: (names.index(x.name), x.epsilon or math.inf)
    )
    points = []
    for line in ordered:
        pooled = line.pooled()[metric]
        errors = [e for e in (pooled.se_users, pooled.se_seeds) if e is not None]
        is_named = line.provable is not None and line.target is not None
        points.append(
            Point(
                line.name if is_named else line.label,
                line.epsilon if line.provable is not None else None,
                pooled.mean,
                max(errors, default=None),
            )
        )
    return points


def _contestant(line: Line) -> Contender:
    return Contender(line.label, _pooled(line), is_this_run=not line.is_baseline)


def _pooled(line: Line) -> dict[str, Estimate]:
    documents = {name: p.to_json() for name, p in line.pooled().items()}
    return {name: Estimate(p["mean"], p["se"]) for name, p in documents.items()}


def _tradeoff(found: Comparison) -> Tradeoff | None:
    """The first metric over epsilon, if anything has one."""
    metric = next(iter(found.lines[0].pooled()))
    series: dict[str, list[tuple[float, Estimate]]] = {}
    references = {}
    for line in found.lines:
        value = _pooled(line)[metric]
        if line.provable is None:
            references[line.label] = value
        else:
            series.setdefault(line.name, []).append((line.epsilon or 0.0, value))
    if not series:
        return None
    lines = {name: tuple(points) for name, points in series.items()}
    return Tradeoff(metric, lines, references)
