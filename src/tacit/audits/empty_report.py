"""A report of zeros changes nothing: sums are divided by the planned size.

Whoever divides by the realised cohort lets one user's absence move everyone else's
weight; then the sensitivity of the result is no longer one clip.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.audits.checks import Check
from tacit.audits.small_world import small_data
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.transport.channels import Carrier, Direct, SecureSum
from tacit.transport.messages import Layout, Reports
from tacit.tree import Arrays, Tree

_FEW = 20  # items, where any number does
_SAME = 1e-9  # what rounding may change, relatively


def check_empty_report(method: Method, plan: Plan) -> Check:
    """Hold the server after a round against one with a further report of zeros."""
    carriers: tuple[Carrier, ...] = (Direct(), SecureSum())
    readers = method.aggregators(plan)
    gaps = [
        _gap(method, plan, carrier)
        for carrier in carriers
        if all(carrier.delivers in reader.accepts for reader in readers)
    ]
    return Check.at_most(
        "change of the server by an empty report",
        max(gaps),
        claimed=0.0,
        slack=_SAME,
        detail="relative, over direct and secure_sum; a sum over the realised cohort "
        "depends on who took part",
    )


def _gap(method: Method, plan: Plan, channel: Carrier) -> float:
    """How far a further report of zeros moves what the server keeps, in any round."""
    key, catalog, gaps = Key.from_seed(1), small_data(_FEW).catalog, list[float]()
    plan = replace(plan, channel=channel.name)
    server = method.start(plan, catalog, key.at("start"))
    while not method.is_over(server):
        round_ = server.round
        broadcast = method.broadcast(server)
        context = method.context(server, broadcast, key.at("channel", round_))
        layout = context.layout
        one, two = (
            method.aggregate(server, channel.carry(reports, context), context)
            # The same key for both, so that their noise is the same.
            for reports in ([ones(layout)], [ones(layout), _zeros(layout)])
        )
        gaps += [distance(one.weights, two.weights), distance(one.memory, two.memory)]
        server = one
    return max(gaps)


def distance(one: Arrays, other: Arrays) -> float:
    """The largest difference, relative to the largest value of its array or to 1."""
    sizes = {name: max(1.0, np.abs(a).max(initial=0.0)) for name, a in one.items()}
    gaps = [
        np.abs(np.subtract(one[n], other[n], dtype=np.float64)).max(initial=0.0) / s
        for n, s in sizes.items()
    ]
    return float(max(gaps, default=0.0))


def _zeros(layout: Layout) -> Reports:
    """One report of this layout, all zeros."""
    leaves = {
        name: slot.leaf(
            {part: np.zeros((1, *s), d) for part, (d, s) in slot.stored().items()}
        )
        for name, slot in layout.slots.items()
    }
    return Reports(Tree(leaves))


def ones(layout: Layout) -> Reports:
    """One report of this layout, all ones."""
    zeros = _zeros(layout).tree.leaves.items()
    return Reports(Tree({name: leaf.map(np.ones_like) for name, leaf in zeros}))
