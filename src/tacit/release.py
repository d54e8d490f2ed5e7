"""What somebody gets to see, and under which guarantee: the words of the account.

    Unit        whom a guarantee covers: a whole user, or one interaction
    View        whose eyes: readers of the model, the server, the server with the relay
    Adjacency   what a neighbouring data set is
    Standing    what a figure is worth
    Cell        the guarantee of one release for one unit and one view
    Release     one thing that leaves clients or is published, with its six cells
    Part        what leaves in some rounds of a release that has several phases

These are plain values: plans, ledgers, statements and cards all read the same ones. How
the six cells relate is defined in docs/account.md and computed by `implying`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise, product, starmap
from typing import TYPE_CHECKING

from tacit import check
from tacit.codes import Code
from tacit.errors import BadValue

if TYPE_CHECKING:
    from dp_accounting import DpEvent

EVERYONE = "everyone"  # the group of all clients where no groups are declared


class Unit(StrEnum):
    """What one user's guarantee covers."""

    USER = "user"
    ITEM = "item"  # one interaction


class View(StrEnum):
    """Whose eyes: the published models, the server, the server with the relay."""

    RELEASE = "release"
    SERVER = "server"
    COLLUSION = "collusion"


class Adjacency(StrEnum):
    """What a neighbouring data set is: a contribution removed, or exchanged."""

    ZERO_OUT = "zero_out"
    REPLACE_ONE = "replace_one"


class Standing(StrEnum):
    """How well a figure is founded, the best first.

    A composition has the lowest of its parts; NOTHING is that of no parts.
    """

    PROVEN = "PROVEN"  # a theorem, test or audit is cited
    ASSUMED = "ASSUMED"  # proven under a condition that nobody checks
    CLAIMED = "CLAIMED"  # a paper says so, we have not shown it
    NONE = "NONE"  # no guarantee
    NOTHING = "NOTHING"  # nothing was asked yet, so there is no figure

    @property
    def has_epsilon(self) -> bool:
        """Whether a figure of this standing is an epsilon, which ledgers count."""
        return self in (Standing.PROVEN, Standing.ASSUMED)

    @property
    def rank(self) -> int:
        """How weak it is: 0 for NOTHING, which weakens no composition."""
        order = ("NOTHING", "PROVEN", "ASSUMED", "CLAIMED", "NONE")
        return order.index(self.value)

    @classmethod
    def lowest(cls, standings: Iterable[Standing]) -> Standing:
        """The standing of a composition of parts with these."""
        return max(standings, key=lambda one: one.rank, default=cls.NOTHING)


CellName = tuple[Unit, View]
CELLS: tuple[CellName, ...] = tuple(product(Unit, View))


@dataclass(frozen=True)
class Cell:
    """The guarantee of one release for one unit and view.

    `event` is what a whole run costs. Where a participation costs `each` and the run as
    many of them as there are participations, a ledger counts those; where `each` is
    None the run costs `event` from the first participation on (a cohort drawn in secret
    is accounted for over all rounds, whether or not one was in it).

    `assumes` and `why_none` are codes, which clients agree to; `reason` is prose, which
    may change at any time. A guarantee under a code that nobody checks is ASSUMED.

    `is_local` says that every client protects its own report and that nothing else is
    relied on: what is done with the reports afterwards costs nothing. It is not read
    off the adjacency, which a sum over a cohort of fixed size shares with reports.
    """

    standing: Standing
    reason: str  # prose: the theorem or test cited, or why there is no guarantee
    event: DpEvent | None = None
    adjacency: Adjacency = Adjacency.ZERO_OUT
    assumes: tuple[Code, ...] = ()
    published_epsilon: float | None = None  # a paper's own figure, never called epsilon
    each: DpEvent | None = None
    is_local: bool = False
    why_none: Code | None = None

    def __post_init__(self) -> None:
        is_none = self.standing is Standing.NONE
        if self.standing is Standing.NOTHING or not (
            (self.event is None) == is_none == (self.why_none is not None)
        ):
            raise BadValue(
                f"standing={self.standing} with event={self.event} and "
                f"why_none={self.why_none}: a guarantee needs an event, and no "
                "guarantee has none, but a code that says why"
            )
        unchecked = [str(code) for code in self.assumes if code.is_unchecked]
        if self.standing is Standing.PROVEN and unchecked:
            object.__setattr__(self, "standing", Standing.ASSUMED)
        elif self.standing is Standing.ASSUMED and not unchecked:
            raise BadValue(
                "an ASSUMED cell rests on something that nobody checks: name its code "
                "in `assumes`, or call it PROVEN"
            )

    @classmethod
    def none(cls, why: str, reason: str = "") -> Cell:
        """The cell of a release without a guarantee: the code that says why.

        `reason` says it in more detail than the sentence of the code.
        """
        code = Code(why)
        return cls(Standing.NONE, reason or str(code), why_none=code)

    @property
    def has_epsilon(self) -> bool:
        """Whether a ledger counts it; what a paper claims is counted as nothing."""
        return self.standing.has_epsilon

    def assuming(self, *more: Code) -> Cell:
        """The same guarantee under these assumptions too, if there is one."""
        if not self.has_epsilon:
            return self
        return replace(self, assumes=tuple(dict.fromkeys((*self.assumes, *more))))


