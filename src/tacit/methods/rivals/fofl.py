"""FOFL-SELF: Reptile over item ids; no features of users or items are used.

    θ₀, θ_τ  weights, of everyone and of client τ       Δ_τ  θ_τ - θ₀          (leaves)
    α₁, α    rate of a client, step of the server

    client   1  θ_τ = θ₀; passes over mini-batches: θ_τ -= α₁ ∇ loss
             2  send Δ_τ
    server   3  θ₀ += α (mean of Δ_τ), or Adam along it
    ranking  4  adapt θ₀ on the device to its history; score items by their ids

The network has no input for a user: what it knows of one is what the client adapts. An
item that no client has, or drew as a negative, keeps its random embedding. Nothing
protects Δ_τ: it moves the rows of what the client had or drew, and no others.

Source: A. Jalalirad, M. Scavuzzo, C. Capota and M. Sprague, "A Simple and Efficient
Federated Recommender System", 2019, as PrivRec (Wang et al. 2021, Section 4.1) compares
itself with it. What neither states: docs/methods/fofl.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from tacit import check
from tacit.aggregation.server_optimizers import BY_NAME, ServerOptimizer
from tacit.data.features import Category
from tacit.method import (
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    Clients,
    Key,
    Keys,
    Mechanisms,
    Phase,
    Plan,
    PublicSlot,
    Scores,
    Server,
    Shards,
    Slot,
    SumMethod,
    Tastes,
    Tree,
    Unprotected,
    check_offered,
)
from tacit.models.feature_mlp import (
    Activation,
    Blueprint,
    Cohort,
    Dislikes,
    Labelling,
    Schedule,
)
from tacit.models.feature_mlp.items import without_catalog
from tacit.wire_names import register


@register("fofl")
@dataclass(frozen=True)
class Fofl(SumMethod):
    """A network over item ids that every client adapts to its user. Not private."""

    mechanisms: ClassVar[Mechanisms] = {"none": Unprotected}

    # what is learnt from
    positive_from: float | None = None  # the least value that is liked; None: any
    negatives: int = 2  # items never touched, for each that is liked
    dislikes: Dislikes = "negative"  # what becomes of events that are not liked
    # the network
    embedding: int = 64
    widths: tuple[int, ...] = (64, 32, 16, 8)
    activation: Activation = "relu"
    precision: Literal["float32", "float64"] = "float32"
    # Reptile
    local_epochs: int = 5
    batch: int = 32
    rate: float = 0.05  # alpha1
    step: float = 1.0  # alpha
    server_step: Literal["reptile", "adam"] = "reptile"  # "adam": `step` is its rate
    adapt_epochs: int = 5  # 0: the weights of everyone
    adapt_rate: float = 0.05

    def __post_init__(self) -> None:
        check_offered(self)
        check.one_of(("reptile", "adam"), server_step=self.server_step)
        check.not_negative(adapt_epochs=self.adapt_epochs)
        check.count(local_epochs=self.local_epochs)
        check.positive(step=self.step, adapt_rate=self.adapt_rate)
        _ = self._schedule, self._blueprint, self._labelling  # refuse what cannot be

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """One phase; an update tells which items a client had or drew."""
        return (Phase("updates", range(plan.rounds), "updates of the model"),)

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per weight of the network."""
        return self._blueprint.report_shape(_by_id(catalog))

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The network, and the items as it reads them."""
        return self._blueprint.public_shape(_by_id(catalog))

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1 and 2, for all clients at once."""
        return self.cohort(broadcast).movement(
            clients.state, shards, self._schedule, keys
        )

    # server

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The server with random weights, before the first round."""
        weights = self._blueprint.start(_by_id(catalog), key)
        memory = self._optimizer.start(without_catalog(weights))
        return Server(plan, catalog, 0, weights, memory)

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 3: one step of the server along the mean movement."""
        planned = self.planned(server.plan)
        away = {name: -value / planned for name, value in total.items()}
        return server.stepped(self._optimizer, away)

    # serving

    @property
    def liked(self) -> float:
        """The least value that counts as liked."""
        return self._labelling.least_liked

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 4: adapted weights, reduced to what ranking needs of them."""
        how = replace(self._schedule, epochs=self.adapt_epochs, rate=self.adapt_rate)
        return Tastes(self.cohort(broadcast).taste(clients.state, shards, how, keys))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 4: the adapted network's scores of the candidates."""
        return self.cohort(broadcast).scores(user.tree, candidates.items)

    # details

    @property
    def _blueprint(self) -> Blueprint:
        return Blueprint(
            embedding=self.embedding,
            widths=self.widths,
            activation=self.activation,
            dtype=self.precision,
        )

    @property
    def _labelling(self) -> Labelling:
        return Labelling(self.positive_from, self.negatives, self.dislikes)

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.local_epochs, self.batch, self.rate)

    @property
    def _optimizer(self) -> ServerOptimizer:
        return BY_NAME[self.server_step](self.step)

    def cohort(self, broadcast: Broadcast) -> Cohort:
        """The network of a broadcast, and how clients read a history with it."""
        return self._blueprint.cohort(broadcast.weights, self._labelling)


def _by_id(catalog: Catalog) -> Catalog:
    """The same items with their id as the only feature."""
    codes = np.arange(len(catalog), dtype=np.int32)
    return replace(catalog, features={"id": Category(codes, catalog.ids)})
