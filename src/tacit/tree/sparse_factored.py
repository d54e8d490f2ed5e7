"""An outer product per client whose left side is known by a few numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from tacit.errors import BadValue
from tacit.tree.dense import Dense
from tacit.tree.factored import Factored
from tacit.tree.stored import Array, Arrays, Change, Stored, squared_rows

CANCELLED = 64.0  # how many times its result the terms of a difference may be

Left = Float64[np.ndarray, "clients rows"]


@dataclass(frozen=True, eq=False)
class SparseRests:
    """Rows that are a few weighted columns minus a multiple of one common row.

    Every column of a row is named once; a row that names one twice has no norm. What is
    asked of the rows is computed from these few columns by compiled kernels.
    """

    offsets: Int64[np.ndarray, "clients_and_one"]
    columns: Int64[np.ndarray, "events"]  # -1: none
    weights: Float64[np.ndarray, "rows"]
    common: Float64[np.ndarray, "rows"]
    factors: Float64[np.ndarray, "clients 2"]  # of the weights, and of the common row

    def __post_init__(self) -> None:
        n, events = len(self.weights), len(self.columns)
        if self.columns.max(initial=-1) >= n or len(self.common) != n:
            raise BadValue(
                f"columns up to {self.columns.max(initial=-1)} and a common row of "
                f"{len(self.common)} for {n} weights; needed are columns below {n} "
                "and one number of the common row for each"
            )
        if len(self.offsets) != len(self) + 1 or self.offsets[-1] != events:
            raise BadValue(
                f"offsets of {len(self.offsets) - 1} rows for {len(self)} pairs of "
                f"factors and {events} columns; they must agree"
            )

    def __len__(self) -> int:
        return len(self.factors)

    def written(self) -> Left:
        """The rows, written out."""
        from tacit.kernels.rows import write_rests  # loads numba

        out = np.empty((len(self), len(self.weights)))
        write_rests(self._items, self.factors, self.common, out)
        return out

    def squares(self) -> Float64[np.ndarray, "clients"]:
        """The squared norm of each row, of terms at most `CANCELLED` times as large."""
        from tacit.kernels.rows import rests_squares

        out = np.empty(len(self))
        rests_squares(self._items, self.factors, self.common, CANCELLED, out)
        return out

    def times(
        self, matrix: Float64[np.ndarray, "first few"]
    ) -> Float64[np.ndarray, "clients few"]:
        """The product with a matrix whose rows belong to the first columns."""
        from tacit.kernels.rows import rests_times

        out = np.empty((len(self), matrix.shape[1]))
        whole = np.ascontiguousarray(matrix)
        rests_times(self._items, self.factors, self.common, whole, out)
        return out

    def add_outer_sum(
        self, right: Float64[np.ndarray, "clients few"], total: Array
    ) -> None:
        """Add the sum over clients of outer products with rows of `right`, in place."""
        from tacit.kernels.rows import add_rests_outer

        add_rests_outer(self._items, self.factors, self.common, right, total)

    @property
    def _items(self) -> tuple[Array, Array, Array]:
        return self.offsets, self.columns, self.weights


@dataclass(frozen=True, eq=False)
class SparseFactored:
    """The outer product a bᵀ per client, where a is a row of `SparseRests`.

    It stands for `Factored`, and becomes one as soon as anything but the right side
    changes, or somebody asks for what is stored. Norms, scaling and sums do not ask.
    """

    rests: SparseRests
    right: Float64[np.ndarray, "clients 1 columns"]

    def __post_init__(self) -> None:
        if self.right.shape[:2] != (len(self.rests), 1):
            raise BadValue(
                f"a right side of shape {self.right.shape} for {len(self.rests)} "
                "clients; needed is (clients, 1, columns)"
            )

    def __len__(self) -> int:
        return len(self.rests)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one client's array, if it were written out."""
        return len(self.rests.weights), self.right.shape[2]

    @property
    def left(self) -> Float64[np.ndarray, "clients 1 rows"]:
        """The left side, written out."""
        return self.rests.written()[:, None]

    def factored(self) -> Factored:
        """The same arrays with both factors written out."""
        return Factored(self.left, self.right)

    @property
    def parts(self) -> dict[str, Array]:
        """The stored arrays of `Factored`."""
        return self.factored().parts

    @property
    def stored(self) -> Stored:
        """The types and shapes of `parts`; nothing is written out for them."""
        rows, columns = self.shape
        return {"#left": ("float64", (1, rows)), "#right": ("float64", (1, columns))}

    def with_parts(self, parts: Arrays) -> Factored:
        """The factored leaf with other stored arrays."""
        return Factored(parts["#left"], parts["#right"])

    def squared_norms(self) -> Float64[np.ndarray, "clients"]:
        """The squared Frobenius norm of each client's array."""
        return self.rests.squares() * squared_rows(self.right[:, 0])

    def common_norms(self) -> Float64[np.ndarray, "clients"]:
        """The norm of what each client's array has of the common row."""
        shares = np.abs(self.rests.factors[:, 1]) * np.linalg.norm(self.rests.common)
        return shares * np.sqrt(squared_rows(self.right[:, 0]))

    def scale(self, factors: Float64[np.ndarray, "clients"]) -> SparseFactored:
        """Each client's array times that client's factor, on the right side."""
        return replace(self, right=self.right * factors[:, None, None])

    @property
    def total_type(self) -> np.dtype[Any]:
        """The type of the sum over clients, which is always float64."""
        return np.dtype(np.float64)

    def sum(self) -> Array:
        """The sum over clients."""
        total = np.zeros(self.shape)
        self.add_to(total)
        return total

    def add_to(self, total: Array) -> None:
        """Add the sum over clients to a total, in place."""
        self.rests.add_outer_sum(self.right[:, 0], total)

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients."""
        return self.factored().gram()

    def dense(self) -> Dense:
        """The same arrays written out."""
        return self.factored().dense()

    def map(self, change: Change) -> Factored:
        """The factored leaf with `change` applied to each stored factor."""
        return self.factored().map(change)
