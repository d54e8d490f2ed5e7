"""A comparison as a page: every line, the trade-off and the pairs.

Shown are the pairs with the line that was asked for, with popularity, and of each
method with itself without privacy; each pair once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

from tacit.experiment.comparison import Comparison, Line
from tacit.experiment.comparison_verdict import verdict_of
from tacit.release import Standing
from tacit.reporting.interval_plot import Point
from tacit.reporting.pairs import Paired, each_once
from tacit.reporting.plain_words import is_a_promise
from tacit.reporting.report_data import (
    Contender,
    Costs,
    Estimate,
    Lead,
    Report,
    Tradeoff,
)

_POPULARITY = "popularity"


def comparison_of(found: Comparison, *, against: str, command: str) -> Report:
    """What `tacit compare` shows; the pairs with the line `against` come first."""
    first = found.lines[0].evaluations[0]  # all lines have the same users
    shown = (("test impressions per seed", f"{len(first):,}"),)
    return Report(
        title=f"Comparison on {found.source}",
        command=command,
        simulation=True,
        could_be_released=found.could_be_released,
        lead=(_epsilons(found), _users(found)),
        facts=(
            ("data", found.source),
            ("protocol", first.protocol),
            ("seeds", ", ".join(map(str, found.seeds))),
            ("noise draws per seed", str(found.draws)),
            *(shown if first.per == "impression" else ()),
        ),
        comparison=tuple(_contestant(line) for line in found.lines),
        tradeoff=_tradeoff(found),
        differences=_pairs(found, against),
        verdict=verdict_of(found),
        costs=tuple(Costs(line.label, **asdict(line.cost)) for line in found.lines),
    )


def _pairs(found: Comparison, against: str) -> tuple[Paired, ...]:
    labels = {line.label for line in found.lines}
    references = [against, *(name for name in (_POPULARITY,) if name in labels)]
    shown = [pair for label in references for pair in found.pairs_with(label)]
    return each_once([*shown, *_with_no_privacy(found)])


def _with_no_privacy(found: Comparison) -> Iterator[Paired]:
    """Every private line beside the same method without privacy."""
    bare = {line.name: line.label for line in found.lines if line.target == math.inf}
    for line in found.lines:
        if line.name in bare and line.label != bare[line.name]:
            yield from found.pair(line.label, bare[line.name])


def _epsilons(found: Comparison) -> Lead:
    """The epsilons that are compared, each proven for what a model shows."""
    known = {line.epsilon for line in found.lines if line.provable is not None}
    figures = sorted(epsilon for epsilon in known if epsilon is not None)
    if not figures:
        return Lead("epsilon", "none", "Nothing here promises anything to anyone.")
    listed = ", ".join(f"{epsilon:g}" for epsilon in figures)
    rest = sum(line.provable is None for line in found.lines)
    worth = Standing.lowest(line.standing for line in found.lines if line.provable)
    detail = (
        f"{worth.capitalize()} for a user's whole history, against everyone who sees "
        "the model."
    )
    if rest:
        detail += f" {rest} lines promise nothing and are there to compare with."
    return Lead("epsilons compared", listed, detail, is_a_promise(figures[-1]))


def _users(found: Comparison) -> Lead:
    first, n = found.lines[0].evaluations[0], len(found.seeds)
    detail = f"Held out in each of {n} splits of {found.source}; none of them trained."
    if n == 1:
        detail = f"Held out in one split of {found.source}; none of them trained."
    return Lead("test users", f"{first.n_users:,}", detail)


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
    return Contender(
        line.label,
        _pooled(line),
        is_this_run=not line.is_baseline,
        epsilon=line.provable,
    )


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
