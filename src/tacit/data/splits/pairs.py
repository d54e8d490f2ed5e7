"""The distinct (user, item) pairs of a log: what splits choose among."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.splits.split import Heldout
from tacit.errors import BadValue
from tacit.keys import Key

Mask = Bool[np.ndarray, "pairs"]
Draws = UInt64[np.ndarray, "pairs"]
Numbers = Int64[np.ndarray, "pairs"]
Times = Int64[np.ndarray, "events"]
PerUser = Int64[np.ndarray, "users"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The distinct (user, item) pairs of a log, by user and then item."""

    log: Interactions

    @cached_property
    def _found(self) -> tuple[Numbers, Numbers, Int64[np.ndarray, "events"]]:
        code = self.log.users.astype(np.int64) * self.log.n_items + self.log.items
        return np.unique(code, return_index=True, return_inverse=True)

    @cached_property
    def users(self) -> Numbers:
        """The user of each pair."""
        return self._found[0] // self.log.n_items

    @cached_property
    def per_user(self) -> PerUser:
        """How many distinct items each user has."""
        return self.count(np.ones(len(self.users), bool))

    @property
    def of_events(self) -> Int64[np.ndarray, "events"]:
        """The pair of each event."""
        return self._found[2]

    def count(self, mask: Mask) -> PerUser:
        """How many of the pairs in `mask` each user has."""
        return np.bincount(self.users[mask], minlength=self.log.n_users)

    def draws(self, key: Key) -> Draws:
        """One random word per pair, from its user's own stream."""
        keys = key.each(np.arange(self.log.n_users))
        return keys.bits_ragged(self.per_user)

    def ranks(self, *keys: Numbers | Draws) -> Numbers:
        """The rank 0, 1, … of each pair among its user's, the last of `keys` first."""
        order = np.lexsort((*keys, self.users))
        starts = np.cumsum(self.per_user) - self.per_user
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order)) - starts[self.users]
        return ranks

    def last(self, of_events: Times) -> Numbers:
        """The largest number of each pair's events: its last time, say."""
        found = np.full(len(self.users), np.iinfo(np.int64).min)
        np.maximum.at(found, self.of_events, of_events)
        return found

    def reach(self, value: float) -> Mask:
        """Which pairs have an event of at least `value`."""
        is_high = self.log.values >= value
        high = np.zeros(len(self.users), bool)
        high[self.of_events[is_high]] = True
        return high

    def shards(self, users: Int64[np.ndarray, "users"], mask: Mask) -> Shards:
        """The events of these users' pairs in `mask`, repeats included."""
        return Shards.of(self.log.keep(mask[self.of_events]).take_users(users))

    def heldout(
        self,
        users: Int64[np.ndarray, "users"],
        seen: Mask,
        targets: Mask,
        disliked: Mask | None = None,
    ) -> Heldout:
        """These users with histories that keep repeats and targets that do not."""
        return Heldout(
            users,
            self.shards(users, seen),
            self._once(users, targets),
            None if disliked is None else self._once(users, disliked),
        )

    def _once(self, users: Int64[np.ndarray, "users"], mask: Mask) -> Shards:
        """The last event, which places the item, of these users' pairs in `mask`."""
        is_last = np.zeros(len(self.log), bool)
        is_last[self.last(np.arange(len(self.log)))[mask]] = True
        return Shards.of(self.log.keep(is_last).take_users(users))


def times_of(dataset: Dataset) -> Times:
    """The time of every event; refuses data without times."""
    times = dataset.interactions.times
    if times is None:
        raise BadValue(
            f"{dataset.name} has no times of events, so nothing in it is the latest; "
            "hold out random items instead, with split = 'new-users' or 'leave-one-out'"
        )
    return times


def portion(share: float, n: PerUser) -> PerUser:
    """`share` of each n, rounded down to at least one."""
    # The slack keeps 0.29 of 100 from being 28.
    return np.maximum(1, (share * n + 1e-9).astype(np.int64))
