"""What a device agrees to for one run: what leaves, who sees it, what is promised.

Units and views are words here, as adjacencies are: `release` has them as types, and
stands above this package.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, product, starmap
from typing import TYPE_CHECKING, Literal

from tacit import check
from tacit.accounting.parts import ZERO_OUT
from tacit.errors import BadValue

if TYPE_CHECKING:
    from dp_accounting import DpEvent

USER, ITEM = "user", "item"
RELEASE, SERVER, COLLUSION = "release", "server", "collusion"
UNITS, VIEWS = (USER, ITEM), (RELEASE, SERVER, COLLUSION)  # both: what implies first

Place = tuple[str, str]  # unit and view: figures of different places never mix
PLACES: tuple[Place, ...] = tuple(product(UNITS, VIEWS))


@dataclass(frozen=True)
class Promise:
    """What protects one release in one place; without an event, nothing does."""

    event: DpEvent | None
    adjacency: str = ZERO_OUT
    covers: Literal["run", "round"] = "round"  # the event of all rounds, or of each one
    assumes: str = "nothing"
    reason: str = ""  # the theorem cited, or why there is no event

    @classmethod
    def nothing(cls, reason: str) -> Promise:
        """No guarantee, and why."""
        return cls(None, reason=reason)


@dataclass(frozen=True)
class Charge:
    """One release, made by each participation in a round that has it."""

    what: str
    seen_by: str
    promises: Mapping[Place, Promise]
    rounds: range | None = None  # that have it; None: all

    def __post_init__(self) -> None:
        missing = [f"{u}/{v}" for u, v in PLACES if (u, v) not in self.promises]
        if missing:
            raise BadValue(f"'{self.what}' says nothing for {', '.join(missing)}")

    def is_made_in(self, round: int) -> bool:
        """Whether the round has it."""
        return self.rounds is None or round in self.rounds

    def times(self, rounds: Collection[int]) -> int:
        """How often a device made it that took part in these rounds."""
        own = self.rounds
        return len(rounds) if own is None else sum(one in own for one in rounds)

    def promise(self, place: Place) -> Promise:
        """The promise for a place, or one that implies it where it has none of its own.

        What holds for a whole user holds for each item; what holds against the server
        with the relay holds against the server, and against readers of the model. Never
        the other way round.
        """
        held = [self.promises[other] for other in implying(place)]
        return next((one for one in held if one.event is not None), held[0])


@dataclass(frozen=True)
class Terms:
    """All that a device agrees to when it joins a run."""

    charges: tuple[Charge, ...]
    rounds: int = 1  # planned; what is published was accounted for these and no more
    most: int = 1  # rounds one device takes part in at the most
    population: int = 1
    group: str = "everyone"  # the device's public group

    def __post_init__(self) -> None:
        check.count(rounds=self.rounds, most=self.most, population=self.population)
        names = [charge.what for charge in self.charges]
        if len(set(names)) < len(names):
            raise BadValue(f"two releases have one name: {', '.join(names)}")
        for part in parts(self.rounds, (one.rounds for one in self.charges)):
            made = [one.is_made_in(part.start) for one in self.charges]
            if made and not any(made):
                raise BadValue(
                    f"round {part.start} has none of the releases: {', '.join(names)}; "
                    "what is said there would not be counted"
                )

    def in_every_round(self) -> Terms:
        """As terms were before releases said in which rounds they are made."""
        charges = tuple(replace(charge, rounds=None) for charge in self.charges)
        return replace(self, charges=charges)


def parts(rounds: int, made: Iterable[range | None]) -> tuple[range, ...]:
    """Stretches of a run in which all rounds have the same releases.

    >>> parts(50, [range(2), range(2, 50), None])
    (range(0, 2), range(2, 50))
    """
    ends = {0, rounds}
    for one in made:
        if one is None:
            continue
        if one.step != 1 or not 0 <= one.start < one.stop <= rounds:
            raise BadValue(f"{one} must be one or more of range(0, {rounds}), in a row")
        ends |= {one.start, one.stop}
    return tuple(starmap(range, pairwise(sorted(ends))))


def implying(place: Place) -> list[Place]:
    """The place itself, then those whose guarantee holds for it too.

    >>> implying(("user", "server"))
    [('user', 'server'), ('user', 'collusion')]
    """
    unit, view = place
    check.one_of(UNITS, unit=unit)
    check.one_of(VIEWS, view=view)
    units = [unit] if unit == USER else [ITEM, USER]
    return [*product(units, VIEWS[VIEWS.index(view) :])]
