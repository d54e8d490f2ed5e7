"""What somebody gets to see, and under which guarantee.

A `Release` has a `Cell` for each unit and view. Cells of the usual protections are made
by `unprotected`, `summed` and `local`, from the event of the mechanism itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tacit.errors import BadValue
from tacit.plan import Plan
from tacit.sampling import EVERYONE

if TYPE_CHECKING:
    from dp_accounting import DpEvent


class Unit(StrEnum):
    """What one person's guarantee covers."""

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
    """How much a figure is worth."""

    PROVEN = "PROVEN"  # a theorem or test is cited
    CLAIMED = "CLAIMED"  # a paper says so, we have not shown it
    NONE = "NONE"  # no guarantee


@dataclass(frozen=True)
class Cell:
    """The guarantee of one release for one unit and view."""

    standing: Standing
    reason: str  # the theorem or test cited, or why there is no guarantee
    event: DpEvent | None = None
    adjacency: Adjacency = Adjacency.ZERO_OUT
    assumes: str = "nothing"

    def __post_init__(self) -> None:
        if (self.event is None) != (self.standing is Standing.NONE):
            raise BadValue(
                f"standing={self.standing} with event={self.event}: a guarantee needs "
                "an event, and no guarantee has none"
            )

    @classmethod
    def none(cls, reason: str) -> Cell:
        """No guarantee, and why."""
        return cls(Standing.NONE, reason)


Cells = Mapping[tuple[Unit, View], Cell]


@dataclass(frozen=True)
class Release:
    """One thing that leaves devices or is published."""

    what: str
    seen_by: str
    when: str
    cells: Cells
    group: str = EVERYONE

    def __post_init__(self) -> None:
        missing = [f"{u}/{v}" for u in Unit for v in View if (u, v) not in self.cells]
        if missing:
            raise BadValue(
                f"release '{self.what}' says nothing for {', '.join(missing)}"
            )


def unprotected(reason: str) -> Cells:
    """Cells that promise nothing, for every unit and view."""
    return {(unit, view): Cell.none(reason) for unit in Unit for view in View}


def summed(plan: Plan, event: DpEvent, *, reason: str, group: str = EVERYONE) -> Cells:
    """Cells of a noisy sum that releases `event` in every round.

    What is published earns the sampler's amplification. The server knows the cohorts,
    so its view counts every participation; it has a guarantee only if somebody else
    adds the noise. An aggregator that sides with the server shows it every report.
    """
    published = plan.sampler.event(event, group=group, plan=plan)
    seen = _repeated(event, plan.sampler.most_participations(plan))
    if plan.channel == "secure_sum":
        trusts = "trusted aggregator"
        server = Cell(Standing.PROVEN, reason, seen, assumes=trusts)
        collusion = Cell.none("an aggregator that colludes shows every report")
    else:
        trusts = "the server adds the noise and shows nobody the reports"
        server = Cell.none(f"over '{plan.channel}' the server sees every report bare")
        collusion = server
    release = Cell(Standing.PROVEN, reason, published, assumes=trusts)
    views = {View.RELEASE: release, View.SERVER: server, View.COLLUSION: collusion}
    return {(unit, view): cell for unit in Unit for view, cell in views.items()}


def local(plan: Plan, event: DpEvent, *, reason: str) -> Cells:
    """Cells of reports that each device protects itself, whoever looks."""
    seen = _repeated(event, plan.sampler.most_participations(plan))
    cell = Cell(Standing.PROVEN, reason, seen, Adjacency.REPLACE_ONE)
    return {(unit, view): cell for unit in Unit for view in View}


def _repeated(event: DpEvent, times: int) -> DpEvent:
    from dp_accounting import SelfComposedDpEvent

    return event if times == 1 else SelfComposedDpEvent(event, times)
