"""PureSVD: histories projected on their strongest directions (Cremonesi et al. 2010).

X ≈ U Σ Vᵀ      users × items, 0 or 1, the `factors` largest singular values
scores = x V Vᵀ
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32
from scipy.sparse.linalg import svds

from tacit import check
from tacit.baselines.matrix import users_by_items
from tacit.baselines.ranker import Grid, ItemVectors, Scores, Vectors
from tacit.data.shards import Shards
from tacit.keys import Key

_NEGLIGIBLE = 1e-6  # of the largest singular value: rounding, not a direction


@dataclass(frozen=True)
class PureSvd:
    """A truncated singular value decomposition; zeros count as much as ones.

    Where the matrix has fewer than `factors` directions, all of them are used.
    """

    factors: int = 40

    GRID: ClassVar[Grid] = {
        "factors": (5, 10, 15, 20, 30, 40, 50, 60, 80, 100, 150, 200)
    }

    def __post_init__(self) -> None:
        check.count(factors=self.factors)

    def fit(self, train: Shards, *, key: Key) -> FittedPureSvd:
        """Decompose; the key chooses where the iteration starts, not where it ends."""
        x = users_by_items(train).astype(np.float64)
        return FittedPureSvd(_right_directions(x, self.factors, key))


@dataclass(frozen=True, eq=False)
class FittedPureSvd:
    """The right singular vectors V, with columns of length one."""

    items: Float32[np.ndarray, "items factors"]

    def represent(self, history: Shards) -> Vectors:
        """The rows of V summed over the items held."""
        return np.asarray(users_by_items(history) @ self.items)

    def score(self, history: Shards) -> Scores:
        """The history projected on the directions kept, one score per item."""
        return self.represent(history) @ self.items.T


def _right_directions(x: sp.csr_array, factors: int, key: Key) -> ItemVectors:
    if factors < min(x.shape):
        start = key.generator().standard_normal(min(x.shape))
        _, sizes, rows = svds(x, factors, v0=start)
    else:  # few users or few items: all directions, which ARPACK cannot give
        _, sizes, rows = np.linalg.svd(x.toarray(), full_matrices=False)
    kept = sizes > _NEGLIGIBLE * sizes.max(initial=0.0)
    return np.ascontiguousarray(rows[kept].T, np.float32)
