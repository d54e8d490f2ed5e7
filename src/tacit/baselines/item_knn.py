"""Item-kNN: what is held by the same users (Sarwar et al. 2001, Deshpande 2004).

score(j) = Σ over held i of cosine(i, j), if i is among the nearest neighbors of j
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
import scipy.sparse as sp

from tacit import check
from tacit.baselines.matrix import users_by_items, weighted_by_items
from tacit.baselines.neighbors import nearest
from tacit.baselines.ranker import Grid, Scores
from tacit.data.shards import Shards
from tacit.keys import Key
from tacit.models.histories import ListFor


@dataclass(frozen=True)
class ItemKnn:
    """Cosine between items, damped by `shrinkage`; each keeps its nearest `neighbors`.

    Memory: the neighbors, and one block of similarities; never all pairs of items.
    """

    neighbors: int = 100
    shrinkage: float = 0.0
    list_for: ListFor = "any"  # in ranking only: what is fitted does not change

    GRID: ClassVar[Grid] = {
        "neighbors": (50, 100, 200, 400),
        "shrinkage": (0.0, 10.0, 50.0),
    }

    def __post_init__(self) -> None:
        check.count(neighbors=self.neighbors)
        check.not_negative(shrinkage=self.shrinkage)
        check.one_of(get_args(ListFor), list_for=self.list_for)

    def fit(self, train: Shards, *, key: Key) -> FittedItemKnn:
        """Find the neighbors; nothing is random."""
        items = users_by_items(train).T.tocsr()
        near = nearest(
            items,
            items,
            count=self.neighbors,
            shrinkage=self.shrinkage,
            but_itself=True,
        )
        # Transposed: a history then sums a few rows instead of scanning all columns.
        return FittedItemKnn(near.T.tocsr(), self.list_for)


@dataclass(frozen=True, eq=False)
class FittedItemKnn:
    """Similarities; column j holds the neighbors of item j."""

    similarities: sp.csr_array
    list_for: ListFor = "any"

    def score(self, history: Shards) -> Scores:
        """For every item, its cosines with the items held, summed."""
        x = weighted_by_items(history, self.list_for)
        return np.asarray((x @ self.similarities).toarray())
