"""User-kNN: what the most similar users have (Resnick et al. 1994, for 0/1 data).

score(j) = Σ over the nearest training users who have j of their cosine
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from tacit import check
from tacit.baselines.matrix import users_by_items
from tacit.baselines.neighbors import nearest
from tacit.baselines.ranker import Grid, Scores
from tacit.data.shards import Shards
from tacit.keys import Key


@dataclass(frozen=True)
class UserKnn:
    """Cosine between users, damped by `shrinkage`; the nearest `neighbors` vote.

    A user who trained and is scored by the same history is their own neighbor.
    """

    neighbors: int = 50
    shrinkage: float = 0.0

    GRID: ClassVar[Grid] = {
        "neighbors": (25, 50, 100, 200),
        "shrinkage": (0.0, 10.0, 50.0),
    }

    def __post_init__(self) -> None:
        check.count(neighbors=self.neighbors)
        check.not_negative(shrinkage=self.shrinkage)

    def fit(self, train: Shards, *, key: Key) -> FittedUserKnn:
        """Keeps the training users' histories, which are all the model there is."""
        return FittedUserKnn(users_by_items(train), self.neighbors, self.shrinkage)


@dataclass(frozen=True, eq=False)
class FittedUserKnn:
    """The training users' histories, users × items, and how neighbors are weighed."""

    users: sp.csr_array
    neighbors: int
    shrinkage: float

    def score(self, history: Shards) -> Scores:
        """For every item, the cosines of the neighbors who have it, summed."""
        near = nearest(
            users_by_items(history),
            self.users,
            count=self.neighbors,
            shrinkage=self.shrinkage,
        )
        # (users, neighbors) times (neighbors, items): only neighbors' rows are read.
        return np.asarray((near @ self.users).toarray())
