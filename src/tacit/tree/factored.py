"""A short sum of outer products per client: a layer's gradient, stored as factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Shaped

from tacit.buffers import empty
from tacit.errors import BadValue
from tacit.kernels import dispatch
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
    squared_rows,
)


@dataclass(frozen=True, eq=False)
class Factored:
    """A sum of outer products per client: sum over r of left[r] right[r]ᵀ.

    `is_sparse` says that nearly all of the left side is zero, whoever the client is:
    sums then pass over zeros. It is declared and not looked up, so that what computes a
    sum follows from the model and not from the clients' data.
    """

    left: Shaped[np.ndarray, "clients rank rows"]
    right: Shaped[np.ndarray, "clients rank columns"]
    is_sparse: bool = False

    def __post_init__(self) -> None:
        left, right = self.left.shape, self.right.shape
        if not len(left) == len(right) == 3 or left[:2] != right[:2]:
            raise BadValue(
                f"factors of shape {left} and {right}; needed are "
                "(clients, rank, rows) and (clients, rank, columns)"
            )

    def __len__(self) -> int:
        return len(self.left)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one client's array, if it were written out."""
        return self.left.shape[2], self.right.shape[2]

    @property
    def parts(self) -> dict[str, Array]:
        """The stored arrays by the suffix of their names: the two factors."""
        return {"#left": self.left, "#right": self.right}

    @property
    def stored(self) -> Stored:
        """The types and shapes of `parts`, without the client axis."""
        return described(self.parts)

    def with_parts(self, parts: Arrays) -> Factored:
        """A leaf of the same kind with other stored arrays."""
        return Factored(parts["#left"], parts["#right"], self.is_sparse)

    def squared_norms(self) -> Float64[np.ndarray, "clients"]:
        """The squared Frobenius norm of each client's array, from the factors."""
        if self.left.shape[1] == 1:  # |a bᵀ|² = |a|² |b|², without the copies below
            a, b = (squared_rows(f[:, 0]) for f in self._both)
            return a * b
        left, right = (f.astype(np.float64, copy=False) for f in self._both)
        # |sum of a_r b_rᵀ|² = sum over r, s of (a_r·a_s) (b_r·b_s)
        product = (left @ left.swapaxes(1, 2)) * (right @ right.swapaxes(1, 2))
        # Rounding may leave a tiny negative where the products cancel.
        return np.maximum(product.sum(axis=(1, 2)), 0.0)

    def scale(self, factors: Shaped[np.ndarray, "clients"]) -> Factored:
        """Each client's array times that client's factor, on the shorter side."""
        if self.left.shape[2] <= self.right.shape[2]:
            return Factored(_times(self.left, factors), self.right, self.is_sparse)
        return Factored(self.left, _times(self.right, factors), self.is_sparse)

    @property
    def total_type(self) -> np.dtype[Any]:
        """The type of the sum over clients: int64 for integers, else float32 or more.

        float16 factors are multiplied in float32; float64 factors stay float64.
        """
        both = np.result_type(self.left.dtype, self.right.dtype)
        return np.result_type(both, np.int64 if is_whole(both) else np.float32)

    def sum(self) -> Array:
        """The sum over clients as one GEMM; no client's array is written down.

        It is exact for integers. The sum of float32 factors is computed and stored in
        float32, twice as fast and half as large: each entry is off by about 1e-7 of the
        sum of its terms' sizes.
        """
        return self._product()

    def add_to(self, total: Array) -> None:
        """Add the sum over clients to a total, in place."""
        np.add(total, self._product(), out=total)

    def _product(self) -> Array:
        left, right = (
            flat_rank(f.astype(self.total_type, copy=False)) for f in self._both
        )
        out = empty(self.shape, self.total_type)
        if not self.is_sparse or not dispatch.pays("rows.outer_sum", self.shape[0]):
            np.matmul(left.T, right, out=out)
            return out
        from tacit.kernels.rows import outer_sum  # loads numba

        outer_sum(left, right, out)
        return out

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients: (A Aᵀ) ∘ (B Bᵀ), summed over ranks."""
        a, b = (flat_rank(f.astype(np.float64, copy=False)) for f in self._both)
        clients, rank, _ = self.left.shape
        product = (a @ a.T) * (b @ b.T)  # (clients * rank, clients * rank)
        return product.reshape(clients, rank, clients, rank).sum(axis=(1, 3))

    def dense(self) -> Dense:
        """The same arrays written out."""
        left, right = (f.astype(self.total_type, copy=False) for f in self._both)
        return Dense(left.swapaxes(1, 2) @ right)

    def map(self, change: Change) -> Factored:
        """The leaf with `change` applied to each stored factor."""
        return Factored(change(self.left), change(self.right), self.is_sparse)

    @property
    def _both(self) -> tuple[Array, Array]:
        return self.left, self.right


def _times(factor: Array, factors: Array) -> Array:
    return factor * as_float(factors, factor)[:, None, None]
