"""A random order for everybody: what any ranker must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import UInt64

from tacit.baselines.ranker import Grid, Scores
from tacit.data.shards import Shards
from tacit.keys import Key


@dataclass(frozen=True)
class Random:
    """Ranks at random; the same user always gets the same order."""

    GRID: ClassVar[Grid] = {}

    def fit(self, train: Shards, *, key: Key) -> FittedRandom:
        """Keep a key; nothing is learnt."""
        return FittedRandom(key.at("random order"), train.n_items)


@dataclass(frozen=True, eq=False)
class FittedRandom:
    """One random order per user, addressed by what is in the user's history.

    A history is all a ranker sees of a user, so users with the same items share an
    order, and nobody's depends on who else is scored.
    """

    key: Key
    n_items: int

    def score(self, history: Shards) -> Scores:
        """Independent uniform scores in [0, 1), the same for the same history."""
        return self.key.each(_fingerprints(history)).uniform(self.n_items)


def _fingerprints(history: Shards) -> UInt64[np.ndarray, "users"]:
    """One number per user from the items held, whatever their order.

    The sum modulo 2**64 of each item mixed by splitmix64 (Steele et al. 2014).
    """
    x = history.items.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    # Differences of running sums wrap around modulo 2**64 as the sums themselves do.
    ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(x, dtype=np.uint64)])
    return ends[history.offsets[1:]] - ends[history.offsets[:-1]]
