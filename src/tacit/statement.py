"""The account of a plan in printed lines: all fields of a figure, or no figure.

An unprovable number is None with the reason; a paper's own stands under
`published_epsilon` and is never called epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tacit import check
from tacit.codes import rests_on_unchecked, sentences
from tacit.errors import BadValue, Refused
from tacit.plans import Plan
from tacit.release import (
    CELLS,
    EVERYONE,
    Adjacency,
    Cell,
    CellName,
    Release,
    Standing,
    Unit,
    View,
    implying,
)
from tacit.sampling import composed

if TYPE_CHECKING:
    from tacit.accounting.epsilon import Epsilon

MOST_CENTRAL_DELTA = 1e-5  # and never more than 1 / (10 N)
MOST_LOCAL_DELTA = 1e-6  # each client bears it alone: no crowd to be lost in
_NEARLY = 1.01  # a pure figure this close is worth more than one with a delta


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
    channel: str = ""  # over which reports travel; none if over several, or unknown

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Statement:
        """A line from the plain data that `dataclasses.asdict` made of it."""
        standing = Standing(line["standing"])
        # An earlier version called it proven, whatever nobody checks.
        if standing is Standing.PROVEN and rests_on_unchecked(line["assumes"]):
            standing = Standing.ASSUMED
        kinds = {
            "unit": Unit(line["unit"]),
            "view": View(line["view"]),
            "adjacency": Adjacency(line["adjacency"]),
            "standing": standing,
        }
        return cls(**{**line, **kinds})


@dataclass(frozen=True)
class Past:
    """What an earlier run released, and of how many users."""

    population: int
    releases: tuple[Release, ...]


@dataclass(frozen=True)
class Account:
    """Every release and every total of a plan.

    Where the run adds to earlier ones, `totals` speak for a user of this one only,
    `earlier` for a user of those only, `both` for a user of all of them.
    """

    releases: tuple[Statement, ...]
    totals: tuple[Statement, ...]
    earlier: tuple[Statement, ...] = ()
    both: tuple[Statement, ...] = ()

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
class Figure:
    """What some cells of one unit and view amount to, and the cells it rests on."""

    epsilon: float | None
    delta: float | None
    accountant: str
    standing: Standing
    reason: str
    cells: tuple[Cell, ...]

    @property
    def assumes(self) -> str:
        """What the figure rests on, in sentences; `nothing` where there is none."""
        guaranteed = (cell for cell in self.cells if cell.has_epsilon)
        return sentences(code for cell in guaranteed for code in cell.assumes)

    @property
    def adjacency(self) -> Adjacency:
        """A total of mixed cells is `zero_out`: zero is a legal input of local ones."""
        found = {cell.adjacency for cell in self.cells}
        return found.pop() if len(found) == 1 else Adjacency.ZERO_OUT


Held = Callable[[CellName], Sequence[Cell]]


def figure(
    held: Held,
    name: CellName,
    *,
    delta: float | None,
    n_users: int,
    prefers_pure: bool = True,
) -> Figure:
    """The one decision what may be called a guarantee: plans and ledgers print it.

    `held` gives the releases' cells of a name, with the event of all that is counted.
    The figure is the least that follows from the cell itself or from those that imply
    it. It has no delta where a pure one exists, unless a relay mixed reports and the
    pure figure would not say so; without `prefers_pure`, only where that costs next to
    nothing.
    """
    found = [
        _decided(tuple(held(other)), delta, n_users, prefers_pure)
        for other in implying(name)
    ]
    provable = [one for one in found if one.epsilon is not None]
    # Of equal figures the one that assumes less: a local guarantee needs no relay.
    return min(
        provable,
        key=lambda one: (one.epsilon or 0.0, one.standing.rank),
        default=found[0],
    )


def most_delta(cells: Iterable[Cell], n_users: int) -> float:
    """The largest delta that may be called a guarantee for so many users."""
    if all(cell.is_local for cell in cells):
        return MOST_LOCAL_DELTA
    return min(MOST_CENTRAL_DELTA, 1.0 / (10 * n_users))


def _decided(
    cells: tuple[Cell, ...], delta: float | None, n_users: int, prefers_pure: bool
) -> Figure:
    if not cells:
        said = "no message has left yet"
        return Figure(None, None, "none", Standing.NOTHING, said, cells)
    bare = [cell for cell in cells if not cell.has_epsilon]
    reason = joined(cell.reason for cell in bare or cells)
    if bare:  # one release without a guarantee: nothing holds for the whole
        lowest = Standing.lowest(cell.standing for cell in bare)
        return Figure(None, delta, "none", lowest, reason, cells)
    try:
        found, at = _composed(cells, delta, n_users, prefers_pure)
    except Refused as refusal:
        said = f"no accountant has a figure: {refusal}"
        return Figure(None, delta, "none", Standing.NONE, said, cells)
    if found.value is None:
        said = "the noise is too small for any figure"
        return Figure(None, at, "none", Standing.NONE, said, cells)
    standing = Standing.lowest(cell.standing for cell in cells)
    return Figure(found.value, at, found.accountant, standing, reason, cells)


def _composed(
    cells: Sequence[Cell], delta: float | None, n_users: int, prefers_pure: bool
) -> tuple[Epsilon, float]:
    """The epsilon of all cells together, and at which delta."""
    from tacit.accounting.proven import compose_cells

    events = [(cell.event, str(cell.adjacency)) for cell in cells]
    pure = compose_cells(cells, delta=0.0)
    is_enough = delta is None or (prefers_pure and not _is_mixed(events))
    if pure.value is not None and is_enough:
        return pure, 0.0
    at = _allowed(delta, cells, n_users)
    found = compose_cells(cells, delta=at)
    # "ε = 1" says more than "ε = 0.995 at δ = 1e-6".
    is_near = pure.value is not None and pure.value <= _NEARLY * (found.value or 0.0)
    return (pure, 0.0) if is_near and not prefers_pure else (found, at)


def _allowed(delta: float | None, cells: Iterable[Cell], n_users: int) -> float:
    """The delta, if it is small enough to be called a guarantee."""
    most = most_delta(cells, n_users)
    if delta is None:
        raise Refused(f"the plan has no delta; give one of at most {most:.3g}")
    if delta > most:
        raise Refused(
            f"delta={delta} is more than {most:.3g}, the most that may be called a "
            f"guarantee for {n_users} users"
        )
    return delta


def _is_mixed(events: Iterable[tuple[Any, str]]) -> bool:
    """Whether a relay mixed a report: a figure at delta 0 would leave that unsaid."""
    from tacit.accounting.decomposition import take_apart
    from tacit.accounting.events import ShuffledDpEvent

    parts = take_apart(events) or {}
    return any(isinstance(part.event, ShuffledDpEvent) for part in parts)


class _Figures:
    """Turns cells into lines; equal cells are computed once."""

    def __init__(self, plan: Plan, runs: int, earlier: Sequence[Past]) -> None:
        self.plan, self.runs, self.earlier = plan, runs, earlier
        self.known: dict[str, Figure] = {}

    def lines(
        self,
        own: list[Release],
        past: Sequence[Release] = (),
        *,
        what: str,
        group: str,
    ) -> Iterator[Statement]:
        """One line per unit and view."""
        for unit, view in CELLS:
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
        populations = [run.population for run in self.earlier] if past else []
        found = self._figure(
            lambda name: self._held(own, past, name),
            (unit, view),
            max([self.plan.population, *populations]),
        )
        published = [one.cells[unit, view].published_epsilon for one in (*own, *past)]
        return Statement(
            what=what,
            seen_by=joined(release.seen_by for release in (*own, *past)),
            group=group,
            unit=unit,
            adjacency=found.adjacency,
            view=view,
            delta=found.delta,
            horizon=self._horizon(own, past),
            accountant=found.accountant,
            standing=found.standing,
            assumes=found.assumes,
            epsilon=found.epsilon,
            reason=found.reason,
            published_epsilon=published[0] if len(published) == 1 else None,
            channel=only_channel((*own, *past)),
        )

    def _held(
        self, own: list[Release], past: Sequence[Release], name: CellName
    ) -> list[Cell]:
        """What each release guarantees under this name, in all runs of the plan."""
        again = [self._again(release.guarantee(name)) for release in own]
        return again + [release.guarantee(name) for release in past]

    def _again(self, cell: Cell) -> Cell:
        """What the release costs in all runs of the plan."""
        if cell.event is None:
            return cell
        return replace(cell, event=composed(cell.event, self.runs))

    def _horizon(self, own: list[Release], past: Sequence[Release]) -> str:
        """How long the figure holds: these rounds, and earlier runs."""
        parts = []
        if any(release in self.plan.before for release in own):
            parts.append("the release before the first round")
        in_run = [release for release in own if release not in self.plan.before]
        if in_run:
            parts.append(self._rounds_of(in_run))
        if past:
            n = len(self.earlier)
            parts.append("1 finished run" if n == 1 else f"{n} finished runs")
        return f"for {' and '.join(parts)}{' together' * (len(parts) > 1)}"

    def _rounds_of(self, own: Iterable[Release]) -> str:
        every = range(self.plan.rounds)
        rounds = {n for one in own for n in one.rounds or every}
        first, last = min(rounds) + 1, max(rounds) + 1
        if len(rounds) == len(every):
            told = f"all {last} rounds together" if last > 1 else "the only round"
        elif first == last:
            told = f"round {first} of {len(every)}"
        else:
            told = f"rounds {first} to {last} of {len(every)} together"
        return told if self.runs == 1 else f"{told}, in {self.runs} runs"

    def _figure(self, held: Held, name: CellName, n_users: int) -> Figure:
        # Most units and views hold equal cells, and a composition takes a while.
        known = repr(([held(other) for other in implying(name)], n_users))
        if known not in self.known:
            self.known[known] = figure(
                held, name, delta=self.plan.delta, n_users=n_users
            )
        return self.known[known]


def only_channel(releases: Iterable[Release]) -> str:
    """The channel of these releases, if it is one and known."""
    channels = {release.channel for release in releases}
    return channels.pop() if len(channels) == 1 else ""


def joined(texts: Iterable[str]) -> str:
    """The distinct sentences of texts, in the order of their first occurrence.

    >>> joined(["noise; a theorem", "clipped; a theorem"])
    'noise; a theorem; clipped'
    """
    return "; ".join(dict.fromkeys(one for text in texts for one in text.split("; ")))
