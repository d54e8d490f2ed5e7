"""The same list for everybody: what most users have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from tacit.baselines.matrix import users_by_items
from tacit.baselines.ranker import Grid, Scores
from tacit.data.shards import Shards
from tacit.keys import Key


@dataclass(frozen=True)
class Popularity:
    """Ranks by how many users have an item; repeats of one user count once."""

    GRID: ClassVar[Grid] = {}

    def fit(self, train: Shards, *, key: Key) -> FittedPopularity:
        """Counts, for every item, the users who have it; nothing is random."""
        counts = np.asarray(users_by_items(train).sum(axis=0), np.float32)
        return FittedPopularity(counts)


@dataclass(frozen=True, eq=False)
class FittedPopularity:
    """How many users have each item."""

    counts: Float32[np.ndarray, "items"]

    def score(self, history: Shards) -> Scores:
        """The counts, for everyone; a read-only view of one row."""
        # No copy per user: what is ranked is the same row for all.
        return np.broadcast_to(self.counts, (len(history), len(self.counts)))
