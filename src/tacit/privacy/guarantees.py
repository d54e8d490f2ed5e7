"""Cells of the usual protections, made from the event of one round's mechanism.

unprotected   nothing protects the reports
summed        noise on a sum, added by somebody trusted or by the server
local         every client protects its own report
shuffled      the same, and a relay mixes the messages
set_of_items  the items that enough users have, found before the first round
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.codes import Code
from tacit.errors import Refused
from tacit.mechanisms.skellam import skellam_event
from tacit.plans import TICKETS, Plan
from tacit.release import (
    CELLS,
    EVERYONE,
    Adjacency,
    Cell,
    Cells,
    Release,
    Standing,
    View,
)
from tacit.sampling import FixedSize, composed
from tacit.transport.channels import channel

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


def unprotected(why: str, reason: str = "") -> Cells:
    """Cells that promise nothing, for every unit and view, and the code that says why.

    `reason` says it in more detail than the sentence of the code.
    """
    return dict.fromkeys(CELLS, Cell.none(why, reason))


def summed(plan: Plan, event: DpEvent, *, reason: str, group: str = EVERYONE) -> Cells:
    """Cells of a noisy sum that releases `event` in every round of the plan.

    What is published earns the sampler's amplification. The server knows the cohorts,
    so its view counts every participation.
    """
    # Amplification by sampling needs a secret cohort, and the server draws the cohort.
    each = _seen_by_a_server(plan, event)
    seen = composed(each, plan.sampler.most_participations(plan))
    if plan.is_masked:
        return _cells(plan, seen, seen, each=each, reason=reason)
    published = plan.sampler.event(event, group=group, plan=plan)
    return _cells(plan, published, seen, each=each, reason=reason)


def whole_run(plan: Plan, event: DpEvent, *, reason: str) -> Cells:
    """Cells of sums that release `event` together, whatever each of them costs."""
    seen = _seen_by_a_server(plan, event)
    published = seen if plan.is_masked else event
    return _cells(plan, published, seen, each=None, reason=reason)


def _cells(
    plan: Plan, published: DpEvent, seen: DpEvent, *, each: DpEvent | None, reason: str
) -> Cells:
    """The six cells of a noisy sum, as the plan's channel declares them."""
    views, adjacency = channel(plan.channel).sums, sum_adjacency(plan)
    cells = views.cells(published, seen, each=each, adjacency=adjacency, reason=reason)
    if not plan.is_masked:
        return cells
    honest = Code("honest_fraction", (plan.min_contributors, plan.least_honest))
    return {name: cell.assuming(honest) for name, cell in cells.items()}


def noise_event(plan: Plan, noise_multiplier: float) -> DpEvent:
    """The event of one sum of the plan whose noise has this multiplier."""
    from tacit.accounting.dp_events import GaussianDpEvent

    if plan.is_masked:
        return skellam_event(noise_multiplier)
    return GaussianDpEvent(noise_multiplier)


def share_that_hides(plan: Plan) -> float:
    """The noise of the fewest honest survivors of a masked sum over that of everyone.

    Variances of shares add up, and everyone's has the same.
    """
    return math.sqrt(max(0, plan.least_honest) / plan.cohort_size)


def _seen_by_a_server(plan: Plan, event: DpEvent) -> DpEvent:
    """What a sum's event is to the server, which may know some of the noise."""
    shares = plan.noise_shares
    if shares <= 1 and not plan.is_masked:
        return event
    from tacit.accounting.dp_events import GaussianDpEvent

    if not isinstance(event, GaussianDpEvent):
        raise Refused(
            f"{type(event).__name__} is not Gaussian noise, which is all that is added "
            f"over '{plan.channel}'; use another channel"
        )
    if plan.is_masked:
        return noise_event(plan, event.noise_multiplier * share_that_hides(plan))
    return GaussianDpEvent(event.noise_multiplier / math.sqrt(shares))


def local(plan: Plan, event: DpEvent, *, reason: str) -> Cells:
    """Cells of reports that each client protects itself, whoever looks."""
    seen = composed(event, plan.sampler.most_participations(plan))
    # A local randomizer compares any two inputs, an empty history among them.
    exchange = Adjacency.REPLACE_ONE
    cell = Cell(Standing.PROVEN, reason, seen, exchange, each=event, is_local=True)
    return dict.fromkeys(CELLS, cell)


def shuffled(plan: Plan, epsilon: float, *, messages: int, reason: str) -> Cells:
    """Cells of local reports that a relay cuts into messages of `epsilon` each.

    Whoever sees what the relay delivers does not know whose message is whose. That is
    worth something only if messages of enough users are mixed: the plan's
    `min_contributors`, below which the relay delivers nothing, less those who may be
    one attacker's inventions. A relay that sides with the server undoes it.

    Assumes: a user's messages are independent of each other, given their data, and
    the j-th of everyone comes from the same randomizer.
    """
    from tacit.accounting.events import ShuffledDpEvent, pure_local

    bare = local(plan, composed(pure_local(epsilon), messages), reason=reason)
    if not plan.is_mixed:
        return bare
    # The count that is promised, not the count expected: fewer may turn up.
    each = composed(ShuffledDpEvent(epsilon, plan.least_honest), messages)
    seen = composed(each, plan.sampler.most_participations(plan))
    mixed = Cell(
        Standing.PROVEN,
        f"{reason}; the relay mixes the reports (Feldman, McMillan and Talwar 2021)",
        seen,
        Adjacency.REPLACE_ONE,
        (Code("relay_apart"), _enough(plan), _counted(plan)),
        each=each,
    )
    return {
        (unit, view): cell if view is View.COLLUSION else mixed
        for (unit, view), cell in bare.items()
    }


def _enough(plan: Plan) -> Code:
    """How many clients of a round are honest, at the least."""
    if not plan.assumed_sybils:
        return Code("honest_clients", (plan.least_honest,))
    counts = (plan.least_honest, plan.min_contributors, plan.assumed_sybils)
    return Code("honest_clients_beside_sybils", counts)


def _counted(plan: Plan) -> Code:
    """What makes the number of uploads that a relay counts one of clients."""
    if plan.counted_by == TICKETS:
        return Code("ticket_per_user")
    if plan.assumed_sybils:
        return Code("few_uploads_invented", (plan.assumed_sybils,))
    return Code("uploads_not_invented")


def set_of_items(plan: Plan, event: DpEvent) -> Release:
    """The release of items that were selected under noise, for a plan's `before`."""
    if plan.noise_shares > 1 or plan.is_masked:
        raise Refused(
            "items are selected by one aggregator that sees the reports, and there is "
            f"none over '{plan.channel}'; declare the items, or use channel = "
            "'secure_sum'"
        )
    if sum_adjacency(plan) is not Adjacency.ZERO_OUT:
        raise Refused(
            "selected items have an account under zero_out only, and a cohort of fixed "
            "size has one under replace_one; use another sampler"
        )
    reason = "Gaussian noise on counts of named items, and a threshold that the items "
    reason += "of one user pass with a small probability (Gopi et al. 2020)"
    cells = whole_run(plan, event, reason=reason)
    when = "once, before the first round"
    return Release("set of items", "everyone", when, cells, channel=plan.channel)


def sum_adjacency(plan: Plan) -> Adjacency:
    """Zero-out, except for cohorts of fixed size: their size gives a removal away."""
    is_fixed = isinstance(plan.sampler, FixedSize)
    return Adjacency.REPLACE_ONE if is_fixed else Adjacency.ZERO_OUT
