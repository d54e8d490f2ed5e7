"""What a cohort of devices holds: each its own history and nothing of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int32, Int64
from numpy.typing import ArrayLike

from tacit.data.interactions import Interactions
from tacit.data.ragged import Ragged


@dataclass(frozen=True, eq=False)
class Shards:
    """Ragged histories; row i belongs to client i and is all that client i sees."""

    offsets: Int64[np.ndarray, "clients_and_one"]
    items: Int32[np.ndarray, "events"]
    values: Float32[np.ndarray, "events"]
    times: Int64[np.ndarray, "events"] | None
    n_items: int

    @classmethod
    def of(cls, log: Interactions) -> Shards:
        """Hand each user's events to that user's device."""
        return cls(log.offsets, log.items, log.values, log.times, log.n_items)

    @classmethod
    def of_history(cls, items: ArrayLike, *, n_items: int) -> Shards:
        """One device that holds these items."""
        held = np.asarray(items, np.int32)
        offsets = np.array([0, len(held)], np.int64)
        return cls(offsets, held, np.ones(len(held), np.float32), None, n_items)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64[np.ndarray, "clients"]:
        """How many events each device holds."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Int64[np.ndarray, "events"]:
        """The client each event belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def histories(self) -> Ragged:
        """The items of each device."""
        return Ragged(self.offsets, self.items)

    def take(self, rows: ArrayLike) -> Shards:
        """Some of the devices, in the order given."""
        taken = self.histories.take(rows)
        places = self.histories.places(rows)
        return Shards(
            taken.offsets,
            np.asarray(taken.values),
            self.values[places],
            None if self.times is None else self.times[places],
            self.n_items,
        )
