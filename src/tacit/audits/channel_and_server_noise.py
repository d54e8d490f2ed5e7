"""Whoever makes a sum bounds it alike and adds the same noise.

A round has one context: the trusted sum and a server that sums by itself are handed the
same mechanism and the same key. So the server after a round is the same over `direct`
as over `secure_sum`, number for number. A method that derives its noise a second time,
from another clip or another state, is caught here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.audits.checks import Check
from tacit.audits.empty_report import distance, ones
from tacit.audits.small_world import small_data
from tacit.keys import Key
from tacit.method import Method, Server
from tacit.plans import Plan
from tacit.transport.channels import Carrier, Direct, SecureSum
from tacit.transport.messages import Layout, Reports
from tacit.tree import Grouped, Leaf, Tree

_FEW = 20  # items, where any number does
_SAME = 1e-9  # what rounding may change, relatively
_LARGE = 1e3  # beyond any clip, so that the bound shows


def check_same_sum(method: Method, plan: Plan) -> Check:
    """Hold the server after each round over `direct` against that over `secure_sum`."""
    both: tuple[Carrier, ...] = (Direct(), SecureSum())
    readers = method.aggregators(plan)
    can = all(one.delivers in reader.accepts for one in both for reader in readers)
    return Check.at_most(
        "difference between a trusted sum and the server's own",
        _gap(method, plan, both) if can else 0.0,
        claimed=0.0,
        slack=_SAME,
        detail="relative, largest of all rounds; one report beyond every clip, the "
        "same key"
        if can
        else "not compared: the method cannot read both",
    )


def _gap(method: Method, plan: Plan, channels: tuple[Carrier, ...]) -> float:
    key, catalog, gaps = Key.from_seed(2), small_data(_FEW).catalog, [0.0]
    plan = replace(plan, channel="secure_sum")
    server = method.start(plan, catalog, key.at("start"))
    while not method.is_over(server):
        fresh = key.at("round", server.round)
        one, other = (_after(method, server, c, fresh) for c in channels)
        gaps += [distance(one.weights, other.weights)]
        gaps += [distance(one.memory, other.memory)]
        server = other  # both are alike, or the check has failed already
    return max(gaps)


def _after(method: Method, server: Server, channel: Carrier, key: Key) -> Server:
    context = method.context(server, method.broadcast(server), key)
    delivery = channel.carry([_large(context.layout)], context)
    return method.aggregate(server, delivery, context)


def _large(layout: Layout) -> Reports:
    """One report beyond every clip, in one group where there are groups."""
    leaves = ones(layout).tree.leaves.items()
    return Reports(Tree({n: _in_one(leaf) for n, leaf in leaves}).scale(_LARGE))


def _in_one(leaf: Leaf) -> Leaf:
    if not isinstance(leaf, Grouped):
        return leaf
    return Grouped(leaf.inner, np.eye(*leaf.shares.shape, dtype=leaf.shares.dtype))
