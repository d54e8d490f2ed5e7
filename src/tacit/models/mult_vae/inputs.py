"""Histories as sparse rows of norm 1, draws of a training pass, and priors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int64

from tacit.data.ragged import Ragged, offsets_of
from tacit.data.shards import Shards
from tacit.keys import Keys
from tacit.tree import Array


@dataclass(frozen=True, eq=False)
class Held:
    """The distinct items of each user among some items, user by user, end to end."""

    offsets: Int64[np.ndarray, "users_and_one"]
    columns: Int64[np.ndarray, "held"]
    n_items: int
    draws_at: Int64[np.ndarray, "held"]  # the event that each entry was taken from
    lengths_drawn: Int64[np.ndarray, "users"]  # events per user, all of them
    weights: Float64[np.ndarray, "held"] | None = None  # of each entry; None: all alike

    @classmethod
    def of(
        cls,
        shards: Shards,
        items: Int64[np.ndarray, "columns"],
        *,
        is_weighted: bool = False,
    ) -> Held:
        """The users' items among `items`, which are the columns in the order given.

        With `is_weighted` an entry weighs as much as its ratings: R = Σ r 2t/(m(m+1))
        over the m ratings of the item, in order of time.
        """
        column_of = np.full(shards.n_items, -1)
        column_of[items] = np.arange(len(items))
        at, n = column_of[shards.items], max(1, len(items))
        events = np.flatnonzero(at >= 0)
        cells = shards.owners[events] * n + at[events]
        weights = _ratings(shards.values[events], cells) if is_weighted else None
        if (cells[1:] <= cells[:-1]).any():  # not sorted, or an item is there twice
            cells, first = np.unique(cells, return_index=True)
            events = events[first]
        owners, columns = np.divmod(cells, n)
        lengths = np.bincount(owners, minlength=len(shards))
        return cls(
            offsets_of(lengths), columns, len(items), events, shards.lengths, weights
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, users: Int64[np.ndarray, "some"]) -> Held:
        """What some of the users hold, in the order given; repeats are repeated."""
        lengths, events = self.lengths[users], self.lengths_drawn[users]
        places = Ragged(self.offsets, self.columns).places(users)
        moved = offsets_of(events)[:-1] - offsets_of(self.lengths_drawn)[users]
        return Held(
            offsets_of(lengths),
            self.columns[places],
            self.n_items,
            self.draws_at[places] + np.repeat(moved, lengths),
            events,
            None if self.weights is None else self.weights[places],
        )

    def drawn_examples(
        self, keys: Keys, times: int
    ) -> Int64[np.ndarray, "users times"]:
        """So many of each user's columns, in a random order; then all once more.

        Whoever has fewer has some of them again, and whoever has none has column 0.
        """
        draws = keys.uniform_ragged(self.lengths_drawn)[self.draws_at]
        order = np.lexsort((draws, self.owners))
        at = np.arange(times) % np.maximum(self.lengths, 1)[:, None]
        places = np.minimum(self.offsets[:-1, None] + at, max(len(order) - 1, 0))
        if not len(order):
            return np.zeros(places.shape, np.int64)
        return np.where(self.lengths[:, None] > 0, self.columns[order[places]], 0)

    @property
    def lengths(self) -> Int64[np.ndarray, "users"]:
        """How many items each user holds."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Int64[np.ndarray, "held"]:
        """The user of each entry."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def values(self) -> Float64[np.ndarray, "held"]:
        """The values of the entries, which give every row the norm 1.

        That bounds an input whatever its weights are; without any weight it is zero.
        """
        if self.weights is None:
            return np.repeat(1 / np.sqrt(np.maximum(self.lengths, 1)), self.lengths)
        # By the largest first: squares of large ratings would overflow.
        owners, n = self.owners, len(self)
        largest = np.zeros(n)
        np.maximum.at(largest, owners, np.abs(self.weights))
        scaled = self.weights / np.where(largest > 0, largest, 1.0)[owners]
        squares = np.bincount(owners, weights=scaled**2, minlength=n)
        return scaled / np.sqrt(np.maximum(squares, 1.0))[owners]

    def dense(
        self, values: Float64[np.ndarray, "held"], dtype: str = "float64"
    ) -> Array:
        """The rows with these entries, written out."""
        out = np.zeros((len(self), self.n_items), dtype)
        out[self.owners, self.columns] = values
        return out


def _ratings(
    values: Float32[np.ndarray, "events"], cells: Int64[np.ndarray, "events"]
) -> Float64[np.ndarray, "held"]:
    """One rating a cell, in the order of cells; the later of several weigh more.

    Source: Fang et al. 2022, Section 3.2.
    """
    order = np.argsort(cells, kind="stable")  # a user's events stand in order of time
    _, first, counts = np.unique(cells[order], return_index=True, return_counts=True)
    m = np.repeat(counts, counts)
    nth = np.arange(len(order)) - np.repeat(first, counts) + 1
    share = 2 * nth / (m * (m + 1))
    return np.add.reduceat(values[order] * share, first) if len(first) else share


@dataclass(frozen=True, eq=False)
class Pass:
    """One training pass of a cohort: inputs after dropout, and noise for the latent."""

    values: Float64[np.ndarray, "held"]
    noise: Float64[np.ndarray, "users latent"]

    @classmethod
    def drawn(cls, held: Held, keys: Keys, *, dropout: float, latent: int) -> Pass:
        """A pass in which every user's draws are their own, whoever else is there.

        An entry stays with probability 1 - dropout and is then divided by it. `latent`
        is 0 where nothing is sampled.
        """
        values = held.values
        if dropout > 0:
            # One draw per event, whatever the head: an item's draw does not move when
            # other items leave the columns.
            draws = keys.at("dropout").uniform_ragged(held.lengths_drawn)
            stays = draws[held.draws_at] >= dropout
            values = np.where(stays, values / (1 - dropout), 0.0)
        return cls(values, keys.at("latent").normal(latent))


@dataclass(frozen=True, eq=False)
class Prior:
    """The normal distribution that each user's latent vector is pulled to.

    Without one it is the standard normal distribution, for everyone.
    """

    mean: Float64[np.ndarray, "users latent"]
    variance: Float64[np.ndarray, "users latent"]
