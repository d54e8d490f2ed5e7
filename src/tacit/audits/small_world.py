"""An invented catalog and users, as large as an audit needs."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from tacit.data.federated_data import FederatedData
from tacit.data.shards import Shards
from tacit.data.synthetic.world import World
from tacit.errors import Refused
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation

_FEW = 20  # items, where any number does
_USERS = 12  # different ones; an audit with more clients repeats them
# Catalog sizes that are tried, each about three times the last: an update of Gram has
# n(n+1)/2 numbers, one of federated popularity only n.
_ITEMS = (20, 60, 200, 500, 1_500, 4_500, 15_000)


@cache
def small_data(n_items: int) -> FederatedData:
    """Twelve invented users and this many items; the same on every call."""
    world = World(
        users=_USERS,
        items=n_items,
        events_per_user=min(n_items / 2, 5),
        fewest_events=1,
        topics=min(8, n_items),
    )
    data = world.dataset("audit")
    return FederatedData(data.catalog, data.profiles, Shards.of(data.interactions))


def simulation_of(
    method: Method, plan: Plan, *, n_items: int = _FEW, one_operator: str = ""
) -> Simulation:
    """The run of a plan with invented users; refuses what any run would."""
    data, sizes = small_data(n_items).repeated(plan.population), [*plan.groups.values()]
    return Simulation(
        method.for_catalog(data.catalog),
        plan,
        data.catalog,
        data.profiles,
        data.shards,
        Key.from_seed(0),
        groups=np.repeat(np.arange(len(sizes)), sizes),
        one_operator=one_operator,
    )


def in_one_group(plan: Plan, users: int) -> Plan:
    """The plan with so many users, all in the first public group that has members."""
    first = next(group for group, size in plan.groups.items() if size)
    groups = {group: users * (group == first) for group in plan.groups}
    return replace(plan, population=users, groups=groups)


def data_for(method: Method, plan: Plan, *, coordinates: int) -> FederatedData:
    """The smallest data on which an update has at least `coordinates` numbers."""
    found = 0
    for n_items in _ITEMS:
        data = small_data(n_items)
        found = _coordinates(method, plan, data)
        if found >= coordinates:
            return data
    raise Refused(
        f"an update of {type(method).__name__} has {found} coordinates with "
        f"{_ITEMS[-1]} items; an audit of its sums needs {coordinates}"
    )


def _coordinates(method: Method, plan: Plan, data: FederatedData) -> int:
    """The numbers in an update of the first round, factored leaves written out."""
    slots = method.layout(plan, data.catalog, round=0).slots.values()
    return sum(math.prod(slot.shape) // (slot.groups or 1) for slot in slots)
