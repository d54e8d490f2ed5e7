"""One array per client, written out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Shaped

from tacit.errors import BadValue
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


@dataclass(frozen=True, eq=False)
class Dense:
    """One array per client, written out."""

    values: Shaped[np.ndarray, "clients ..."]

    def __post_init__(self) -> None:
        if self.values.ndim == 0:
            raise BadValue("a leaf needs a client axis; a single number has none")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one client's array."""
        return self.values.shape[1:]

    @property
    def parts(self) -> dict[str, Array]:
        """The stored arrays by the suffix of their names: here the array itself."""
        return {"": self.values}

    @property
    def stored(self) -> Stored:
        """The types and shapes of `parts`, without the client axis."""
        return described(self.parts)

    def with_parts(self, parts: Arrays) -> Dense:
        """A leaf of the same kind with other stored arrays."""
        return Dense(parts[""])

    def squared_norms(self) -> Float64[np.ndarray, "clients"]:
        """The squared L2 norm of each client's array."""
        return squared_rows(self._flat())

    def scale(self, factors: Shaped[np.ndarray, "clients"]) -> Dense:
        """Each client's array times that client's factor."""
        shape = (-1,) + (1,) * len(self.shape)
        return Dense(self.values * as_float(factors, self.values).reshape(shape))

    @property
    def total_type(self) -> np.dtype[Any]:
        """The type of the sum, whoever is in it: int64 for integers, else float64."""
        return np.dtype(np.int64 if is_whole(self.values.dtype) else np.float64)

    def sum(self) -> Array:
        """The sum over clients, exact for integers, in float64 for floats."""
        # float32 reports of a whole cohort would lose digits if added in float32.
        return np.asarray(self.values.sum(axis=0, dtype=self.total_type))

    def add_to(self, total: Array) -> None:
        """Add the sum over clients to a total, in place."""
        total += self.sum()

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients."""
        flat = self._flat().astype(np.float64)
        return flat @ flat.T

    def dense(self) -> Dense:
        """The leaf itself, which is written out already."""
        return self

    def map(self, change: Change) -> Dense:
        """The leaf with `change` applied to what is stored."""
        return Dense(change(self.values))

    def _flat(self) -> Array:
        # Not reshape(n, -1): numpy cannot infer the -1 of a leaf without clients.
        return self.values.reshape(len(self), math.prod(self.shape))
