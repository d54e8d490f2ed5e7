"""The account of a plan in printed lines: all fields of a figure, or no figure.

An unprovable number is None with the reason; a paper's own stands under
`published_epsilon` and is never called epsilon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit import check
from tacit.errors import BadValue, Refused
from tacit.plan import Plan
from tacit.release import EVERYONE, Adjacency, Cell, Release, Standing, Unit, View
from tacit.sampling import composed

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
class Past:
    """What an earlier run released, and of how many people."""

    population: int
    releases: tuple[Release, ...]


@dataclass(frozen=True)
class Account:
    """Every release and every total of a plan.

    Where the run adds to earlier ones, `totals` speak for somebody who is in this one
    only, `earlier` for somebody who was in those only, `both` for somebody in all.
    """

    releases: tuple[Statement, ...]
    totals: tuple[Statement, ...]
    earlier: tuple[Statement, ...] = ()
    both: tuple[Statement, ...] = ()

    def assuming(self, *more: str) -> Account:
        """The same lines, each proven one under these assumptions too."""

        def with_more(lines: tuple[Statement, ...]) -> tuple[Statement, ...]:
            return tuple(_assuming(line, more) for line in lines)

        return Account(
            with_more(self.releases),
            with_more(self.totals),
            with_more(self.earlier),
            with_more(self.both),
        )

    def worst(self, *, unit: Unit = Unit.USER, view: View) -> float | None:
        """The largest total of a view over groups; None if one is unprovable."""
        found = [s.epsilon for s in self.totals if (s.unit, s.view) == (unit, view)]
        return None if None in found else max(e for e in found if e is not None)


def account(
    plan: Plan,
    releases: tuple[Release, ...],
    *,
    runs: int = 1,
    earlier: Sequence[Past] = (),
) -> Account:
    """Say what each release and all of them together reveal.

    The total of a cell is unprotected as soon as one of its releases is. Where some
    releases concern one group only, each group's total has them and the common ones.
    Training `runs` times composes everything as often; `earlier` runs, which this one
    adds to, were made once.
    """
    check.at_least(1, runs=runs)
    groups, figures = _groups(plan, releases), _Figures(plan, runs, earlier)
    own = {g: [r for r in releases if r.group in (g, EVERYONE)] for g in groups}
    # Whoever is in a group now may have been in any then: all of it is an upper bound.
    past = [release for run in earlier for release in run.releases]
    before = "the earlier run" if len(earlier) == 1 else f"{len(earlier)} earlier runs"
    return Account(
        tuple(
            line
            for one in releases
            for line in figures.lines([one], what=one.what, group=one.group)
        ),
        tuple(
            line
            for group, mine in own.items()
            for line in figures.lines(mine, what="everything", group=group)
        ),
        tuple(figures.lines([], past, what=before, group=EVERYONE) if past else ()),
        tuple(
            line
            for group, mine in (own if past else {}).items()
            for line in figures.lines(
                mine, past, what=f"everything, and {before}", group=group
            )
        ),
    )


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

    def __init__(self, plan: Plan, runs: int, earlier: Sequence[Past]) -> None:
        self.plan, self.runs, self.earlier = plan, runs, earlier
        self.known: dict[str, _Figure] = {}

    def lines(
        self,
        own: list[Release],
        past: Sequence[Release] = (),
        *,
        what: str,
        group: str,
    ) -> Iterator[Statement]:
        """A line for each unit and view."""
        for unit in Unit:
            for view in View:
                yield self._line(own, past, unit, view, what=what, group=group)

    def _line(
        self,
        own: list[Release],
        past: Sequence[Release],
        unit: Unit,
        view: View,
        *,
        what: str,
        group: str,
    ) -> Statement:
        cells = [self._again(release.cells[unit, view]) for release in own]
        cells += [release.cells[unit, view] for release in past]
        people = [run.population for run in self.earlier] if past else []
        figure = self._figure(cells, max([self.plan.population, *people]))
        published = [c.published_epsilon for c in cells]
        return Statement(
            what=what,
            seen_by=_joined(release.seen_by for release in (*own, *past)),
            group=group,
            unit=unit,
            adjacency=_adjacency(cells),
            view=view,
            delta=figure.delta,
            horizon=self._horizon(own, past),
            accountant=figure.accountant,
            standing=figure.standing,
            assumes=_joined(cell.assumes for cell in cells),
            epsilon=figure.epsilon,
            reason=figure.reason,
            published_epsilon=published[0] if len(cells) == 1 else None,
        )

    def _again(self, cell: Cell) -> Cell:
        """What the release costs in all runs of the plan."""
        if cell.event is None:
            return cell
        return replace(cell, event=composed(cell.event, self.runs))

    def _horizon(self, own: list[Release], past: Sequence[Release]) -> str:
        told = []
        if own:
            again = "" if self.runs == 1 else f", {self.runs} runs"
            when = _joined(release.when for release in own)
            told.append(f"{when}, {self.plan.rounds} rounds planned{again}")
        if past:
            n = len(self.earlier)
            told.append("1 finished run" if n == 1 else f"{n} finished runs")
        return "; ".join(told)

    def _figure(self, cells: list[Cell], people: int) -> _Figure:
        name = repr((cells, people))
        if name not in self.known:
            self.known[name] = self._computed(cells, people)
        return self.known[name]

    def _computed(self, cells: list[Cell], people: int) -> _Figure:
        bare = [cell for cell in cells if cell.standing is not Standing.PROVEN]
        reason = _joined(cell.reason for cell in bare or cells)
        if bare:
            weakest = min((c.standing for c in bare), key=[*Standing][::-1].index)
            return _Figure(None, self.plan.delta, "none", weakest, reason)
        try:
            return self._proven(cells, people, reason)
        except Refused as refusal:
            said = f"cannot be accounted for: {refusal}"
            return _Figure(None, self.plan.delta, "none", Standing.NONE, said)

    def _proven(self, cells: list[Cell], people: int, reason: str) -> _Figure:
        from tacit.accounting.epsilon import compose_once

        events = [(cell.event, str(cell.adjacency)) for cell in cells]
        pure = compose_once(events, delta=0.0)
        if pure.value is not None and (self.plan.delta is None or not _is_mixed(cells)):
            return _Figure(pure.value, 0.0, pure.accountant, Standing.PROVEN, reason)
        delta = self._delta(cells, people)
        found = compose_once(events, delta=delta)
        if found.value is None:
            return _Figure(
                None, delta, "none", Standing.NONE, "the event protects nothing"
            )
        return _Figure(found.value, delta, found.accountant, Standing.PROVEN, reason)

    def _delta(self, cells: list[Cell], people: int) -> float:
        """The plan's delta, if it is small enough to be called a guarantee."""
        is_central = any(c.adjacency is Adjacency.ZERO_OUT for c in cells)
        is_central = is_central or _is_mixed(cells)
        central = min(MOST_CENTRAL_DELTA, 1.0 / (10 * people))
        most = central if is_central else MOST_LOCAL_DELTA
        if self.plan.delta is None:
            raise Refused(f"the plan has no delta; give one of at most {most:.3g}")
        if self.plan.delta > most:
            raise Refused(
                f"delta={self.plan.delta} is more than {most:.3g}, the most that may "
                f"be called a guarantee for {people} people"
            )
        return self.plan.delta


def _is_mixed(cells: list[Cell]) -> bool:
    """Whether a relay mixed a report: a figure at delta 0 would leave that unsaid."""
    from tacit.accounting.events import ShuffledDpEvent
    from tacit.accounting.parts import take_apart

    parts = take_apart((cell.event, str(cell.adjacency)) for cell in cells) or {}
    return any(isinstance(part.event, ShuffledDpEvent) for part in parts)


def _adjacency(cells: list[Cell]) -> Adjacency:
    """A total of mixed cells is `zero_out`: zero is a legal input of local ones."""
    found = {cell.adjacency for cell in cells}
    return found.pop() if len(found) == 1 else Adjacency.ZERO_OUT


def _assuming(line: Statement, more: Sequence[str]) -> Statement:
    if line.standing is not Standing.PROVEN:
        return line
    own = [] if line.assumes == "nothing" else [line.assumes]
    return replace(line, assumes=_joined([*own, *more]))


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))
