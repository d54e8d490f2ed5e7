"""The ledger.json of a run against the account of each of the plan's groups.

    form     the ledger has every entry that an audit compares
    counts   it counts as many participations as its rounds and the sampler force
    groups   it has the lines of every group of the plan, and of no other
    figures  a group's epsilons are those of its own terms for these participations
    terms    so are delta, standing, adjacency and assumptions

What is compared with is computed from the plan. Of the ledger itself the audit takes
only counts, and it bounds those from below: by the rounds that the run has logged, and
by what a client joins for certain where everyone is asked. Nothing is drawn: an honest
run never fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.audits.checks import Check
from tacit.ledger.snapshot import dearest_rounds
from tacit.ledger.terms import Terms
from tacit.release import CELLS, CellName, Standing
from tacit.runtime.ledger import run_statements
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone
from tacit.statement import Statement

_SAME = 1e-9  # what rounding may change, relatively
_SHOWN = 3  # differences that a finding spells out
_NO_LEDGER = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


@dataclass(frozen=True)
class _Written:
    """What stands in a ledger.json."""

    begun: int  # rounds
    most: int  # participations of any one client
    spent: tuple[Statement, ...]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> _Written:
        spent = tuple(map(Statement.from_json, document["spent"]))
        for line in spent:
            for number in (line.epsilon, line.delta):
                if number is not None and not math.isfinite(number):
                    raise ValueError(f"{number} is no epsilon and no delta")
        counts = document["rounds_begun"], document["most_participations"]
        begun, most = (int(count) for count in counts)
        return cls(begun, most, spent)


def check_written(
    simulation: Simulation, document: Mapping[str, Any], *, logged: int = 0
) -> Iterator[Check]:
    """Every check of a run's ledger against the simulation that the run is of.

    `document` is what stands in ledger.json, of a run in which a round has begun, and
    `logged` is the number of rounds in its metrics.
    """
    try:
        written = _Written.read(document)
    except _NO_LEDGER as error:
        yield _check_form(error)
        return
    terms = simulation.terms
    begun = max(1, logged, written.begun)
    least = max(1, _joined_for_certain(simulation, begun))
    yield _check_counts(written, terms, logged=max(1, logged), least=least)
    yield _check_groups(terms, written.spent)
    counted = max(least, written.most)
    pairs = [
        pair
        for own in terms
        for pair in _pairs(own, written.spent, begun, counted, simulation.plan.delta)
    ]
    if pairs:  # no line of any group: the check above has failed
        counts = f"{len(pairs)} lines, for {counted} participations in {begun} rounds"
        yield _check_figures(pairs, counts)
        yield _check_terms(pairs, counts)


# --- Counts ---------------------------------------------------------------------------


def _check_form(error: Exception) -> Check:
    what = (
        f"it lacks {error}" if isinstance(error, KeyError) else f"{error!r} in an entry"
    )
    return Check.at_most(
        "reasons why the ledger cannot be compared with the plan",
        1.0,
        claimed=0.0,
        slack=0.0,
        detail=f"{what}: an earlier version wrote it, or it was changed since; what "
        "the run costs at the most stands in privacy-card.json; to have a ledger that "
        "can be audited, train again into another directory",
    )


def _check_counts(
    written: _Written, terms: Sequence[Terms], *, logged: int, least: int
) -> Check:
    most = min(written.begun, max(own.most for own in terms))
    off = {
        f"rounds_begun = {written.begun}, and {logged} rounds were played": (
            logged - written.begun
        ),
        f"most_participations = {written.most}, and at least {least} are certain": (
            least - written.most
        ),
        f"most_participations = {written.most}, and at most {most} are possible": (
            written.most - most
        ),
    }
    wrong = [said for said, by in off.items() if by > 0]
    return Check.at_most(
        "rounds or participations by which the ledger counts wrongly",
        float(max(0, *off.values())),
        claimed=0.0,
        slack=0.0,
        detail="; ".join(wrong)
        or f"{written.most} participations in {written.begun} rounds",
    )


def _joined_for_certain(simulation: Simulation, begun: int) -> int:
    """The participations that the client with the most has after so many rounds.

    0 where coins, a ledger or the noise that a method chooses decide who takes part.
    """
    if (
        not isinstance(simulation.plan.sampler, Everyone)
        or simulation.ledger is not None
        or any(own.total_multiplier is not None for own in simulation.terms)
    ):
        return 0
    taken = np.zeros((len(simulation.codes), len(simulation.parts)), np.int64)
    for number, part in enumerate(simulation.parts):
        allowed = simulation.limits.within(number, taken)
        taken[:, number] = np.minimum(
            allowed, max(0, min(begun, part.stop) - part.start)
        )
    return int(taken.sum(axis=1).max(initial=0))


# --- Lines ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pair:
    """A line of the ledger, and the line that its group's own account has instead."""

    place: int
    written: Statement
    computed: Statement

    @property
    def name(self) -> str:
        line = self.computed
        group = self.written.group
        return f"{_named((group, (line.unit, line.view)))}, line {self.place + 1}"

    @property
    def gap(self) -> float:
        """How far apart the epsilons are, relatively."""
        written, computed = self.written.epsilon, self.computed.epsilon
        if written is None or computed is None:
            return 0.0 if written is computed else math.inf
        return abs(written - computed) / max(computed, 1e-12)

    @property
    def differences(self) -> Iterator[str]:
        """What else is not the same, each with both values."""
        for entry in ("delta", "standing", "adjacency", "assumes"):
            written, computed = (
                getattr(line, entry) for line in (self.written, self.computed)
            )
            # After a round something was asked, whatever the account would say.
            if written != computed or written is Standing.NOTHING:
                yield f"{self.name}: {entry} {written}, not {computed}"


def _pairs(
    own: Terms, spent: Sequence[Statement], begun: int, most: int, delta: float | None
) -> Iterator[_Pair]:
    """Each of a group's lines beside the one of a client that took part so often."""
    rounds = dearest_rounds(own, most=most, begun=begun)
    lines = run_statements(own, rounds, delta=delta)
    computed = {(line.unit, line.view): line for line in lines}
    for place, line in enumerate(spent):
        if line.group == own.group:
            yield _Pair(place, line, computed[line.unit, line.view])


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


def _check_figures(pairs: Sequence[_Pair], counts: str) -> Check:
    worst = max(pairs, key=lambda pair: pair.gap)
    return Check.at_most(
        "share by which an epsilon of the ledger is off its group's own account",
        worst.gap,
        claimed=0.0,
        slack=_SAME,
        detail=f"{counts}; largest: {worst.name}, {worst.written.epsilon} where the "
        f"account has {worst.computed.epsilon}",
    )


def _check_terms(pairs: Sequence[_Pair], counts: str) -> Check:
    wrong = [said for pair in pairs for said in pair.differences]
    shown = "; ".join(wrong[:_SHOWN])
    return Check.at_most(
        "deltas, standings, adjacencies and assumptions that are not the account's",
        float(len(wrong)),
        claimed=0.0,
        slack=0.0,
        detail=shown or counts,
    )


def _named(line: tuple[str, CellName]) -> str:
    group, (unit, view) = line
    return f"{group} ({unit}, {view})"
