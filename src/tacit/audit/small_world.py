"""An invented catalog and users, as large as an audit needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from tacit.data.catalog import Catalog, Profiles
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.synthetic.world import World
from tacit.errors import Refused
from tacit.method import Method
from tacit.plan import Plan

_PEOPLE = 12  # different ones; more clients repeat them
_ITEMS = (20, 60, 200, 500, 1_500, 4_500, 15_000)  # the sizes that are tried


@dataclass(frozen=True, eq=False)
class Place:
    """Where an audit happens: items, users and what their clients hold."""

    catalog: Catalog
    profiles: Profiles
    shards: Shards

    def people(self, n: int) -> Place:
        """The same items, and `n` clients: the same few users again and again."""
        rows = np.arange(n) % len(self.shards)
        return Place(self.catalog, self.profiles.take(rows), self.shards.take(rows))

    def holding(self, items: list[int], n: int) -> Place:
        """The same items, and `n` clients that all hold exactly these."""
        users = np.repeat(np.arange(n), len(items))
        log = Interactions.of_columns(
            users,
            np.tile(np.asarray(items, np.int64), n),
            n_users=n,
            n_items=len(self.catalog),
        )
        return Place(self.catalog, self.people(n).profiles, Shards.of(log))


@cache
def small_place(n_items: int) -> Place:
    """A place with this many items."""
    world = World(
        users=_PEOPLE,
        items=n_items,
        events_per_user=min(n_items / 2, 5),
        fewest_events=1,
        topics=min(8, n_items),
    )
    data = world.dataset("audit")
    return Place(data.catalog, data.profiles, Shards.of(data.interactions))


def place_for(method: Method, plan: Plan, *, coordinates: int) -> Place:
    """The smallest place in which an update has at least so many coordinates."""
    found = 0
    for n_items in _ITEMS:
        place = small_place(n_items)
        found = _coordinates(method, plan, place)
        if found >= coordinates:
            return place
    raise Refused(
        f"an update of {type(method).__name__} has {found} coordinates with "
        f"{_ITEMS[-1]} items; an audit of its sums needs {coordinates}"
    )


def _coordinates(method: Method, plan: Plan, place: Place) -> int:
    """How many numbers an update of the first round stands for, written out."""
    slots = method.layout(plan, place.catalog, round=0).slots.values()
    return sum(math.prod(slot.shape) // (slot.groups or 1) for slot in slots)
