"""FOFL-SELF: Reptile over item ids; nothing is known of people or items.

    θ₀, θ_τ  weights, of everyone and of client τ       Δ_τ  θ_τ - θ₀          (leaves)
    α₁, α    rate of a client, step of the server

    device   1  θ_τ = θ₀; passes over mini-batches: θ_τ -= α₁ ∇ loss
             2  send Δ_τ
    server   3  θ₀ += α (mean of Δ_τ), or Adam along it
    ranking  4  adapt θ₀ on the device to its history; score items by their ids

A person is what the device learns: the network has no input for one. An item that no
device has, or drew as a negative, keeps its random embedding. Nothing protects Δ_τ: it
moves the rows of what the device had or drew, and no others.

Source: A. Jalalirad, M. Scavuzzo, C. Capota and M. Sprague, "A Simple and Efficient
Federated Recommender System", 2019, as PrivRec (Wang et al. 2021, Section 4.1) compares
itself with it. What neither states: docs/methods/fofl.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tacit import check
from tacit.aggregation.mean import Mean
from tacit.aggregation.server_optimizers import BY_NAME, ServerOptimizer
from tacit.data.catalog import Catalog
from tacit.data.features import Category
from tacit.data.shards import Shards
from tacit.keys import Key, Keys
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.models.feature_mlp import (
    Activation,
    Blueprint,
    Devices,
    Dislikes,
    Labelling,
    Schedule,
)
from tacit.models.feature_mlp.items import without_catalog
from tacit.phases import released
from tacit.plan import Plan
from tacit.release import Release, unprotected
from tacit.transport.channels import Delivery
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Tree


@dataclass(frozen=True)
class Fofl(Method):
    """A network over item ids that every device adapts to its user. Not private."""

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
        check.one_of(("reptile", "adam"), server_step=self.server_step)
        check.not_negative(adapt_epochs=self.adapt_epochs)
        check.count(local_epochs=self.local_epochs)
        check.positive(step=self.step, adapt_rate=self.adapt_rate)
        _ = self._schedule, self._blueprint, self._labelling  # refuse what cannot be

    # server

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Random weights."""
        weights = self._blueprint.start(_by_id(catalog), key)
        memory = self._optimizer.start(without_catalog(weights))
        return Server(plan, catalog, 0, weights, memory)

    @property
    def aggregator(self) -> Mean:
        """A plain sum."""
        return Mean()

    def aggregate(self, server: Server, delivery: Delivery, key: Key) -> Server:
        """Line 3."""
        layout = self.layout(server.plan, server.catalog, round=server.round)
        planned = server.plan.cohort_size
        mean = self.aggregator.mean(delivery, layout, planned=planned)
        away = {name: -value for name, value in mean.items()}
        return server.stepped(self._optimizer, away)

    # device

    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Line 1, for all clients at once."""
        device, how = self._devices(cast), self._schedule
        return clients.state, Updates(device.movement(clients.state, shards, how, keys))

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Line 2: as they are."""
        return Reports(updates.tree)

    # serving

    @property
    def liked(self) -> float:
        """The least that counts as liked."""
        return self._labelling.least_liked

    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 4: adapted weights, folded to what ranking needs of them."""
        how = replace(self._schedule, epochs=self.adapt_epochs, rate=self.adapt_rate)
        return Tastes(self._devices(cast).taste(clients.state, shards, how, keys))

    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 4, on the device."""
        return self._devices(cast).scores(person.tree, candidates.items)

    # account

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """A number a weight."""
        shapes = self._blueprint.network(_by_id(catalog)).shapes
        return Layout({n: Slot(self.precision, shape) for n, shape in shapes.items()})

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The updates themselves; they tell which items a device had or drew."""
        cells = unprotected("updates are sent as they are; no mechanism protects them")
        return (released("sum of updates", cells),)

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

    def _devices(self, cast: Cast) -> Devices:
        return self._blueprint.devices(cast.weights, self._labelling)


def _by_id(catalog: Catalog) -> Catalog:
    """The same items, of which nothing but the id is known."""
    codes = np.arange(len(catalog), dtype=np.int32)
    return replace(catalog, features={"id": Category(codes, catalog.ids)})
