"""Slates for data without impressions, such as films: made on a client, of its history.

    held        a user's distinct items, in random order
    positives   the first of them, each shown beside negatives and clicked
    history     the others, the same for all slates of a client
    negatives   drawn uniformly from the items of the catalog that are not held

Each client makes its own with its own randomness, and nobody is told which: they are as
private as the history. A client with less than two items has none, and neither has one
that holds the whole catalog.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged, skip_taken
from tacit.data.shards import Shards
from tacit.keys import Keys

NEGATIVES = 20  # beside each positive


def impressions_of(
    shards: Shards,
    keys: Keys,
    *,
    most: int | None = None,
    has_history: bool = True,
) -> Impressions:
    """What clients were shown; slates of their histories where nothing is known of it.

    At most half of the items held are positives, and at most `most`. Without a history
    all of them are: that is for counting.
    """
    if shards.impressions is not None:
        return shards.impressions
    held = _distinct(shards)
    free = shards.n_items - held.lengths
    counts = held.lengths // 2 if has_history else held.lengths
    counts = np.where(free > 0, counts if most is None else np.minimum(counts, most), 0)
    order = np.lexsort((keys.at("order").uniform_ragged(held.lengths), held.owners))
    rank = np.arange(len(order)) - held.offsets[held.owners]
    is_positive = rank < counts[held.owners]
    drawn = held.values[order]
    others = drawn[~is_positive].astype(np.int32)
    beside = _negatives(held, free, counts, keys.at("negatives"))
    users = np.repeat(np.arange(len(shards)), counts)
    return Impressions.of_columns(
        users,
        _beside(drawn[is_positive], beside),
        clicked=np.arange(len(users) * (1 + NEGATIVES)) % (1 + NEGATIVES) == 0,
        histories=Ragged.of_lengths(held.lengths - counts, others),
        history_of=users,
        n_users=len(shards),
        n_items=shards.n_items,
    )


def _distinct(shards: Shards) -> Ragged:
    """The distinct items of each client, sorted."""
    cells = np.unique(shards.owners * shards.n_items + shards.items)
    owners, items = np.divmod(cells, shards.n_items)
    return Ragged.of_lengths(np.bincount(owners, minlength=len(shards)), items)


def _negatives(
    held: Ragged,
    free: Int64[np.ndarray, "clients"],
    counts: Int64[np.ndarray, "clients"],
    keys: Keys,
) -> Int64[np.ndarray, "slates negatives"]:
    """Items that the client of each slate does not hold, repeats possible."""
    rows = np.repeat(np.arange(len(held)), counts * NEGATIVES)
    draws = keys.uniform_ragged(counts * NEGATIVES)
    numbers = (draws * free[rows]).astype(np.int64)  # of the items that are left
    return skip_taken(numbers, rows, held).reshape(-1, NEGATIVES)


def _beside(
    positives: Int64[np.ndarray, "slates"],
    negatives: Int64[np.ndarray, "slates negatives"],
) -> Ragged:
    """Slates of one positive each, in front of its negatives."""
    rows = np.column_stack([positives, negatives]).astype(np.int32)
    return Ragged.of_lengths(np.full(len(rows), rows.shape[1]), rows.ravel())
