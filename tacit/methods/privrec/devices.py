"""What devices make of a Cast, their profiles and their histories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from tacit.data.features import Numeric
from tacit.data.shards import Shards
from tacit.keys import Keys
from tacit.method import Clients
from tacit.methods.privrec.examples import labelled, usual
from tacit.methods.privrec.items import Items
from tacit.models.feature_mlp import (
    Encoded,
    Examples,
    Network,
    Schedule,
    train,
)
from tacit.tree import Array, Arrays

VALUE = "value"  # of an event, as the last number of its situation; paper mode only


@dataclass(frozen=True, eq=False)
class Devices:
    """The network as everyone knows it, and how a history is read."""

    network: Network
    weights: Arrays
    items: Items
    positive_from: float | None
    negatives: int
    is_rating: bool  # labels are values, not likes

    def examples(self, clients: Clients, shards: Shards, keys: Keys) -> Examples:
        """What the devices learn from."""
        likes = self._labels(shards)
        found = labelled(shards, likes, negatives=self.negatives, keys=keys)
        situations = self._situations(shards).take(found.events)
        if self._uses_value:  # what never happened has no value
            situations.numbers[found.is_drawn, -1] = 0.0
        return Examples(
            found.offsets,
            self.items.of[found.items].astype(np.int64),
            found.labels,
            situations,
            self._people(clients),
            self.items.kinds,
        )

    def train(
        self, examples: Examples, schedule: Schedule, keys: Keys
    ) -> dict[str, Array]:
        """How far each device moves from the weights of everyone."""
        start = self.weights
        return train(
            self.network,
            start,
            examples,
            schedule=schedule,
            keys=keys,
            finish=lambda own, _: {name: own[name] - start[name] for name in own},
        )

    def adapt(
        self, examples: Examples, situations: Encoded, schedule: Schedule, keys: Keys
    ) -> dict[str, Array]:
        """Each device's own weights, folded to what ranking needs of them."""
        people, fold = examples.people, self.network.fold
        return train(
            self.network,
            self.weights,
            examples,
            schedule=schedule,
            keys=keys,
            finish=lambda own, some: fold(
                own, people.take(some), situations.take(some)
            ),
        )

    def usual_situation(self, shards: Shards) -> Encoded:
        """The mean of each device's situations; candidates have no value yet."""
        mean = usual(self._situations(shards), shards)
        if self._uses_value:
            mean.numbers[:, -1] = 0.0
        return mean

    @property
    def _uses_value(self) -> bool:
        return VALUE in self.network.situation.labels

    def _people(self, clients: Clients) -> Encoded:
        net, state = self.network, clients.state
        told = {name: state[name] for name in state.leaves}
        return net.person.encode(told, len(clients), rows=net.n_rows, dtype=net.dtype)

    def _situations(self, shards: Shards) -> Encoded:
        net, n = self.network, len(shards.items)
        columns = {**shards.contexts, VALUE: Numeric(shards.values)}
        return net.situation.encode(columns, n, rows=net.n_rows, dtype=net.dtype)

    def _labels(self, shards: Shards) -> Float32[np.ndarray, "events"]:
        if self.is_rating:
            return shards.values
        if self.positive_from is None:
            return np.ones_like(shards.values)
        return (shards.values >= self.positive_from).astype(np.float32)
