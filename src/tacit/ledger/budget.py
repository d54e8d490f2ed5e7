"""Participations to epsilon, for each unit and view; caps that are not passed.

A client has made a release as often as it took part in a round that has it. An event
that covers the whole run (a cohort drawn in secret is accounted for over all rounds,
whether or not one was in it) counts once, from the first participation on.

Assumes: whether a client refuses depends on its participations and on what it agreed
to, never on its data. Then the rounds it sits out can only lower what a run costs it
(docs/ledger.md has the proof).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal

import numpy as np
from jaxtyping import Bool
from numpy.typing import ArrayLike

from tacit import check
from tacit.accounting.epsilon import LEAST_DELTA, Epsilon
from tacit.accounting.proven import compose_cells
from tacit.errors import BadValue, Refused
from tacit.ledger.terms import Terms
from tacit.release import (
    Adjacency,
    Cell,
    CellName,
    Release,
    Unit,
    View,
    cell_name,
    implying,
)

MOST_DELTA = 1e-5  # larger ones are not called a guarantee
ROUNDING = 1e-9  # relative: ten reports of 0.1 do not pass a cap of 1

Taken = Sequence[tuple[Terms, Collection[int]]]  # each run, and which rounds of it


@dataclass(frozen=True)
class Cap:
    """The most that a client may say about its user, for one unit and view."""

    epsilon: float
    delta: float = 1e-6
    unit: Unit = Unit.USER
    view: View = View.SERVER

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, remedy="remove the cap to have none")
        unit, view = cell_name(self.unit, self.view)  # refuses unknown ones
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "view", view)
        if not (self.delta == 0 or LEAST_DELTA <= self.delta <= MOST_DELTA):
            raise BadValue(
                f"delta={self.delta} must be 0 or in [{LEAST_DELTA}, {MOST_DELTA}]; "
                "larger ones are not called a guarantee"
            )

    @property
    def cell(self) -> CellName:
        """The unit and the view that the cap holds for."""
        return self.unit, self.view

    def holds(self, taken: Taken) -> bool:
        """Whether all these participations together stay within the cap."""
        return any(
            found.value is not None and bool(is_within(found.value, self.epsilon))
            for found in _figures(taken, self.cell, delta=self.delta)
        )


@dataclass(frozen=True)
class Spent(Epsilon):
    """The epsilon of all that was said so far; `cell` is where it was guaranteed."""

    cell: CellName


@dataclass(frozen=True)
class Excess:
    """A cap that one more round would pass, with the figures after that round.

    None stands for what nothing bounds.
    """

    cap: Cap
    this_run: float | None
    all_runs: float | None  # what the cap is for: the target of a plan has one run
    is_target: bool  # of the run's plan, and not the owner's own

    def __str__(self) -> str:
        where = _WHERE[self.cap.view]
        if self.cap.unit is Unit.ITEM:
            where += ", for one item"
        whose = "the plan's target" if self.is_target else "your cap"
        limit = f"; {whose} is {self.cap.epsilon:g}"
        if self.all_runs is None:
            return f"nothing bounds what is said {where}{limit}"
        if self.all_runs == self.this_run:
            return f"this run counts {_figure(self.all_runs)} {where}{limit}"
        alone = "" if self.this_run is None else f" ({_figure(self.this_run)} in this)"
        return f"all runs count {_figure(self.all_runs)}{alone} {where}{limit}"


_WHERE = {
    View.RELEASE: "in the view of what is published",
    View.SERVER: "in the server's view",
    View.COLLUSION: "in the view of servers that collude",
}


def _figure(epsilon: float) -> str:
    """Rounded up, so that a figure never seems to be within a cap that it passes."""
    return str(Decimal(epsilon).quantize(Decimal("0.01"), ROUND_CEILING))


def first_excess(
    after: tuple[Terms, Collection[int]],
    others: Taken,
    *,
    target: Iterable[Cap],
    caps: Iterable[Cap],
) -> Excess | None:
    """The first cap that a run with one more round would pass; None if all hold.

    The plan's `target` is for this run alone, the owner's `caps` for all together.
    """
    for cap, runs, is_target in (
        *((cap, [after], True) for cap in target),
        *((cap, [*others, after], False) for cap in caps),
    ):
        if not cap.holds(runs):
            alone, total = (
                spent(some, cap.cell, delta=cap.delta).value for some in ([after], runs)
            )
            return Excess(cap, alone, total, is_target)
    return None


def spent(taken: Taken, name: CellName, *, delta: float) -> Spent:
    """The epsilon of all releases so far in one cell; None if nothing is provable.

    The least of what is guaranteed in the cell itself and in those that imply it.
    """
    found = [*_figures(taken, name, delta=delta)]
    provable = [one for one in found if one.value is not None]
    return min(provable, key=lambda one: one.value or 0.0, default=found[0])


def made(taken: Taken, name: CellName) -> Iterator[tuple[Release, Cell, int]]:
    """Each release so far, its guarantee in one cell, and how often that counts."""
    for terms, rounds in taken:
        for release in terms.releases if rounds else ():
            cell = release.guarantee(name)
            covers_run = cell.has_epsilon and cell.each is None
            times = 1 if covers_run else release.times(rounds)
            if times:
                yield release, cell, times


def counted(cell: Cell, times: int) -> Cell:
    """The cell with the event of all that counts so often, if it guarantees any."""
    from tacit.accounting.dp_events import SelfComposedDpEvent

    if not cell.has_epsilon:
        return cell
    event = cell.event if cell.each is None else cell.each
    return replace(cell, event=SelfComposedDpEvent(event, times))


def fits(multipliers: Iterable[float], *, total: float) -> bool:
    """Whether Gaussian releases of these noises amount to at most one of `total`.

    If each noise is chosen from earlier releases only and the sum of 1/z² never passes
    1/total², everything together is as private as one Gaussian release of `total`
    (fully adaptive composition for Gaussian differential privacy, Smith and Thakurta
    2022).
    """
    spent = sum(multiplier**-2 for multiplier in multipliers)  # mu² adds
    return bool(is_within(spent, total**-2))


def is_within(spent: ArrayLike, most: ArrayLike) -> Bool[np.ndarray, "..."]:
    """Whether what is spent stays within the most, but for rounding."""
    return np.asarray(np.less_equal(spent, np.multiply(most, 1 + ROUNDING)))


def allowed_rounds(
    terms: Terms,
    caps: Iterable[Cap],
    *,
    before: Taken = (),
    part: range | None = None,
    earlier: Sequence[int] = (),
) -> int:
    """In how many rounds of a run a client may take part: all, or until a cap is met.

    Of a run whose rounds are not alike, in how many of one `part`, after these
    `earlier` rounds of the others. `before` is what it took part in in other runs.
    Epsilon never falls with a participation, so the answer is found by halving.
    """
    caps = [*caps]
    part = range(terms.rounds) if part is None else part
    most = max(0, min(len(part), terms.most - len(earlier)))

    def fits(rounds: int) -> bool:
        after = [*before, (terms, [*earlier, *part[:rounds]])]
        return all(cap.holds(after) for cap in caps)

    if fits(most):
        return most
    low, high = 0, most  # what fits, what does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _figures(taken: Taken, name: CellName, *, delta: float) -> Iterator[Spent]:
    for other in implying(name):
        yield Spent(**vars(_composed(taken, other, delta=delta)), cell=other)


def _composed(taken: Taken, name: CellName, *, delta: float) -> Epsilon:
    nothing = Epsilon(None, "none", Adjacency.ZERO_OUT)
    held = [counted(cell, times) for _, cell, times in made(taken, name)]
    if not all(cell.has_epsilon for cell in held):
        return nothing
    try:
        return compose_cells(held, delta=delta)
    except Refused:  # releases that have no common account promise nothing together
        return nothing
