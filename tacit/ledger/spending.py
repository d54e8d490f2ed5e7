"""Participations to epsilon, for each unit and view; caps that are not passed.

A device has made a release as often as it took part in a round that has it. An event
that covers the whole run (a cohort drawn in secret is accounted for over all rounds,
whether or not one was in it) counts once, from the first participation on.

Assumes: whether a device refuses depends on its participations and on what it agreed
to, never on its data. Then the rounds it sits out can only lower what a run costs it
(docs/ledger.md has the proof).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tacit import check
from tacit.accounting.epsilon import LEAST_DELTA, Epsilon, compose
from tacit.accounting.parts import ZERO_OUT
from tacit.errors import BadValue, Refused
from tacit.ledger.terms import (
    SERVER,
    USER,
    Charge,
    Place,
    Promise,
    Terms,
    implying,
)

MOST_DELTA = 1e-5  # larger ones are not called a guarantee
_ROUNDING = 1e-9  # relative: ten reports of 0.1 do not pass a cap of 1

Taken = Sequence[tuple[Terms, Collection[int]]]  # each run, and which rounds of it


@dataclass(frozen=True)
class Cap:
    """The most that a device may say about its owner, in one place."""

    epsilon: float
    delta: float = 1e-6
    unit: str = USER
    view: str = SERVER

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, remedy="remove the cap to have none")
        implying(self.place)  # refuses an unknown unit or view
        if not (self.delta == 0 or LEAST_DELTA <= self.delta <= MOST_DELTA):
            raise BadValue(
                f"delta={self.delta} must be 0 or in [{LEAST_DELTA}, {MOST_DELTA}]; "
                "larger ones are not called a guarantee"
            )

    @property
    def place(self) -> Place:
        """Where it holds."""
        return self.unit, self.view

    def holds(self, taken: Taken) -> bool:
        """Whether so many participations stay within the cap."""
        most = self.epsilon * (1 + _ROUNDING)
        return any(
            found.value is not None and found.value <= most
            for found in _figures(taken, self.place, delta=self.delta)
        )


@dataclass(frozen=True)
class Spent(Epsilon):
    """What was said so far amounts to this; `place` is where it was promised."""

    place: Place


def spent(taken: Taken, place: Place, *, delta: float) -> Spent:
    """What all releases so far amount to in one place; None if nothing is provable.

    The least of what was promised for the place itself and for those that imply it.
    """
    found = [*_figures(taken, place, delta=delta)]
    provable = [one for one in found if one.value is not None]
    return min(provable, key=lambda one: one.value or 0.0, default=found[0])


def made(taken: Taken, place: Place) -> Iterator[tuple[Charge, Promise, int]]:
    """Each release so far, what is promised for it in one place, and how often."""
    for terms, rounds in taken:
        for charge in terms.charges if rounds else ():
            promise = charge.promise(place)
            times = charge.times(rounds) if promise.covers == "round" else 1
            if times:
                yield charge, promise, times


def allowed_rounds(
    terms: Terms,
    caps: Iterable[Cap],
    *,
    before: Taken = (),
    part: range | None = None,
    earlier: Sequence[int] = (),
) -> int:
    """In how many rounds of a run a device may take part: all, or until a cap is met.

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


def _figures(taken: Taken, place: Place, *, delta: float) -> Iterator[Spent]:
    for other in implying(place):
        yield Spent(**vars(_composed(taken, other, delta=delta)), place=other)


def _composed(taken: Taken, place: Place, *, delta: float) -> Epsilon:
    from dp_accounting import SelfComposedDpEvent

    events = []
    for _, promise, times in made(taken, place):
        if promise.event is None:
            return Epsilon(None, "none", ZERO_OUT)
        events.append((SelfComposedDpEvent(promise.event, times), promise.adjacency))
    try:
        return compose(events, delta=delta)
    except Refused:  # releases that have no common account promise nothing together
        return Epsilon(None, "none", ZERO_OUT)
