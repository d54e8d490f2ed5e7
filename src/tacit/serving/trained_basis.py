"""A basis that a training made, in the place of interests that a server invents.

    b   basis vectors, public: part of the model      d   their width
    u   vector of a user before any mixture           r0  the padding item

    lines 3 to 5   padding: an item that was read becomes r0 with probability p
    line 7         attention of a user: softmax(u·b / sqrt d)

What a client says of its attention, and how a server reads it, is `noisy_attention`'s,
as for interests of invented users. Whatever basis a server sends, attention is a
distribution over it: no basis makes a query dearer than its noise says.

Source: Liu et al. 2022, Algorithm 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from tacit import check
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.errors import Refused
from tacit.keys import Key
from tacit.mechanisms.padding import Padding
from tacit.method import Decomposable, Method
from tacit.serving.interests import Users
from tacit.serving.recommender import Recommender


@dataclass(frozen=True, eq=False)
class TrainedBasis:
    """Basis vectors that client and server both know, as a training left them."""

    basis: Float64[np.ndarray, "interests factors"]
    mean: Float64[np.ndarray, "factors"]  # u of somebody of whom nothing is known

    def __post_init__(self) -> None:
        check.at_least(2, interests=len(self), remedy="one interest says nothing")

    def __len__(self) -> int:
        return len(self.basis)

    @property
    def means(self) -> Float64[np.ndarray, "interests factors"]:
        """The user vector that stands for each interest: its basis vector."""
        return self.basis

    def closeness(self, users: Users) -> Float64[np.ndarray, "users interests"]:
        """u·b / sqrt d, of which attention is the softmax."""
        return users @ self.basis.T / math.sqrt(self.basis.shape[1])

    def temperature(self, users: Users) -> float:
        """One, whoever the users are: training has set how long b and u are."""
        return 1.0


def basis_size(method: Method) -> int:
    """How many basis vectors the training of this method makes; 0 if it makes none."""
    return method.basis_size if isinstance(method, Decomposable) else 0


def trained_basis(recommender: Recommender) -> TrainedBasis:
    """The basis of a model; of nobody it is known that they read the padding item."""
    method = _decomposable(recommender)
    nobody = np.array([[len(recommender.catalog)]], np.int64)
    read = Ragged.of_lengths([1], nobody[0])
    mean = method.encodings(recommender.broadcast, read)[0]
    basis = method.basis(recommender.broadcast)
    return TrainedBasis(basis.astype(np.float64), mean.astype(np.float64))


def encodings_of(
    recommender: Recommender,
    shards: Shards,
    *,
    padding: Padding | None = None,
    key: Key | None = None,
    only: Bool[np.ndarray, "items"] | None = None,
) -> Users:
    """The vector u of each history, in which padding may replace items by r0.

    `only` these items of the catalog are replaced; by default any. The coins come from
    `key`, by default from the operating system.
    """
    read = shards.histories
    if padding is not None:
        keys = (key or Key.from_os()).each(np.arange(len(shards)))
        falls = padding.pad(read.lengths, keys.at("coins"))
        if only is not None:
            falls = falls & only[read.values]
        read = Ragged(read.offsets, np.where(falls, shards.n_items, read.values))
    method = _decomposable(recommender)
    return method.encodings(recommender.broadcast, read).astype(np.float64)


def _decomposable(recommender: Recommender) -> Decomposable:
    method = recommender.method
    if not isinstance(method, Decomposable) or not method.basis_size:
        raise Refused(
            f"{type(method).__name__} trained no basis here, so that no attention over "
            "one can be said; its interests are those of invented users"
        )
    return method
