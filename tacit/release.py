"""What somebody gets to see, and under which guarantee.

A `Release` has a `Cell` for each unit and view. Cells of the usual protections are made
by `unprotected`, `summed`, `local` and `shuffled`, from the mechanism's own event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tacit.errors import BadValue
from tacit.plan import Plan
from tacit.sampling import EVERYONE, FixedSize, composed

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
    published_epsilon: float | None = None  # a paper's own figure, never called epsilon
    each: DpEvent | None = None  # of one participation, where `event` is n of them

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
    rounds: range | None = None  # in which it is made; None: in all

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
    adjacency = _adjacency(plan)
    seen = composed(event, plan.sampler.most_participations(plan))
    if plan.channel == "secure_sum":
        trusts = "trusted aggregator"
        server = Cell(Standing.PROVEN, reason, seen, adjacency, trusts, each=event)
        collusion = Cell.none("an aggregator that colludes shows every report")
    else:
        trusts = "the server adds the noise and shows nobody the reports"
        server = Cell.none(f"over '{plan.channel}' the server sees every report bare")
        collusion = server
    release = Cell(Standing.PROVEN, reason, published, adjacency, trusts)
    views = {View.RELEASE: release, View.SERVER: server, View.COLLUSION: collusion}
    return {(unit, view): cell for unit in Unit for view, cell in views.items()}


def local(plan: Plan, event: DpEvent, *, reason: str) -> Cells:
    """Cells of reports that each device protects itself, whoever looks."""
    seen = composed(event, plan.sampler.most_participations(plan))
    cell = Cell(Standing.PROVEN, reason, seen, Adjacency.REPLACE_ONE, each=event)
    return {(unit, view): cell for unit in Unit for view in View}


def shuffled(plan: Plan, epsilon: float, *, messages: int, reason: str) -> Cells:
    """Cells of local reports that a relay cuts into messages of `epsilon` each.

    Whoever sees what the relay delivers does not know whose a message is. That is worth
    something only if enough people are mixed: the plan's `min_contributors`, below
    which the relay delivers nothing. A relay that sides with the server undoes it.

    Assumes: a person's messages are independent of each other, given their data, and
    the j-th of everyone comes from the same randomizer.
    """
    from tacit.accounting.events import ShuffledDpEvent, pure_local

    bare = local(plan, composed(pure_local(epsilon), messages), reason=reason)
    if not is_mixed(plan):
        return bare
    each = composed(ShuffledDpEvent(epsilon, plan.min_contributors), messages)
    seen = composed(each, plan.sampler.most_participations(plan))
    mixed = Cell(
        Standing.PROVEN,
        f"{reason}; shuffled among clones (Feldman, McMillan and Talwar 2021)",
        seen,
        Adjacency.REPLACE_ONE,
        "a relay that does not side with the server; at least "
        f"{plan.min_contributors} honest devices in every round",
        each=each,
    )
    return {
        (unit, view): cell if view is View.COLLUSION else mixed
        for (unit, view), cell in bare.items()
    }


def is_mixed(plan: Plan) -> bool:
    """Whether a relay hides every message among those of others, and promises it."""
    return plan.channel == "shuffle" and plan.min_contributors > 1


def given(value: float | None, name: str) -> float:
    """The value of a setting that may follow from a plan; refused while it does not."""
    if value is None:
        raise BadValue(
            f"{name} is not set: set it, or give the plan a target (target_epsilon and "
            "delta) and calibrate the method to it"
        )
    return value


def noise_for_target(
    plan: Plan, event: Callable[[float], DpEvent] | None = None
) -> float:
    """The least noise of a round, over its sensitivity, that meets the plan's target.

    For `summed` releases, in the release view, for the group that spends the most. A
    method whose rounds differ says what a whole run costs at a given noise: `event`.
    """
    from dp_accounting import GaussianDpEvent

    from tacit.accounting.calibration import calibrate

    target, delta = _target(plan)
    if delta is None:
        raise BadValue("Gaussian noise needs a delta: set privacy.delta, such as 1e-6")
    adjacency = _adjacency(plan)
    if event is not None:
        return calibrate(event, target=target, delta=delta, adjacency=adjacency)
    return max(
        calibrate(
            lambda z, group=group: plan.sampler.event(  # type: ignore[misc]
                GaussianDpEvent(z), group=group, plan=plan
            ),
            target=target,
            delta=delta,
            adjacency=adjacency,
        )
        for group in _different_groups(plan)
    )


def epsilon_a_report(plan: Plan) -> float:
    """The pure epsilon of one local report that meets the plan's target."""
    return _target(plan)[0] / plan.sampler.most_participations(plan)


def _different_groups(plan: Plan) -> list[str]:
    """One group for each different event that the sampler hands out."""
    from dp_accounting import GaussianDpEvent

    one = GaussianDpEvent(1.0)
    events = {
        repr(plan.sampler.event(one, group=group, plan=plan)): group
        for group in plan.groups
    }
    return [*events.values()]


def _adjacency(plan: Plan) -> Adjacency:
    """Zero-out, except for cohorts of fixed size: their size gives a removal away."""
    is_fixed = isinstance(plan.sampler, FixedSize)
    return Adjacency.REPLACE_ONE if is_fixed else Adjacency.ZERO_OUT


def _target(plan: Plan) -> tuple[float, float | None]:
    if plan.target_epsilon is None:
        raise BadValue(
            "privacy needs noise: set privacy.target_epsilon, or the method's own "
            "noise_multiplier (central) or epsilon (local)"
        )
    return plan.target_epsilon, plan.delta
