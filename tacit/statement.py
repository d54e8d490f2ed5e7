"""The account of a plan in printed lines: all fields of a figure, or no figure.

An unprovable number is None with the reason; a paper's own stands under
`published_epsilon` and is never called epsilon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tacit import check
from tacit.errors import BadValue, Refused
from tacit.plan import Plan
from tacit.release import Adjacency, Cell, Release, Standing, Unit, View
from tacit.sampling import EVERYONE, composed

MOST_CENTRAL_DELTA = 1e-5  # and never more than 1 / (10 N)
MOST_LOCAL_DELTA = 1e-6


@dataclass(frozen=True)
class Statement:
    """One line of the account; `epsilon` is None where nothing is provable."""

    what: str
    seen_by: str
    group: str
    unit: Unit
    adjacency: Adjacency
    view: View
    delta: float | None
    horizon: str
    accountant: str
    standing: Standing
    assumes: str
    epsilon: float | None
    reason: str
    published_epsilon: float | None = None

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Statement:
        """A line from the plain data that `dataclasses.asdict` made of it."""
        kinds = {
            "unit": Unit(line["unit"]),
            "view": View(line["view"]),
            "adjacency": Adjacency(line["adjacency"]),
            "standing": Standing(line["standing"]),
        }
        return cls(**{**line, **kinds})


@dataclass(frozen=True)
class Account:
    """Every release and every total of a plan."""

    releases: tuple[Statement, ...]
    totals: tuple[Statement, ...]

    def worst(self, *, unit: Unit = Unit.USER, view: View) -> float | None:
        """The largest total of a view over groups; None if one is unprovable."""
        found = [s.epsilon for s in self.totals if (s.unit, s.view) == (unit, view)]
        return None if None in found else max(e for e in found if e is not None)


def account(plan: Plan, releases: tuple[Release, ...], *, runs: int = 1) -> Account:
    """Say what each release and all of them together reveal.

    The total of a cell is unprotected as soon as one of its releases is. Where some
    releases concern one group only, each group's total has them and the common ones.
    Training `runs` times composes everything as often.
    """
    check.at_least(1, runs=runs)
    groups, figures = _groups(plan, releases), _Figures(plan, runs)
    lines = [
        figures.statement([release], unit, view, what=release.what, group=release.group)
        for release in releases
        for unit in Unit
        for view in View
    ]
    totals = [
        figures.statement(
            [r for r in releases if r.group in (group, EVERYONE)],
            *(unit, view),
            what="everything",
            group=group,
        )
        for group in groups
        for unit in Unit
        for view in View
    ]
    return Account(tuple(lines), tuple(totals))


def _groups(plan: Plan, releases: tuple[Release, ...]) -> list[str]:
    """The groups that have a total: the plan's own if a release names one."""
    named = dict.fromkeys(release.group for release in releases)
    if named.keys() <= {EVERYONE}:
        return [*named]
    for group in named:
        if group not in (EVERYONE, *plan.groups):
            raise BadValue(f"group {check.unknown(group, plan.groups)}")
    return [g for g in plan.groups if g in named or EVERYONE in named]


@dataclass(frozen=True)
class _Figure:
    epsilon: float | None
    delta: float | None
    accountant: str
    standing: Standing
    reason: str


class _Figures:
    """Turns cells into lines; equal cells are computed once."""

    def __init__(self, plan: Plan, runs: int) -> None:
        self.plan, self.runs = plan, runs
        self.known: dict[str, _Figure] = {}

    def statement(
        self, releases: list[Release], unit: Unit, view: View, *, what: str, group: str
    ) -> Statement:
        cells = [release.cells[unit, view] for release in releases]
        figure = self._figure(cells)
        again = "" if self.runs == 1 else f", {self.runs} runs"
        when = _joined(release.when for release in releases)
        published = [c.published_epsilon for c in cells]
        return Statement(
            what=what,
            seen_by=_joined(release.seen_by for release in releases),
            group=group,
            unit=unit,
            adjacency=_adjacency(cells),
            view=view,
            delta=figure.delta,
            horizon=f"{when}, {self.plan.rounds} rounds planned{again}",
            accountant=figure.accountant,
            standing=figure.standing,
            assumes=_joined(cell.assumes for cell in cells),
            epsilon=figure.epsilon,
            reason=figure.reason,
            published_epsilon=published[0] if len(cells) == 1 else None,
        )

    def _figure(self, cells: list[Cell]) -> _Figure:
        name = repr(cells)
        if name not in self.known:
            self.known[name] = self._computed(cells)
        return self.known[name]

    def _computed(self, cells: list[Cell]) -> _Figure:
        bare = [cell for cell in cells if cell.standing is not Standing.PROVEN]
        reason = _joined(cell.reason for cell in bare or cells)
        if bare:
            weakest = min((c.standing for c in bare), key=[*Standing][::-1].index)
            return _Figure(None, self.plan.delta, "none", weakest, reason)
        try:
            return self._proven(cells, reason)
        except Refused as refusal:
            said = f"cannot be accounted for: {refusal}"
            return _Figure(None, self.plan.delta, "none", Standing.NONE, said)

    def _proven(self, cells: list[Cell], reason: str) -> _Figure:
        from tacit.accounting.epsilon import compose

        events = [
            (composed(cell.event, self.runs), str(cell.adjacency)) for cell in cells
        ]
        pure = compose(events, delta=0.0)
        if pure.value is not None:
            return _Figure(pure.value, 0.0, pure.accountant, Standing.PROVEN, reason)
        delta = self._delta(cells)
        found = compose(events, delta=delta)
        if found.value is None:
            return _Figure(
                None, delta, "none", Standing.NONE, "the event protects nothing"
            )
        return _Figure(found.value, delta, found.accountant, Standing.PROVEN, reason)

    def _delta(self, cells: list[Cell]) -> float:
        """The plan's delta, if it is small enough to be called a guarantee."""
        is_central = any(c.adjacency is Adjacency.ZERO_OUT for c in cells)
        central = min(MOST_CENTRAL_DELTA, 1.0 / (10 * self.plan.population))
        most = central if is_central else MOST_LOCAL_DELTA
        if self.plan.delta is None:
            raise Refused(f"the plan has no delta; give one of at most {most:.3g}")
        if self.plan.delta > most:
            raise Refused(
                f"delta={self.plan.delta} is more than {most:.3g}, the most that may "
                f"be called a guarantee for {self.plan.population} people"
            )
        return self.plan.delta


def _adjacency(cells: list[Cell]) -> Adjacency:
    """A total of mixed cells is `zero_out`: zero is a legal input of local ones."""
    found = {cell.adjacency for cell in cells}
    return found.pop() if len(found) == 1 else Adjacency.ZERO_OUT


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))
