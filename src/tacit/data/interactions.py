"""The log: who took what, when, and how much. Private; it exists in simulation only."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float32, Int32, Int64
from numpy.typing import ArrayLike

from tacit import arrays
from tacit.data import features
from tacit.data.features import Features
from tacit.data.ragged import Ragged, offsets_of
from tacit.errors import BadValue

_MOST_ITEMS = 2**31  # an item is an int32


@dataclass(frozen=True, eq=False)
class Interactions:
    """Events in columns, grouped by user; a user's events stand in order of time.

    Without times a user's events keep the order of the file. The same user and item may
    occur again: repeats are kept, and `distinct` drops them. `contexts` are columns
    that describe an event, such as the weather or a user's tags: as private as it is.
    """

    offsets: Int64[np.ndarray, "users_and_one"]
    items: Int32[np.ndarray, "events"]
    values: Float32[np.ndarray, "events"]
    times: Int64[np.ndarray, "events"] | None
    n_items: int
    contexts: Features = field(default_factory=dict)

    def __post_init__(self) -> None:
        Ragged(self.offsets, self.items)  # checks the offsets
        arrays.typed(np.int32, items=self.items)
        arrays.typed(np.float32, values=self.values)
        arrays.integer(self.n_items, "n_items", below=_MOST_ITEMS)
        arrays.integers(self.items, "items", below=self.n_items)
        if self.times is not None:
            arrays.typed(np.int64, times=self.times)
        _same_length(items=self.items, values=self.values, times=self.times)
        _same_length(items=self.items, **self.contexts)
        if not np.isfinite(self.values).all():
            raise BadValue(
                "values must be finite in float32; drop or repair them first"
            )

    @classmethod
    def of_columns(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        *,
        values: ArrayLike | None = None,
        times: ArrayLike | None = None,
        contexts: Features | None = None,
        n_users: int,
        n_items: int,
    ) -> Interactions:
        """Group events by user and, where times are given, order them by time."""
        arrays.integer(n_users, "n_users", below=2**31)
        who = arrays.integers(users, "users", below=n_users).astype(np.int64)
        what = arrays.integers(items, "items", below=min(n_items, _MOST_ITEMS))
        much = np.ones(len(who), np.float32) if values is None else _float32(values)
        when = None if times is None else _int64(times)
        described = contexts or {}
        _same_length(users=who, items=what, values=much, times=when, **described)
        order = _order(who, when, n_users)
        return cls(
            offsets_of(np.bincount(who, minlength=n_users)),
            what[order].astype(np.int32),
            much[order],
            None if when is None else when[order],
            n_items,
            features.take(described, order),
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
        """Only the events where `mask` is true; users and items keep their numbers."""
        arrays.typed(np.bool_, mask=mask)
        places = arrays.rows(mask, len(self))
        counts = np.bincount(self.users[places], minlength=self.n_users)
        return self._pick(places, counts)

    def take_users(self, rows: ArrayLike) -> Interactions:
        """Only these users, in the order given; items keep their numbers."""
        chosen = arrays.rows(rows, self.n_users)
        places = Ragged(self.offsets, self.items).places(chosen)
        return self._pick(places, self.per_user[chosen])

    def _pick(
        self, places: Int64[np.ndarray, "kept"], per_user: Int64[np.ndarray, "users"]
    ) -> Interactions:
        return Interactions(
            offsets_of(per_user),
            self.items[places],
            self.values[places],
            None if self.times is None else self.times[places],
            self.n_items,
            features.take(self.contexts, places),
        )

    def distinct(self) -> Interactions:
        """One event, the first, for each pair of user and item."""
        pair = self.users.astype(np.int64) * self.n_items + self.items  # < 2**62
        first = np.zeros(len(self), bool)
        first[np.unique(pair, return_index=True)[1]] = True
        return self.keep(first)

    def matrix(self) -> sp.csr_array:
        """Users × items, 1.0 where there is at least one event."""
        once = self.distinct()
        ones = np.ones(len(once), np.float32)
        shape = (self.n_users, self.n_items)
        made = sp.csr_array((ones, once.items, once.offsets), shape=shape)
        made.sort_indices()  # events stand in order of time, not of items
        return made


def _order(
    who: Int64[np.ndarray, "events"],
    when: Int64[np.ndarray, "events"] | None,
    n_users: int,
) -> Int64[np.ndarray, "events"]:
    """By user, then time; stable, so ties keep the order of the file."""
    if when is None:
        return np.argsort(who, kind="stable")
    first, last = int(when.min(initial=0)), int(when.max(initial=0))
    span = last - first + 1
    if n_users * span >= 2**63:  # user and time do not fit one integer
        return np.lexsort((when, who))
    return np.argsort(who * span + (when - first), kind="stable")  # 3 times faster


def _float32(values: ArrayLike) -> Float32[np.ndarray, "events"]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iufb":
        raise BadValue(
            "values must be a list of numbers, "
            f"not {array.dtype} of shape {array.shape}"
        )
    with np.errstate(over="ignore"):  # becomes infinite, and is refused as such
        return array.astype(np.float32)


def _int64(times: ArrayLike) -> Int64[np.ndarray, "events"]:
    whole = arrays.integers(times, "times", least=-(2**63), below=2**63)
    return whole.astype(np.int64)


def _same_length(**columns: Sized | None) -> None:
    lengths = {name: len(c) for name, c in columns.items() if c is not None}
    if len(set(lengths.values())) > 1:
        raise BadValue(f"columns differ in length: {lengths}")
