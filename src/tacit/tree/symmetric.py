"""Half of a short sum of squares per client, stored as the roots."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from tacit.errors import BadValue
from tacit.tree.dense import Dense
from tacit.tree.stored import (
    Array,
    Arrays,
    Change,
    Stored,
    as_float,
    described,
    flat_rank,
    is_whole,
)


@dataclass(frozen=True, eq=False)
class Symmetric:
    """Half of a sum of squares per client: Z = sum over r of root[r] root[r]ᵀ.

    The half has Z_ij for i < j and Z_ii / sqrt(2), by rows, so every pair stands in it
    once. Its norm is |Z| / sqrt(2), however much of Z stands on the diagonal.
    """

    root: Shaped[np.ndarray, "clients rank side"]

    def __post_init__(self) -> None:
        if self.root.ndim != 3 or is_whole(self.root.dtype):
            raise BadValue(
                f"roots of shape {self.root.shape} and type {self.root.dtype}; needed "
                "are floats of (clients, rank, side)"
            )

    def __len__(self) -> int:
        return len(self.root)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of one client's half, if it were written out."""
        side = self.root.shape[2]
        return (side * (side + 1) // 2,)

    @property
    def parts(self) -> dict[str, Array]:
        """The stored arrays by the suffix of their names: the roots."""
        return {"#root": self.root}

    @property
    def stored(self) -> Stored:
        """The types and shapes of `parts`, without the client axis."""
        return described(self.parts)

    def with_parts(self, parts: Arrays) -> Symmetric:
        """A leaf of the same kind with other stored arrays."""
        return Symmetric(parts["#root"])

    def squared_norms(self) -> Float64[np.ndarray, "clients"]:
        """The squared norm of each client's half."""
        root = self.root.astype(np.float64, copy=False)
        if root.shape[1] == 1:  # |r rᵀ|² = |r|⁴: the same, three times faster
            return np.einsum("crs,crs->c", root, root) ** 2 / 2
        inner = root @ root.swapaxes(1, 2)  # (clients, rank, rank)
        return np.einsum("crs,crs->c", inner, inner) / 2

    def scale(self, factors: Shaped[np.ndarray, "clients"]) -> Symmetric:
        """Each client's array times that client's factor, which is not negative."""
        if (factors < 0).any():
            raise BadValue("a sum of squares cannot be scaled by a negative factor")
        factor = np.sqrt(as_float(factors, self.root))  # a root enters squared
        return Symmetric(self.root * factor[:, None, None])

    @property
    def total_type(self) -> np.dtype[Any]:
        """The type of the sum over clients, which is always float64."""
        return np.dtype(np.float64)

    def sum(self) -> Array:
        """The half of the sum over clients."""
        return halved(self.square())

    def square(self) -> Float64[np.ndarray, "side side"]:
        """The sum over clients, whole, as one product of half the usual cost."""
        flat = flat_rank(np.ascontiguousarray(self.root, np.float64))
        return flat.T @ flat  # numpy sees the square and computes half of it

    def add_to(self, total: Array) -> None:
        """Add the sum over clients to a total, in place."""
        total += self.sum()

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients' halves."""
        clients, rank, _ = self.root.shape
        flat = flat_rank(self.root.astype(np.float64))
        product = (flat @ flat.T) ** 2 / 2
        return product.reshape(clients, rank, clients, rank).sum(axis=(1, 3))

    def dense(self) -> Dense:
        """The same halves written out."""
        clients, _, side = self.root.shape
        whole = self.root.swapaxes(1, 2) @ self.root
        half = whole.reshape(clients, side * side)[:, _upper(side)]
        half[:, diagonal(side)] *= math.sqrt(0.5)  # so that |half| = |Z| / sqrt(2)
        return Dense(half)

    def map(self, change: Change) -> Symmetric:
        """The leaf with `change` applied to its roots."""
        return Symmetric(change(self.root))


def halved(whole: Float64[np.ndarray, "side side"]) -> Float64[np.ndarray, "half"]:
    """The half of a symmetric matrix, read from its upper triangle."""
    half = upper(whole)
    half[diagonal(len(whole))] *= math.sqrt(0.5)
    return half


def upper(whole: Float64[np.ndarray, "side side"]) -> Float64[np.ndarray, "half"]:
    """The upper triangle of a matrix, by rows."""
    return whole.reshape(-1)[_upper(len(whole))]


def mirrored(half: Float64[np.ndarray, "half"]) -> Float64[np.ndarray, "side side"]:
    """The symmetric matrix of a half; noise on the diagonal grows by sqrt(2)."""
    side = math.isqrt(2 * len(half))
    whole = np.zeros((side, side))
    whole.reshape(-1)[_upper(side)] = half
    whole += np.triu(whole, 1).T
    whole[np.diag_indices(side)] *= math.sqrt(2.0)  # undoes `halved`
    return whole


@lru_cache(maxsize=2)  # every chunk of a sum asks for the same
def _upper(side: int) -> Int64[np.ndarray, "half"]:
    """Flat indices of the upper triangle in a square matrix, by rows."""
    rows, columns = np.triu_indices(side)
    return rows * side + columns


def diagonal(side: int) -> Int64[np.ndarray, "side"]:
    """Indices of the diagonal in a half of `side` rows."""
    rows = np.arange(side)
    # Row i of the triangle begins after side + (side - 1) + ... + (side - i + 1).
    return rows * side - rows * (rows - 1) // 2
