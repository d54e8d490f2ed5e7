"""What the server holds after a round follows from the delivery, and from nothing else.

A run is played twice over different histories, and a third time with nobody. Every
round is announced the same: the noisy total if a mechanism adds noise, else the reports
as they were sent. All three servers must then agree in every round; one that took
something from bare sums, from the clients or from what an object remembers does not.

Nothing is left to chance: an honest method never fails.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from tacit.audits.canaries import Only
from tacit.audits.checks import Check
from tacit.audits.empty_report import distance
from tacit.audits.small_world import in_one_group, small_data
from tacit.data.federated_data import FederatedData
from tacit.keys import Key
from tacit.mechanisms.sum_mechanism import SumMechanism
from tacit.method import Method, Server
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.transport.channels import (
    Carrier,
    Delivery,
    Direct,
    RoundContext,
    SecureSum,
)
from tacit.transport.messages import Broadcast, Reports
from tacit.tree import Array, Arrays

_FEW, _USERS = 20, 12  # items and users, where any number does
_HELD = [0, 3, 4]  # what everybody has in the second run
_SAME = 1e-9  # what rounding may change, relatively


def check_replay(
    method: Method, plan: Plan, *, key: Key, data: FederatedData | None = None
) -> Check:
    """Hold the servers of runs that announce the same against each other."""
    data = data or small_data(_FEW)
    readers, gaps = method.aggregators(plan), list[float]()
    carriers: tuple[Carrier, ...] = (Direct(), SecureSum())
    for carrier in carriers:
        if all(carrier.delivers in reader.accepts for reader in readers):
            over = replace(plan, channel=carrier.name)
            gaps += [_gap(method, over, carrier, key, data)]
    return Check.at_most(
        "change of the server by what was not delivered",
        max(gaps, default=math.inf),
        claimed=0.0,
        slack=_SAME,
        detail="relative, every round; the same announced, other histories or nobody, "
        "by a fresh copy of the method",
    )


def _gap(
    method: Method, plan: Plan, carrier: Carrier, key: Key, data: FederatedData
) -> float:
    plan = in_one_group(plan, _USERS)
    kept = _Kept(carrier)
    first = _played(method, plan, data.repeated(_USERS), key, kept)
    again = _Again(carrier, kept.said)
    other = data.all_holding(_HELD, _USERS)
    gaps = [0.0]
    for nobody in (False, True):
        fresh = copy.deepcopy(method)  # a method that remembers forgets it here
        found = _played(fresh, plan, other, key, again, nobody=nobody)
        gaps += [_apart(one, two) for one, two in zip(first, found, strict=True)]
    return max(gaps)


def _apart(one: Server, other: Server) -> float:
    pairs = ((one.weights, other.weights), (one.memory, other.memory))
    if any(_kinds(a) != _kinds(b) for a, b in pairs):
        return math.inf
    return max(distance(a, b) for a, b in pairs)


def _kinds(arrays: Arrays) -> dict[str, tuple[Any, ...]]:
    return {n: (value.dtype, value.shape) for n, value in arrays.items()}


def _played(
    method: Method,
    plan: Plan,
    data: FederatedData,
    key: Key,
    channel: Carrier,
    *,
    nobody: bool = False,
) -> list[Server]:
    """The server after each round of the plan."""
    code = int(np.argmax([*plan.groups.values()]))
    simulation = Simulation(
        cast(Method, _Announcing(method, key)),
        plan,
        data.catalog,
        data.profiles,
        data.shards,
        key,
        groups=np.full(_USERS, code, np.int64),
        ledger=Only(np.full(_USERS, not nobody)),
        channel=channel,
    )
    return [state.server for state, _ in simulation.run(simulation.start())]


class _Announcing:
    """The method, in rounds whose noisy total is decided beforehand."""

    def __init__(self, method: Method, key: Key) -> None:
        self._method, self._key = method, key.at("announced")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def context(self, server: Server, broadcast: Broadcast, key: Key) -> RoundContext:
        context = self._method.context(server, broadcast, key)
        if context.mechanism is None:
            return context
        own = self._key.at("round", server.round)
        return replace(context, mechanism=_Decided(context.mechanism, own))


class _Decided:
    """A mechanism whose noisy total is the noise alone, whatever was summed."""

    def __init__(self, mechanism: SumMechanism, key: Key) -> None:
        self._mechanism, self._key = mechanism, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)

    def add(self, total: Arrays, key: Key) -> dict[str, Array]:
        zeros = {name: np.zeros_like(value) for name, value in total.items()}
        return self._mechanism.add(zeros, self._key)


class _Kept:
    """A channel that also keeps what every report said."""

    def __init__(self, channel: Carrier) -> None:
        self.channel, self.name, self.delivers = channel, channel.name, channel.delivers
        self.said: list[list[Reports]] = []

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        self.said.append([*chunks])
        return self.channel.carry(self.said[-1], context)


@dataclass
class _Again:
    """A channel that carries earlier reports where noise does not stand for them."""

    channel: Carrier
    said: list[list[Reports]]

    @property
    def name(self) -> str:
        return self.channel.name

    @property
    def delivers(self) -> type[Delivery]:
        return self.channel.delivers

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        own = [*chunks]  # clients compute, as in any round
        said = self.said.pop(0) if context.mechanism is None else own
        if context.mechanism is None:
            self.said.append(said)  # the next run hears it, too
        return self.channel.carry(said, context)
