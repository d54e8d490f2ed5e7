"""The labelled examples that clients learn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64
from numpy.typing import ArrayLike

from tacit.data.ragged import Ragged, offsets_of
from tacit.keys import Keys
from tacit.models.feature_mlp.inputs import Encoded
from tacit.models.feature_mlp.network import Side


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled items of all clients, end to end, each in a situation."""

    offsets: Int64[np.ndarray, "clients_and_one"]
    items: Int64[np.ndarray, "examples"]  # rows of `catalog`
    labels: Float[np.ndarray, "examples"]
    situations: Encoded  # one per example
    users: Encoded  # one per client
    catalog: Encoded  # one per kind of item

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64[np.ndarray, "clients"]:
        """How many examples each client has."""
        return np.diff(self.offsets)

    def take(self, clients: ArrayLike) -> Examples:
        """Some of the clients, in the order given."""
        rows = np.asarray(clients, np.int64)
        places = self.places(rows)
        return Examples(
            offsets_of(self.lengths[rows]),
            self.items[places],
            self.labels[places],
            self.situations.take(places),
            self.users.take(rows),
            self.catalog,
        )

    def places(self, clients: ArrayLike) -> Int64[np.ndarray, "some"]:
        """Indices of the examples of some clients, client by client."""
        return Ragged(self.offsets, self.items).places(clients)

    def shuffled(
        self, clients: Int64[np.ndarray, "clients"], keys: Keys
    ) -> Int64[np.ndarray, "some"]:
        """The same indices, each client's in a random order of its own."""
        lengths = self.lengths[clients]
        owners = np.repeat(np.arange(len(clients)), lengths)
        return self.places(clients)[np.lexsort((keys.bits_ragged(lengths), owners))]

    def sides(
        self, clients: ArrayLike, places: Int64[np.ndarray, "some"]
    ) -> Mapping[Side, Encoded]:
        """The inputs of all three sides, for some clients and some examples."""
        return {
            "person": self.users.take(clients),
            "situation": self.situations.take(places),
            "item": self.catalog.take(self.items[places]),
        }
