"""What clients learn from in one step, as arrays of the same shape for every client.

A client has read some news and was shown some slates; of each slate one was clicked. A
place without news is `NO_NEWS`. The number after the last news of the catalog stands
for the padding news, which a history may have in place of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64

from tacit import arrays
from tacit.data.ragged import Ragged
from tacit.errors import BadValue

NO_NEWS = -1  # an empty place of a history or a slate
NO_SLATE = -1  # the label of a slate that a client does not have


@dataclass(frozen=True, eq=False)
class Batch:
    """Histories and slates of clients, and the noise of their attention if there is.

    With `noise` a user vector is replaced by a noisy mixture of basis vectors, whose
    attention is clipped to length `theta` (`interests`). Without, it stays as it is.
    """

    histories: Int64[np.ndarray, "clients read"]
    candidates: Int64[np.ndarray, "clients slates shown"]
    labels: Int64[np.ndarray, "clients slates"]  # which of the shown was clicked
    noise: Float[np.ndarray, "clients interests"] | None = None
    theta: float = 1.0

    def __post_init__(self) -> None:
        shown = self.candidates.shape[2]
        arrays.integers(self.labels.ravel(), "labels", least=NO_SLATE, below=shown)
        if (self.clicked[self.labels != NO_SLATE] == NO_NEWS).any():
            raise BadValue("a label is an empty place; it must be one of the shown")

    def __len__(self) -> int:
        return len(self.histories)

    @property
    def clicked(self) -> Int64[np.ndarray, "clients slates"]:
        """The news that was clicked in each slate; of no slate the last place."""
        found = np.take_along_axis(self.candidates, self.labels[:, :, None], axis=2)
        return np.asarray(found[:, :, 0])

    def check(self, n_news: int) -> None:
        """Refuse numbers that are no news of a catalog of this size."""
        arrays.integers(
            self.histories.ravel(), "histories", least=NO_NEWS, below=n_news + 1
        )
        arrays.integers(
            self.candidates.ravel(), "candidates", least=NO_NEWS, below=n_news
        )

    def blocks(self, size: int) -> Iterator[Batch]:
        """The same clients, at most `size` at a time."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def take(self, rows: slice) -> Batch:
        """Some of the clients."""
        return Batch(
            self.histories[rows],
            self.candidates[rows],
            self.labels[rows],
            None if self.noise is None else self.noise[rows],
            self.theta,
        )


class DistinctNews(NamedTuple):
    """The news of a batch, each once; histories and candidates are rows of these.

    An empty place is row 0: whoever uses it gives it no weight.
    """

    numbers: Int64[np.ndarray, "news"]
    histories: Int64[np.ndarray, "clients read"]
    candidates: Int64[np.ndarray, "clients slates shown"]

    @classmethod
    def of(cls, batch: Batch) -> DistinctNews:
        """The distinct news in rising order."""
        both = np.concatenate([batch.histories.ravel(), batch.candidates.ravel()])
        numbers, rows = np.unique(np.maximum(both, 0), return_inverse=True)
        read = batch.histories.size
        return cls(
            numbers,
            rows[:read].reshape(batch.histories.shape),
            rows[read:].reshape(batch.candidates.shape),
        )

    def blocks(self, size: int) -> Iterator[DistinctNews]:
        """The same news for at most `size` clients at a time, as `Batch.blocks`."""
        for start in range(0, len(self.histories), size):
            rows = slice(start, start + size)
            yield DistinctNews(
                self.numbers, self.histories[rows], self.candidates[rows]
            )


def last_read(histories: Ragged, most: int) -> Ragged:
    """The last `most` news of each history.

    >>> read = Ragged.of_lengths([3, 1], np.array([4, 5, 6, 7]))
    >>> [row.tolist() for row in last_read(read, 2)]
    [[5, 6], [7]]
    """
    left = histories.offsets[1:][histories.owners] - np.arange(len(histories.values))
    kept = histories.values[left <= most]
    return Ragged.of_lengths(np.minimum(histories.lengths, most), kept)


def with_padding(
    histories: Ragged, is_padded: Bool[np.ndarray, "total"], *, n_news: int
) -> Ragged:
    """Histories in which some news are replaced by the padding news."""
    values = np.where(is_padded, n_news, histories.values)
    return Ragged(histories.offsets, values)


def as_rows(histories: Ragged, width: int) -> Int64[np.ndarray, "clients width"]:
    """Histories of at most `width` news as rows of this width, empty places last."""
    rows = np.full((len(histories), width), NO_NEWS, np.int64)
    owners = histories.owners
    rows[owners, np.arange(len(owners)) - histories.offsets[owners]] = histories.values
    return rows
