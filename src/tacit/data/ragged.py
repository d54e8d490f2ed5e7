"""Rows of different lengths, end to end: nothing pads everyone to the longest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64, Shaped
from numpy.typing import ArrayLike, NDArray

from tacit import arrays
from tacit.errors import BadValue
from tacit.kernels import dispatch


@dataclass(frozen=True, eq=False)
class Ragged:
    """Offsets and values; row i is `values[offsets[i]:offsets[i + 1]]`."""

    offsets: Int64[np.ndarray, "rows_and_one"]
    values: Shaped[np.ndarray, "total"]

    def __post_init__(self) -> None:
        arrays.typed(np.int64, offsets=self.offsets)
        ends = self.offsets[[0, -1]] if len(self.offsets) else np.array([-1, -1])
        if (ends != [0, len(self.values)]).any() or (self.lengths < 0).any():
            raise BadValue(
                f"offsets must rise from 0 to {len(self.values)}, the number of values"
            )

    @classmethod
    def of_lengths(cls, lengths: ArrayLike, values: NDArray[Any]) -> Ragged:
        """Cut `values` into rows of these lengths."""
        return cls(offsets_of(lengths), values)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        place = range(len(self))[row]  # refuses what is beyond, counts -1 from the end
        return self.values[self.offsets[place] : self.offsets[place + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> Int64[np.ndarray, "rows"]:
        """The number of values in each row."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Int64[np.ndarray, "total"]:
        """The row each value belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, rows: ArrayLike) -> Ragged:
        """Some of the rows, in the order given."""
        chosen = arrays.rows(rows, len(self))
        [values] = self.columns_of(chosen, self.values)
        return Ragged.of_lengths(self.lengths[chosen], values)

    def columns_of(
        self, rows: Int64[np.ndarray, "rows"], *columns: NDArray[Any]
    ) -> list[NDArray[Any]]:
        """The entries for some rows of columns that are as long as `values`."""
        starts, offsets = self.offsets[rows], offsets_of(self.lengths[rows])
        if not dispatch.pays("ragged.gather", int(offsets[-1])):
            places = self.places(rows)
            return [column[places] for column in columns]
        from tacit.kernels.ragged import gather  # loads numba

        found = [np.empty(offsets[-1], column.dtype) for column in columns]
        for column, out in zip(columns, found, strict=True):
            gather(column, starts, offsets, out)
        return found

    def places(self, rows: ArrayLike) -> Int64[np.ndarray, "total"]:
        """The indices into `values` of the values of some rows."""
        chosen = arrays.rows(rows, len(self))
        lengths = self.lengths[chosen]
        shift = self.offsets[chosen] - offsets_of(lengths)[:-1]  # old start less new
        return np.repeat(shift, lengths) + np.arange(lengths.sum(), dtype=np.int64)


def skip_taken(
    numbers: Int64[np.ndarray, "*draws"],
    rows: Int64[np.ndarray, "*draws"],
    taken: Ragged,
) -> Int64[np.ndarray, "*draws"]:
    """Number r of a row becomes the r-th one, from 0, that the row has not taken.

    Taken numbers are sorted within a row, each once.

    >>> taken = Ragged.of_lengths([3], np.array([0, 1, 4]))
    >>> skip_taken(np.array([0, 1, 2, 3]), np.zeros(4, np.int64), taken)
    array([2, 3, 5, 6])
    """
    owners = taken.owners
    within = np.arange(len(owners)) - taken.offsets[owners]
    free_before = taken.values - within  # rises along a row, not strictly
    # One sorted line for all rows, wide enough apart; then a single search.
    apart = int(max(numbers.max(initial=0), free_before.max(initial=0))) + 1
    line, wanted = owners * apart + free_before, rows * apart + numbers
    skipped = np.searchsorted(line, wanted, side="right") - taken.offsets[rows]
    return numbers + skipped


def offsets_of(lengths: ArrayLike) -> Int64[np.ndarray, "rows_and_one"]:
    """Where rows of these lengths begin and end: [2, 0, 3] gives 0 2 2 5."""
    n = arrays.integers(lengths, "lengths", below=2**62)
    return np.concatenate([[0], np.cumsum(n, dtype=np.int64)], dtype=np.int64)
