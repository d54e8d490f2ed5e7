"""Who likes what, and how much: the answer that an invented world knows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from tacit.data.shards import Shards

Users = Int64[np.ndarray, "users"]
Weights = Float64[np.ndarray, "users items"]


@dataclass(frozen=True, eq=False)
class Oracle:
    """The ranker that knows everyone's taste.

    The weight of an item for a user is exp(user · item), and a next pick is one of
    the items not picked so far, with probability proportional to its weight. Heavier
    items are likelier to be among a user's other picks whatever the history, so no
    ranker of unfiltered events has a better expected metric.

    Evaluate it as `ranking.Factors(oracle.represent, oracle.items)`, or for the
    probabilities themselves as `ranking.Personal(oracle.next_pick)`.
    """

    users: Float64[np.ndarray, "users factors"]
    items: Float64[np.ndarray, "items factors"]

    @cached_property
    def _transposed(self) -> Float64[np.ndarray, "factors items"]:
        return np.ascontiguousarray(self.items.T)

    def weights(self, users: Users) -> Weights:
        """The weight of every item for some users."""
        # Not a matrix product: its rounding depends on how many users are asked for.
        weights = np.einsum("uf,fi->ui", self.users[users], self._transposed)
        return np.exp(weights, out=weights)

    def first_pick(self, users: Users) -> Weights:
        """The probability that an item is the next pick of someone who has none yet."""
        weights = self.weights(users)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def next_pick(self, users: Users, history: Shards) -> Weights:
        """The probability that an item is the next pick of someone with this history.

        Nothing is picked twice: what is in the history has probability zero.
        """
        weights = self.weights(users)
        weights[history.owners, history.items] = 0.0
        # Whoever has everything gets zeros, not NaN.
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        return weights

    def represent(
        self, users: Users, history: Shards
    ) -> Float64[np.ndarray, "users factors"]:
        """The users' factors; a history says nothing that they do not."""
        return self.users[users]
