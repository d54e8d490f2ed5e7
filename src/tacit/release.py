"""What somebody gets to see, and under which guarantee: the words of the account.

    Unit        whom a guarantee covers: a whole user, or one interaction
    View        whose eyes: readers of the model, the server, the server with the relay
    Adjacency   what a neighbouring data set is
    Standing    what a figure is worth
    Cell        the guarantee of one release for one unit and one view
    Release     one thing that leaves clients or is published, with its six cells

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
    """How well a figure is founded: proven, claimed by a paper, or not at all."""

    NOTHING = "NOTHING"  # of an empty composition: neither a figure nor a lack of one
    PROVEN = "PROVEN"  # a theorem or test is cited
    CLAIMED = "CLAIMED"  # a paper says so, we have not shown it
    NONE = "NONE"  # no guarantee


CellName = tuple[Unit, View]
CELLS: tuple[CellName, ...] = tuple(product(Unit, View))


@dataclass(frozen=True)
class Cell:
    """The guarantee of one release for one unit and view.

    `event` is what a whole run costs. Where a participation costs `each` and the run as
    many of them as there are participations, a ledger counts those; where `each` is
    None the run costs `event` from the first participation on (a cohort drawn in secret
    is accounted for over all rounds, whether or not one was in it).

    `is_local` says that every client protects its own report and that nothing else is
    relied on: what is done with the reports afterwards costs nothing. It is not read
    off the adjacency, which a sum over a cohort of fixed size shares with reports.
    """

    standing: Standing
    reason: str  # the theorem or test cited, or why there is no guarantee
    event: DpEvent | None = None
    adjacency: Adjacency = Adjacency.ZERO_OUT
    assumes: str = "nothing"
    published_epsilon: float | None = None  # a paper's own figure, never called epsilon
    each: DpEvent | None = None
    is_local: bool = False

    def __post_init__(self) -> None:
        if (self.event is None) != (self.standing is Standing.NONE):
            raise BadValue(
                f"standing={self.standing} with event={self.event}: a guarantee needs "
                "an event, and no guarantee has none"
            )

    @classmethod
    def none(cls, reason: str) -> Cell:
        """The cell of a release without a guarantee, and the reason."""
        return cls(Standing.NONE, reason)

    @property
    def is_proven(self) -> bool:
        """Whether a ledger may count it; what a paper claims is counted as nothing."""
        return self.standing is Standing.PROVEN


Cells = Mapping[CellName, Cell]


@dataclass(frozen=True)
class Release:
    """One thing that leaves clients or is published, with its guarantees."""

    what: str
    seen_by: str
    when: str
    cells: Cells
    group: str = EVERYONE
    rounds: range | None = None  # in which it is made; None: in all

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

    def guarantee(self, name: CellName) -> Cell:
        """The cell of this name, or a proven one that implies it where it has none."""
        held = [self.cells[other] for other in implying(name)]
        return next((cell for cell in held if cell.is_proven), held[0])


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


def of_one_operator(releases: Iterable[Release], reason: str) -> tuple[Release, ...]:
    """The same releases where one of two operators sees what both see together.

    The server's view is that of a collusion then, and `reason` says why.
    """
    return tuple(replace(one, cells=_collusive(one.cells, reason)) for one in releases)


def _collusive(cells: Cells, reason: str) -> Cells:
    found = dict(cells)
    for unit, view in cells:
        if view is View.SERVER:
            both = cells[unit, View.COLLUSION]
            said = reason if both.event is None else f"{both.reason}; {reason}"
            found[unit, view] = replace(both, reason=said)
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
