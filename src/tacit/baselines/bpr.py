"""BPR: factors that rank a held item above one that is not (Rendle et al. 2009).

w, h, b     a user's vector, an item's vector, an item's bias
maximizes   ln σ(w·hᵢ + bᵢ - w·hⱼ - bⱼ), i held and j not, less a ridge on w, h and b

Fitted by the library `implicit`, which draws j in proportion to its popularity. At the
optimum of that, w·h + b is how much *more* a user likes an item than users do on
average: ln p(i | user) / q(i), q the popularity. So ln q is added to the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from tacit import check
from tacit.baselines.library import confidences, implicit_on_cpu
from tacit.baselines.matrix import users_by_items
from tacit.baselines.mean_fold_in import fold_in_map, held_means
from tacit.baselines.ranker import Grid, Scores, Vectors
from tacit.data.shards import Shards
from tacit.keys import Key

_COUNT_OF_UNSEEN = 0.5  # so that its logarithm is below that of every item seen


@dataclass(frozen=True)
class Bpr:
    """Pairwise ranking by stochastic gradients, on one thread: several would race.

    `popularity` is the share of ln q that is given back: 0 ranks as `implicit` does.
    """

    factors: int = 128
    learning_rate: float = 0.05
    regularization: float = 0.01
    iterations: int = 50  # each looks at as many pairs as there are events
    popularity: float = 1.0

    EXTRAS: ClassVar[Mapping[str, str]] = {"implicit": "baselines"}
    GRID: ClassVar[Grid] = {
        "factors": (64, 128),
        "learning_rate": (0.02, 0.05),
        "regularization": (0.003, 0.01, 0.03),
        "popularity": (0.5, 1.0),
    }

    def __post_init__(self) -> None:
        check.count(factors=self.factors, iterations=self.iterations)
        check.positive(learning_rate=self.learning_rate)
        check.not_negative(
            regularization=self.regularization, popularity=self.popularity
        )

    def fit(self, train: Shards, *, key: Key) -> FittedBpr:
        """Learn the factors, then how a user's vector follows from the history."""
        with implicit_on_cpu() as implicit:
            model = implicit.bpr.BayesianPersonalizedRanking(
                factors=self.factors,
                learning_rate=self.learning_rate,
                regularization=self.regularization,
                iterations=self.iterations,
                num_threads=1,  # threads race on shared factors: no two runs alike
                random_state=key.generator(),
            )
            model.fit(confidences(train), show_progress=False)
        x, items = users_by_items(train), model.item_factors
        means = held_means(x, items[:, :-1])
        fold_in = fold_in_map(means, model.user_factors[:, :-1])
        counts = np.maximum(np.asarray(x.sum(axis=0)), _COUNT_OF_UNSEEN)
        # After the fold-in map, which must not see what the bias is given back.
        items[:, -1] += self.popularity * np.log(counts)
        return FittedBpr(items, fold_in)


@dataclass(frozen=True, eq=False)
class FittedBpr:
    """Items, the bias last, and the map from the mean of held items to a user."""

    items: Float32[np.ndarray, "items factors_and_bias"]
    fold_in: Float64[np.ndarray, "factors factors"]

    def represent(self, history: Shards) -> Vectors:
        """The mapped mean of the items held, and 1 for the bias.

        BPR has no rule for users it never saw. The map is the ridge regression of the
        training users' vectors on the means of their items.
        """
        means = held_means(users_by_items(history), self.items[:, :-1])
        vectors = means @ self.fold_in
        ones = np.ones((len(history), 1))
        return np.concatenate([vectors, ones], axis=1).astype(np.float32)

    def score(self, history: Shards) -> Scores:
        """Inner products; somebody without a history gets the biases."""
        return self.represent(history) @ self.items.T
