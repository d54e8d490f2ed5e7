"""iALS: matrix factorization that weighs what users have above what they have not.

W, H      users × factors, items × factors
α, λ      `confidence`, `regularization`
loss = α Σ over held (1 - w·h)² + Σ over all others (w·h)² + λ (‖W‖² + ‖H‖²)

Hu et al. 2008; fitted by the library `implicit`, three steps of conjugate gradients
(Takács et al. 2011) per row in each sweep. Its λ is the same for every row. Rendle et
al. 2022 scale λ by how often a row occurs; `implicit` does not, so their λ does not
carry over. They also show that iALS is a strong baseline only if α and λ are searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Float64

from tacit import check
from tacit.baselines.library import confidences, implicit_on_cpu
from tacit.baselines.matrix import row_blocks, users_by_items
from tacit.baselines.ranker import Grid, Scores, Vectors
from tacit.data.shards import Shards
from tacit.keys import Key


@dataclass(frozen=True)
class Ials:
    """Alternating least squares; `confidence` 1 makes held and other pairs alike."""

    factors: int = 128
    confidence: float = 5.0
    regularization: float = 50.0
    iterations: int = 15

    EXTRAS: ClassVar[Mapping[str, str]] = {"implicit": "baselines"}
    GRID: ClassVar[Grid] = {
        "factors": (32, 64, 128),
        "regularization": (5.0, 20.0, 50.0, 200.0),
    }

    def __post_init__(self) -> None:
        check.count(factors=self.factors, iterations=self.iterations)
        check.at_least(1, confidence=self.confidence)
        check.positive(regularization=self.regularization)

    def fit(self, train: Shards, *, key: Key) -> FittedIals:
        """Factorize on all cores; rows do not meet, so threads change nothing."""
        with implicit_on_cpu() as implicit:
            model = implicit.als.AlternatingLeastSquares(
                factors=self.factors,
                alpha=self.confidence,  # weighs held pairs α, not 1 + α as in Hu et al.
                regularization=self.regularization,
                iterations=self.iterations,
                random_state=key.generator(),
            )
            model.fit(confidences(train), show_progress=False)
        return FittedIals(model.item_factors, self.confidence, self.regularization)


@dataclass(frozen=True, eq=False)
class FittedIals:
    """The item factors H; the training users' vectors are not needed any more."""

    items: Float32[np.ndarray, "items factors"]
    confidence: float
    regularization: float

    def represent(self, history: Shards) -> Vectors:
        """The w that minimizes the loss for each history, H fixed, in closed form."""
        x, n_factors = users_by_items(history), self.items.shape[1]
        # One f × f system per user, so memory is bounded by blocks of users.
        blocks = row_blocks(len(history), width=n_factors**2)
        return np.concatenate([self._solved(x[block]) for block in blocks])

    def score(self, history: Shards) -> Scores:
        """The inner product of every user's vector with every item's."""
        return self.represent(history) @ self.items.T

    def _solved(self, x: sp.csr_array) -> Float32[np.ndarray, "users factors"]:
        """(HᵀH + λI + (α - 1) Σ over held h hᵀ) w = α Σ over held h, for every row."""
        h = self.items
        # h hᵀ summed over the items held, one row of it at a time: (users, f, f)
        held = np.stack([x @ (h * column[:, None]) for column in h.T], axis=1)
        left = self._gram + (self.confidence - 1) * held
        right = self.confidence * (x @ h)
        return np.linalg.solve(left, right[..., None])[..., 0].astype(np.float32)

    @cached_property
    def _gram(self) -> Float64[np.ndarray, "factors factors"]:
        """HᵀH + λI, the part of the normal equations that all users share."""
        h = self.items.astype(np.float64)
        return h.T @ h + self.regularization * np.eye(h.shape[1])
