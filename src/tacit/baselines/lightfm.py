"""LightFM with the WARP loss: factors that rank a held item above most others.

w, h, b     a user's vector, an item's vector, an item's bias
WARP        for an item i held, draw items j not held until w·hⱼ + bⱼ > w·hᵢ + bᵢ - 1;
            a step for that pair, larger the sooner it was found (Weston et al. 2011)

Fitted by the library `lightfm` (Kula 2015). Without features of users or items, as
here, it is a matrix factorization. It has no rule for users it never saw; as for BPR a
ridge regression of the training users' vectors on the means of their items is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Float32, Float64

from tacit import check
from tacit.baselines.matrix import users_by_items
from tacit.baselines.mean_fold_in import fold_in_map, held_means
from tacit.baselines.ranker import Grid, Scores, Vectors
from tacit.data.shards import Shards
from tacit.errors import MissingExtra
from tacit.keys import Key


@dataclass(frozen=True)
class LightFm:
    """Pairwise ranking by WARP, on one thread: several would race."""

    factors: int = 32
    learning_rate: float = 0.05
    regularization: float = 0.0  # of users and of items
    epochs: int = 30
    max_sampled: int = 10  # items that are drawn at the most, for each held one

    EXTRAS: ClassVar[Mapping[str, str]] = {"lightfm": "lightfm"}
    GRID: ClassVar[Grid] = {
        "factors": (16, 32, 64),
        "epochs": (15, 30),
        "regularization": (0.0, 1e-5),
    }

    def __post_init__(self) -> None:
        check.count(factors=self.factors, epochs=self.epochs)
        check.count(max_sampled=self.max_sampled)
        check.positive(learning_rate=self.learning_rate)
        check.not_negative(regularization=self.regularization)

    def fit(self, train: Shards, *, key: Key) -> FittedLightFm:
        """Learn the factors, then how a user's vector follows from the history."""
        model = _library()(
            no_components=self.factors,
            loss="warp",
            learning_rate=self.learning_rate,
            item_alpha=self.regularization,
            user_alpha=self.regularization,
            max_sampled=self.max_sampled,
            random_state=int(key.generator().integers(2**31)),
        )
        x = users_by_items(train)
        model.fit(_interactions(x), epochs=self.epochs, num_threads=1)
        biases, items = model.get_item_representations()
        _, users = model.get_user_representations()
        return FittedLightFm.of(x, items, biases, users)


@dataclass(frozen=True, eq=False)
class FittedLightFm:
    """Items, the bias last, and the map from the mean of held items to a user."""

    items: Float32[np.ndarray, "items factors_and_bias"]
    fold_in: Float64[np.ndarray, "factors factors"]

    @classmethod
    def of(
        cls,
        x: sp.csr_array,
        items: Float[np.ndarray, "items factors"],
        biases: Float[np.ndarray, "items"],
        users: Float[np.ndarray, "users factors"],
    ) -> FittedLightFm:
        """From the vectors of the training users, whose histories are x."""
        found = fold_in_map(held_means(x, items), users)
        both = np.concatenate([items, biases[:, None]], axis=1)
        return cls(both.astype(np.float32), found)

    def represent(self, history: Shards) -> Vectors:
        """The mapped mean of the items held, and 1 for the bias."""
        means = held_means(users_by_items(history), self.items[:, :-1])
        ones = np.ones((len(history), 1))
        return np.concatenate([means @ self.fold_in, ones], axis=1).astype(np.float32)

    def score(self, history: Shards) -> Scores:
        """Inner products; somebody without a history gets the biases."""
        return self.represent(history) @ self.items.T


def _interactions(x: sp.csr_array) -> sp.coo_matrix:
    """Histories as the library reads them: an older kind of matrix, with int32."""
    entries = x.tocoo()
    users, items = (place.astype(np.int32) for place in entries.coords)
    data = entries.data.astype(np.float32)
    return sp.coo_matrix((data, (users, items)), shape=x.shape)


def _library() -> Any:
    try:
        from lightfm import LightFM
    except ImportError as error:
        raise MissingExtra("lightfm", "lightfm") from error
    return LightFM
