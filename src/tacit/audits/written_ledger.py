"""The ledger.json of a run against the account of each of the plan's groups.

    groups   the ledger has the lines of every group of the plan, and of no other
    figures  a group's lines lie between what its own client has spent at the least,
             with as many participations as the ledger says, and what all rounds cost

Another group's figure, a line that is missing, and "nothing was said" after a round
are found so. Nothing is drawn: an honest run never fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tacit.audits.checks import Check
from tacit.ledger.snapshot import dearest_rounds
from tacit.ledger.terms import Terms
from tacit.release import CELLS, CellName, stretches
from tacit.runtime.ledger import run_statements
from tacit.statement import Statement

_SAME = 1e-9  # what rounding may change, relatively

Figures = dict[CellName, float | None]


def check_written(
    terms: Sequence[Terms], document: Mapping[str, Any], *, delta: float | None
) -> Iterator[Check]:
    """Every check of a run's ledger; `terms` are what the clients of a group agree to.

    `document` is what stands in ledger.json, of a run in which a round has begun.
    """
    spent = [Statement.from_json(line) for line in document["spent"]]
    yield _check_groups(terms, spent)
    begun, most = int(document["rounds_begun"]), int(document["most_participations"])
    gaps = dict(one for own in terms for one in _gaps(own, spent, begun, most, delta))
    if not gaps:  # no line of any group: the check above has failed
        return
    worst = max(gaps, key=lambda line: gaps[line])
    yield Check.at_most(
        "share by which a line of the ledger is off its group's own account",
        gaps[worst],
        claimed=0.0,
        slack=_SAME,
        detail=f"{len(gaps)} lines, for {most} participations in {begun} rounds; "
        f"largest: {worst}",
    )


def _check_groups(terms: Sequence[Terms], spent: Sequence[Statement]) -> Check:
    wanted = [(own.group, (unit, view)) for own in terms for unit, view in CELLS]
    found = [(line.group, (line.unit, line.view)) for line in spent]
    wrong = [f"no line of {_named(one)}" for one in wanted if one not in found]
    wrong += [f"a foreign line of {_named(one)}" for one in found if one not in wanted]
    wrong += [f"{_named(one)} twice" for one in {*found} if found.count(one) > 1]
    return Check.at_most(
        "lines of the ledger that are missing, foreign or there twice",
        float(len(wrong)),
        claimed=0.0,
        slack=0.0,
        detail="; ".join(wrong)
        or f"groups {', '.join(own.group for own in terms)}, every unit and view",
    )


def _named(line: tuple[str, CellName]) -> str:
    group, (unit, view) = line
    return f"{group} ({unit}, {view})"


def _gaps(
    own: Terms, spent: Sequence[Statement], begun: int, most: int, delta: float | None
) -> Iterator[tuple[str, float]]:
    """How far each of a group's lines lies outside of what its own account allows."""
    least = _least(own, begun, most, delta)
    largest = _figures(own, dearest_rounds(own), delta)
    for place, line in enumerate(spent):
        if line.group == own.group:
            name = line.unit, line.view
            gap = _outside(line.epsilon, least[name], largest[name])
            yield f"{_named((own.group, name))}, line {place + 1}", gap


def _least(own: Terms, begun: int, most: int, delta: float | None) -> Figures:
    """What a client has spent at the least that took part so often in these rounds."""
    n = min(most, own.most, begun)
    if n == begun:
        return _figures(own, [*range(begun)], delta)
    # Where rounds differ, it took part in the cheapest of them.
    parts = stretches(own.rounds, (one.rounds for one in own.releases))
    each = [_figures(own, [*part[:n]], delta) for part in parts if part.start < begun]
    return {
        name: min((one[name] or 0.0 for one in each), default=0.0) for name in CELLS
    }


def _figures(own: Terms, rounds: Sequence[int], delta: float | None) -> Figures:
    lines = run_statements(own, rounds, delta=delta)
    return {(line.unit, line.view): line.epsilon for line in lines}


def _outside(told: float | None, least: float | None, largest: float | None) -> float:
    """How far a figure lies outside of two others, relatively; None claims nothing."""
    if told is None:
        return 0.0
    if largest is None:  # no figure can be proven, and the ledger has one
        return math.inf
    below, above = (least or 0.0) - told, told - largest
    return max(0.0, below, above) / max(largest, 1e-12)
