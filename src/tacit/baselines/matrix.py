"""Histories as one sparse matrix, for rankers that may see everybody's."""

from __future__ import annotations

from collections.abc import Iterator

import scipy.sparse as sp

from tacit.data.shards import Shards

_NUMBERS_AT_ONCE = 2**24  # 128 MiB in double precision


def users_by_items(shards: Shards) -> sp.csr_array:
    """Users × items: 1.0 where a user has an item, however often."""
    return shards.log.matrix()


def row_blocks(n: int, *, width: int) -> Iterator[slice]:
    """`n` rows in runs short enough to write down `width` numbers for each.

    No rows are one empty run, so that what is made of the runs keeps its shape.
    """
    step = max(1, _NUMBERS_AT_ONCE // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, max(1, n), step))