Cells = Mapping[CellName, Cell]


@dataclass(frozen=True)
class Part:
    """What leaves in one phase, in words, and when."""

    what: str
    when: str
    first: int = 0  # round


@dataclass(frozen=True)
class Release:
    """One thing that leaves clients or is published, with its guarantees."""

    what: str
    seen_by: str
    when: str
    cells: Cells
    group: str = EVERYONE
    rounds: range | None = None  # in which it is made; None: in all
    # For readers, like the texts above; no client agrees to these.
    channel: str = ""  # over which reports travel, if that is known
    parts: tuple[Part, ...] = ()  # by phase, where one guarantee is for several

    def __post_init__(self) -> None:
        missing = ["/".join(name) for name in CELLS if name not in self.cells]
        if missing:
            raise BadValue(
                f"release '{self.what}' says nothing for {', '.join(missing)}"
            )

    def is_made_in(self, round: int) -> bool:
        """Whether the release is made in this round."""
        return self.rounds is None or round in self.rounds

    def times(self, rounds: Collection[int]) -> int:
        """How often a client made it that took part in these rounds."""
        own = self.rounds
        return len(rounds) if own is None else sum(one in own for one in rounds)

    def leaving(self) -> tuple[Part, ...]:
        """What leaves, one line per phase, in the order of the rounds."""
        parts = self.parts or (Part(self.what, self.when),)
        return tuple(sorted(parts, key=lambda part: part.first))

    def named(self, phase: int) -> str:
        """What leaves in a round of the phase with this index."""
        return self.parts[phase].what if self.parts else self.what

    @property
    def names(self) -> set[str]:
        """What an entry of a ledger may call it: as a whole, or one of its parts."""
        return {self.what, *(part.what for part in self.parts)}

    def guarantee(self, name: CellName) -> Cell:
        """The cell of this name, or one with an epsilon that implies it."""
        held = [self.cells[other] for other in implying(name)]
        return next((cell for cell in held if cell.has_epsilon), held[0])

    def assuming(self, *more: Code) -> Release:
        """The same release, each of its guarantees under these assumptions too."""
        cells = {name: cell.assuming(*more) for name, cell in self.cells.items()}
        return replace(self, cells=cells)


def implying(name: CellName) -> list[CellName]:
    """The cell itself, then those whose guarantee holds for it too.

    What holds for a whole user holds for each of the user's interactions. What holds
    against the server with the relay holds against the server, and what holds against
    the server holds against readers of the model. Never the other way round.

    >>> [f"{unit}/{view}" for unit, view in implying((Unit.USER, View.SERVER))]
    ['user/server', 'user/collusion']
    """
    unit, view = cell_name(*name)  # words would pass for their names
    own = [Unit.USER] if unit is Unit.USER else [Unit.ITEM, Unit.USER]
    views = [*View]
    return [*product(own, views[views.index(view) :])]


def of_one_operator(releases: Iterable[Release], why: str) -> tuple[Release, ...]:
    """The same releases where one of two operators sees what both see together.

    The server's view is that of a collusion then; the code `why` says so.
    """
    return tuple(replace(one, cells=_collusive(one.cells, why)) for one in releases)


def _collusive(cells: Cells, why: str) -> Cells:
    found = dict(cells)
    for unit, view in cells:
        if view is View.SERVER:
            both = cells[unit, View.COLLUSION]
            reason = f"{both.reason}; {Code(why)}"
            found[unit, view] = (
                replace(both, reason=reason) if both.has_epsilon else Cell.none(why)
            )
    return found


def cell_name(unit: str, view: str) -> CellName:
    """The unit and the view of these words; refuses others."""
    check.one_of([*Unit], unit=unit)
    check.one_of([*View], view=view)
    return Unit(unit), View(view)


def stretches(rounds: int, made: Iterable[range | None]) -> tuple[range, ...]:
    """Stretches of a run in which all rounds have the same releases.

    >>> stretches(50, [range(2), range(2, 50), None])
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
