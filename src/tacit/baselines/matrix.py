"""Histories as one sparse matrix, for rankers that may see everybody's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from tacit.data.shards import Shards
from tacit.models.histories import ListFor, latest_events, recency

_NUMBERS_AT_ONCE = 2**24  # 128 MiB in double precision


def users_by_items(shards: Shards) -> sp.csr_array:
    """Users × items: 1.0 where a user has an item, however often."""
    return shards.log.matrix()


def weighted_by_items(shards: Shards, list_for: ListFor) -> sp.csr_array:
    """Users × items: what an item counts for such a list, by its latest event."""
    if list_for == "any":
        return users_by_items(shards)
    latest = latest_events(shards)
    weights = recency(shards, list_for)[latest].astype(np.float32)
    places = (shards.owners[latest], shards.items[latest])
    return sp.csr_array((weights, places), shape=(len(shards), shards.n_items))


def row_blocks(n: int, *, width: int) -> Iterator[slice]:
    """`n` rows in runs short enough to write down `width` numbers for each.

    No rows are one empty run, so that what is made of the runs keeps its shape.
    """
    step = max(1, _NUMBERS_AT_ONCE // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, max(1, n), step))
