"""Rows of different lengths, end to end: nothing pads everyone to the longest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64, Shaped
from numpy.typing import ArrayLike, NDArray

from tacit.errors import BadValue


@dataclass(frozen=True, eq=False)
class Ragged:
    """Offsets and values; row i is `values[offsets[i]:offsets[i + 1]]`."""

    offsets: Int64[np.ndarray, "rows_and_one"]
    values: Shaped[np.ndarray, "total"]

    def __post_init__(self) -> None:
        o = self.offsets
        if (
            len(o) == 0
            or o[0] != 0
            or o[-1] != len(self.values)
            or (np.diff(o) < 0).any()
        ):
            raise BadValue(
                f"offsets must rise from 0 to {len(self.values)}, the number of values"
            )

    @classmethod
    def of_lengths(cls, lengths: ArrayLike, values: NDArray[Any]) -> Ragged:
        """Cut `values` into rows of these lengths."""
        return cls(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), values)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> Int64[np.ndarray, "rows"]:
        """How many values each row has."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Int64[np.ndarray, "total"]:
        """The row each value belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, rows: ArrayLike) -> Ragged:
        """Some of the rows, in the order given."""
        chosen = np.asarray(rows, np.int64)
        return Ragged.of_lengths(self.lengths[chosen], self.values[self.places(chosen)])

    def places(self, rows: ArrayLike) -> Int64[np.ndarray, "total"]:
        """Where the values of some rows stand in `values`."""
        chosen = np.asarray(rows, np.int64)
        lengths = self.lengths[chosen]
        starts = np.repeat(self.offsets[:-1][chosen] - _before(lengths), lengths)
        return starts + np.arange(lengths.sum(), dtype=np.int64)


def _before(lengths: Int64[np.ndarray, "rows"]) -> Int64[np.ndarray, "rows"]:
    return np.cumsum(lengths) - lengths
