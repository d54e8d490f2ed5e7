"""The log: who took what, when, and how much. Private; it exists in simulation only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float32, Int32, Int64
from numpy.typing import ArrayLike

from tacit.data.ragged import Ragged
from tacit.errors import BadValue


@dataclass(frozen=True, eq=False)
class Interactions:
    """Events in columns, grouped by user; a user's events stand in order of time.

    Without times a user's events keep the order of the file. The same user and item may
    occur again: repeats are kept, and `distinct` drops them.
    """

    offsets: Int64[np.ndarray, "users_and_one"]
    items: Int32[np.ndarray, "events"]
    values: Float32[np.ndarray, "events"]
    times: Int64[np.ndarray, "events"] | None
    n_items: int

    def __post_init__(self) -> None:
        Ragged(self.offsets, self.items)  # checks the offsets
        if (
            len(self.items)
            and not 0 <= self.items.min() <= self.items.max() < self.n_items
        ):
            raise BadValue(f"item indices must be in [0, {self.n_items})")
        if not np.isfinite(self.values).all():
            raise BadValue("values must be finite; drop or repair NaN before")

    @classmethod
    def of_columns(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        *,
        values: ArrayLike | None = None,
        times: ArrayLike | None = None,
        n_users: int,
        n_items: int,
    ) -> Interactions:
        """Group events by user and, where times are given, order them by time."""
        who = np.asarray(users, np.int64)
        if len(who) and not 0 <= who.min() <= who.max() < n_users:
            raise BadValue(f"user indices must be in [0, {n_users})")
        what = np.asarray(items, np.int32)
        much = np.ones(len(who)) if values is None else np.asarray(values)
        when = None if times is None else np.asarray(times, np.int64)
        keys = (who,) if when is None else (when, who)
        order = np.lexsort(keys)  # stable: ties keep the order of the file
        return cls(
            np.searchsorted(who[order], np.arange(n_users + 1)).astype(np.int64),
            what[order],
            much[order].astype(np.float32),
            None if when is None else when[order],
            n_items,
        )

    def __len__(self) -> int:
        return len(self.items)

    @property
    def n_users(self) -> int:
        """How many users there are, those without events included."""
        return len(self.offsets) - 1

    @cached_property
    def users(self) -> Int32[np.ndarray, "events"]:
        """The user of each event."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.per_user)

    @property
    def per_user(self) -> Int64[np.ndarray, "users"]:
        """How many events each user has."""
        return np.diff(self.offsets)

    @property
    def per_item(self) -> Int64[np.ndarray, "items"]:
        """How many events each item has."""
        return np.bincount(self.items, minlength=self.n_items)

    def keep(self, mask: Bool[np.ndarray, "events"]) -> Interactions:
        """Only the events where `mask` is true; users and items keep their places."""
        counts = np.bincount(self.users[mask], minlength=self.n_users)
        return Interactions(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            self.items[mask],
            self.values[mask],
            None if self.times is None else self.times[mask],
            self.n_items,
        )

    def take_users(self, rows: ArrayLike) -> Interactions:
        """Only these users, in the order given; items keep their places."""
        ragged = Ragged(self.offsets, self.items)
        places = ragged.places(rows)
        lengths = ragged.lengths[np.asarray(rows, np.int64)]
        return Interactions(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            self.items[places],
            self.values[places],
            None if self.times is None else self.times[places],
            self.n_items,
        )

    def distinct(self) -> Interactions:
        """One event, the first, for each pair of user and item."""
        pair = self.users.astype(np.int64) * self.n_items + self.items
        first = np.zeros(len(self), bool)
        first[np.unique(pair, return_index=True)[1]] = True
        return self.keep(first)

    def matrix(self) -> sp.csr_array:
        """Users × items, 1.0 where there is at least one event."""
        once = self.distinct()
        ones = np.ones(len(once), np.float32)
        shape = (self.n_users, self.n_items)
        made = sp.csr_array(
            (ones, once.items.astype(np.int32), once.offsets), shape=shape
        )
        made.sort_indices()
        return made
