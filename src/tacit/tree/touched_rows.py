"""A few rows of a matrix per client, as the embedding rows that one user touches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float64, Int32, Shaped

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
    is_whole,
    squared_rows,
)

ROWS = "#rows"  # the suffix of the stored array that says which rows were touched
ROW_DTYPE = "int32"
NO_ROW = -1  # fills the places of clients that touch fewer rows


@dataclass(frozen=True, eq=False)
class TouchedRows:
    """Some rows of a matrix per client; every other row is zero.

    Everyone stores the same number of rows, so that its size says nothing about a
    client. Row numbers rise along a client's list. A number that does not come after
    all before it, and one that is no row of the matrix, stands for nothing, whatever
    its values are. So nobody can name a row twice, and a norm is the sum of the rows'.
    """

    rows: Int32[np.ndarray, "clients most"]
    values: Shaped[np.ndarray, "clients most columns"]
    n_rows: int  # of the whole matrix

    def __post_init__(self) -> None:
        rows, values = self.rows, self.values
        is_float = not is_whole(values.dtype)
        if str(rows.dtype) != ROW_DTYPE or values.ndim != 3 or not is_float:
            raise BadValue(
                f"rows of type {rows.dtype} and values of type {values.dtype} and "
                f"shape {values.shape}; needed are int32, and floats of "
                "(clients, most, columns)"
            )
        if rows.shape != values.shape[:2]:
            raise BadValue(
                f"rows of shape {rows.shape} for values of shape {values.shape}; "
                "needed is one number for each row of values"
            )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one client's matrix, if it were written out."""
        return self.n_rows, self.values.shape[2]

    @property
    def parts(self) -> dict[str, Array]:
        """The stored arrays by the suffix of their names: row numbers and values."""
        return {ROWS: self.rows, "#values": self.values}

    @property
    def stored(self) -> Stored:
        """The types and shapes of `parts`, without the client axis."""
        return described(self.parts)

    def with_parts(self, parts: Arrays) -> TouchedRows:
        """A leaf of the same kind with other stored arrays."""
        return TouchedRows(parts[ROWS], parts["#values"], self.n_rows)

    def squared_norms(self) -> Float64[np.ndarray, "clients"]:
        """The squared L2 norm of each client's matrix."""
        clients, most, columns = self.values.shape
        is_half = self.values.dtype.itemsize < 4  # numba has none
        if is_half or not dispatch.pays("rows.touched_squares", most * columns):
            squares = squared_rows(self.values.reshape(clients * most, columns))
            each = squares.reshape(clients, most)
            return np.where(self._counts(), each, 0.0).sum(axis=1)
        from tacit.kernels.rows import touched_squares  # loads numba

        return np.asarray(touched_squares(self.rows, self.values, self.n_rows))

    def scale(self, factors: Shaped[np.ndarray, "clients"]) -> TouchedRows:
        """Each client's values times that client's factor; the row numbers stay."""
        scaled = self.values * as_float(factors, self.values)[:, None, None]
        return TouchedRows(self.rows, scaled, self.n_rows)

    @property
    def total_type(self) -> np.dtype[Any]:
        """The type of the sum over clients, which is always float64."""
        return np.dtype(np.float64)

    def sum(self) -> Array:
        """The sum over clients, written out; no client's matrix is."""
        total = np.zeros(self.shape)
        self.add_to(total)
        return total

    def add_to(self, total: Array) -> None:
        """Add the rows that clients touched to a total, in place."""
        if not dispatch.pays("rows.add_touched", self.values.size):
            counts = self._counts()
            np.add.at(total, self.rows[counts], self.values[counts])
            return
        from tacit.kernels.rows import add_touched  # loads numba

        add_touched(self.rows, self.values, total)

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients, from rows that both of them touch."""
        counts, (n_rows, columns) = self._counts(), self.shape
        owners, _ = np.nonzero(counts)
        cells = self.rows[counts].astype(np.int64)[:, None] * columns
        cells = cells + np.arange(columns)
        values = self.values[counts].astype(np.float64)
        flat = sp.csr_array(
            (values.ravel(), (np.repeat(owners, columns), cells.ravel())),
            shape=(len(self), n_rows * columns),
        )
        return np.asarray((flat @ flat.T).toarray())

    def dense(self) -> Dense:
        """The same matrices written out."""
        out = np.zeros((len(self), *self.shape), self.values.dtype)
        counts = self._counts()
        owners, _ = np.nonzero(counts)
        out[owners, self.rows[counts]] = self.values[counts]
        return Dense(out)

    def map(self, change: Change) -> TouchedRows:
        """The leaf with `change` applied to row numbers and to values."""
        return TouchedRows(change(self.rows), change(self.values), self.n_rows)

    def _counts(self) -> Bool[np.ndarray, "clients most"]:
        """Which entries stand for something: see the rule of the class."""
        before = np.full_like(self.rows, NO_ROW)
        if math.prod(self.rows.shape):
            np.maximum.accumulate(self.rows[:, :-1], axis=1, out=before[:, 1:])
            np.maximum(before, NO_ROW, out=before)
        return (self.rows > before) & (self.rows < self.n_rows)
