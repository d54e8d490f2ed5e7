"""What clients make of a broadcast, their profiles and their histories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64

from tacit.data.features import Numeric
from tacit.data.shards import Shards
from tacit.keys import Keys
from tacit.models.feature_mlp.examples import Examples
from tacit.models.feature_mlp.inputs import Encoded
from tacit.models.feature_mlp.items import Items
from tacit.models.feature_mlp.labels import Labelling, usual
from tacit.models.feature_mlp.network import Network
from tacit.models.feature_mlp.schedule import Schedule
from tacit.models.feature_mlp.training import train
from tacit.tree import Arrays, Tree

VALUE = "value"  # of an event, as the last number of its situation; paper mode only


@dataclass(frozen=True, eq=False)
class Cohort:
    """The broadcast network with its items, and how clients read a history."""

    network: Network
    weights: Arrays
    items: Items
    labelling: Labelling

    def examples(self, profiles: Tree, shards: Shards, keys: Keys) -> Examples:
        """What the clients learn from, with the profile that each keeps of its user."""
        found = self.labelling.of(shards, keys)
        situations = self._situations(shards).take(found.events)
        if self._uses_value:  # an event that never happened has no value
            situations.numbers[found.is_drawn, -1] = 0.0
        return Examples(
            found.offsets,
            self.items.kind_of[found.items].astype(np.int64),
            found.labels,
            situations,
            self._users(profiles, len(shards)),
            self.items.kinds,
        )

    def movement(
        self, profiles: Tree, shards: Shards, schedule: Schedule, keys: Keys
    ) -> Tree:
        """The weights of each client after training, minus the broadcast ones."""
        start = self.weights
        found = train(
            self.network,
            start,
            self.examples(profiles, shards, keys.at("negatives")),
            schedule=schedule,
            keys=keys.at("train"),
            finish=lambda own, _: {name: own[name] - start[name] for name in own},
            is_compiled=True,  # it leaves the client: who else is there must not matter
        )
        return Tree.dense(**found)

    def taste(
        self, profiles: Tree, shards: Shards, schedule: Schedule, keys: Keys
    ) -> Tree:
        """The adapted weights of each client, reduced to what ranking needs."""
        examples = self.examples(profiles, shards, keys.at("negatives"))
        users, situations = examples.users, self.usual_situation(shards)
        fold = self.network.fold
        found = train(
            self.network,
            self.weights,
            examples,
            schedule=schedule,
            keys=keys.at("adapt"),
            finish=lambda own, some: fold(own, users.take(some), situations.take(some)),
        )
        return Tree.dense(**found)

    def scores(
        self, taste: Tree, items: Int64[np.ndarray, "candidates"]
    ) -> Float[np.ndarray, "users candidates"]:
        """Logits of items from what `taste` gave; they order as probabilities do."""
        folded = {name: taste[name] for name in taste.leaves}
        # One score per kind: items with the same features tie anyway.
        kinds = self.network.lookup(self.items.kinds)
        return self.network.logits(folded, kinds)[:, self.items.kind_of[items]]

    def usual_situation(self, shards: Shards) -> Encoded:
        """The mean of each client's situations; candidates have no value yet."""
        mean = usual(self._situations(shards), shards)
        if self._uses_value:
            mean.numbers[:, -1] = 0.0
        return mean

    @property
    def _uses_value(self) -> bool:
        return VALUE in self.network.situation.labels

    def _users(self, profiles: Tree, n: int) -> Encoded:
        net = self.network
        columns = {name: profiles[name] for name in profiles.leaves}
        return net.person.encode(columns, n, rows=net.n_rows, dtype=net.dtype)

    def _situations(self, shards: Shards) -> Encoded:
        net, n = self.network, len(shards.items)
        columns = {**shards.contexts, VALUE: Numeric(shards.values)}
        return net.situation.encode(columns, n, rows=net.n_rows, dtype=net.dtype)
