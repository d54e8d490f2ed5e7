"""A leaf per client, placed into one of several groups that are summed separately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Shaped

from tacit.errors import BadValue
from tacit.tree.dense import Dense
from tacit.tree.factored import Factored
from tacit.tree.sparse_factored import SparseFactored
from tacit.tree.stored import Array, Arrays, Change, Stored, as_float, described
from tacit.tree.symmetric import Symmetric
from tacit.tree.touched_rows import TouchedRows

Whole = Dense | Factored | SparseFactored | Symmetric | TouchedRows


@dataclass(frozen=True, eq=False)
class Grouped:
    """A client's array is shares ⊗ inner, where an honest client's shares are one-hot.

    The sum has an axis of groups in front, each the sum of its own members. The norm is
    |shares| times that of the inner array, so whoever claims two groups is clipped.
    """

    inner: Whole
    shares: Shaped[np.ndarray, "clients groups"]

    def __post_init__(self) -> None:
        if self.shares.ndim != 2 or len(self.shares) != len(self.inner):
            raise BadValue(
                f"shares of shape {self.shares.shape} for {len(self.inner)} clients; "
                "needed are (clients, groups)"
            )

    def __len__(self) -> int:
        return len(self.inner)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one client's array, if it were written out."""
        return self.shares.shape[1], *self.inner.shape

    @property
    def parts(self) -> dict[str, Array]:
        """The stored arrays by suffix: those of the inner leaf, and the shares."""
        return {**self.inner.parts, "#shares": self.shares}

    @property
    def stored(self) -> Stored:
        """The types and shapes of `parts`, without the client axis."""
        return {**self.inner.stored, **described({"#shares": self.shares})}

    def with_parts(self, parts: Arrays) -> Grouped:
        """A leaf of the same kind with other stored arrays."""
        return Grouped(self.inner.with_parts(parts), parts["#shares"])

    def squared_norms(self) -> Float64[np.ndarray, "clients"]:
        """The squared norm of each client's array."""
        return Dense(self.shares).squared_norms() * self.inner.squared_norms()

    def scale(self, factors: Shaped[np.ndarray, "clients"]) -> Grouped:
        """Each client's array times that client's factor."""
        # The shares stay: they say which group, and scaling both would square it.
        return Grouped(self.inner.scale(factors), self.shares)

    @property
    def total_type(self) -> np.dtype[Any]:
        """The type of the sums: that of the inner leaf once it is scaled by shares."""
        # Scaling turns integers into float64, so the type is asked of a scaled leaf.
        return self._members(0).total_type

    def sum(self) -> Array:
        """The sum of each group over its members, one group after another."""
        groups = range(self.shares.shape[1])
        return np.stack([self._members(group).sum() for group in groups])

    def add_to(self, total: Array) -> None:
        """Add the sum of each group to a total, in place."""
        for group in range(len(total)):
            self._members(group).add_to(total[group, ...])

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients: zero where groups differ."""
        return Dense(self.shares).gram() * self.inner.gram()

    def dense(self) -> Dense:
        """The same arrays written out."""
        inner = self.inner.dense().values
        shares = as_float(self.shares, inner)
        return Dense(np.einsum("cg,c...->cg...", shares, inner))

    def map(self, change: Change) -> Grouped:
        """The leaf with `change` applied to what is stored."""
        return Grouped(self.inner.map(change), change(self.shares))

    def _members(self, group: int) -> Whole:
        """The inner leaves of a group's members, each times its share in the group."""
        share = self.shares[:, group]
        rows = np.flatnonzero(share)  # others would add zeros at the cost of a sum
        return self.inner.map(lambda stored: stored[rows]).scale(share[rows])


Leaf = Whole | Grouped
