"""Histories as one sparse matrix, for rankers that may see everybody's."""

from __future__ import annotations

import scipy.sparse as sp

from tacit.data.shards import Shards


def people_by_items(shards: Shards) -> sp.csr_array:
    """1.0 where a person has an item, however often."""
    return shards.log.matrix()
