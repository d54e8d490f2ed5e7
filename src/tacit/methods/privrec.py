"""PrivRec and DP-PrivRec (Wang et al. 2021): features, meta-learning, adaptation.

    θ₀, θ_τ  weights, of everyone and of client τ       Δ_τ  θ_τ - θ₀          (leaves)
    M, E₁    clients per round, rounds (the plan's)     E₂   local_epochs
    α₁, α₃   rate of a client, step of the server       μ    pull to θ₀
    S, γ, α₄ clip, its quantile, its rate               z, h noise, share of the bits

    client   1  θ_τ = θ₀; E₂ passes over mini-batches: θ_τ -= α₁ ∇ (loss + proximal)
             2  send Δ_τ, clipped jointly to S, and a bit: was it within?
    server   3  θ₀ += α₃ (Σ Δ_τ + noise) / (clients planned), or Adam along it
             4  move S by the noisy bits
    ranking  5  adapt θ₀ on the device to its history; score items by their features

                     mode="sound"                     mode="paper"
    proximal term    μ/2 |θ_τ - θ₀|²                  μ/2 |θ_τ - θ₀|
    numbers          of items: standardised           raw; an event's value may be one
    server's step    Reptile's or Adam's              Reptile's

                     mechanism="central"              mechanism="published" (paper)
    bit              of the norm before the clip      after it: always 1
    S                S exp(-α₄ (b̄ - γ))               S - α₄ (b̄ - γ), with a floor
    noise            inside α₃, over secure_sum       outside α₃, by the server

No id of a user or an item enters the network: users without a history and items that
nobody has touched are scored like any other, and items of the same features tie. In
sound mode some rounds may count first (`count_rounds`): a client sends its likes as a
row of norm 1, and the logarithm of their noisy sum is one more feature of the items.

Source: Q. Wang, H. Yin, T. Chen, J. Yu, A. Zhou and X. Zhang, "Fast-adapting and
Privacy-preserving Federated Recommender System", 2021. Departures and what the paper
leaves open: docs/methods/privrec.md; its errors: docs/errata/privrec.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.aggregation.server_optimizers import BY_NAME, ServerOptimizer
from tacit.errors import BadValue
from tacit.method import (
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    CentralGaussian,
    Clients,
    Key,
    Keys,
    Mechanisms,
    Phase,
    Plan,
    Profiles,
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
    in_turn,
)
from tacit.models.feature_mlp import (
    Activation,
    Blueprint,
    Cohort,
    Dislikes,
    Labelling,
    Schedule,
)
from tacit.models.feature_mlp.blueprint import size
from tacit.models.feature_mlp.cohort import VALUE
from tacit.models.feature_mlp.items import without_catalog
from tacit.models.histories import log_counts, rows
from tacit.models.item_relations import unit
from tacit.privacy import PublishedClippedSum
from tacit.wire_names import register

_ENOUGH = (64, 48, 24)  # widths that give an audit thousands of coordinates to look at


@register("privrec")
@dataclass(frozen=True)
class PrivRec(SumMethod):
    """A network over features that every client adapts to its user.

    `people` and `situations` say how many labels each feature has, 0 for a number:
    everyone must know that beforehand, for it cannot be taken from private data.
    """

    mechanisms: ClassVar[Mechanisms] = {
        "none": Unprotected,
        "central": CentralGaussian,
        "published": PublishedClippedSum,
    }

    items: tuple[str, ...] = ()  # features of the catalog; none named: all but text
    by_value: tuple[str, ...] = ()  # numbers of items with a label for each value
    people: Mapping[str, int] = field(default_factory=dict)
    situations: Mapping[str, int] = field(default_factory=dict)
    mode: Literal["sound", "paper"] = "sound"
    # what is learnt from
    positive_from: float | None = None  # the least value that is liked; None: any
    negatives: int = 2  # items never touched, for each that is liked
    dislikes: Dislikes = "negative"  # what becomes of events that are not liked
    uses_value: bool = False  # an event's value is an input (Frappe's `count`)
    # the network
    embedding: int = 64
    widths: tuple[int, ...] = (64, 32, 16, 8)
    activation: Activation = "relu"
    head: Literal["sigmoid", "linear"] = "sigmoid"
    precision: Literal["float32", "float64"] = "float32"
    # Algorithm 1
    local_epochs: int = 5  # E2
    batch: int = 32
    rate: float = 0.05  # alpha1
    pull: float = 0.01  # mu
    step: float = 1.0  # alpha3
    server_step: Literal["reptile", "adam"] = "reptile"  # "adam": `step` is its rate
    adapt_epochs: int = 5  # 0: the weights of everyone
    adapt_rate: float = 0.05
    # counting, sound only: how often an item is liked becomes one of its features
    count_rounds: int = 0
    count_share: float = 0.1  # of the budget, for counting

    def __post_init__(self) -> None:
        check_offered(self)
        check.one_of(("sound", "paper"), mode=self.mode)
        check.one_of(("reptile", "adam"), server_step=self.server_step)
        check.at_least(0, count_rounds=self.count_rounds)
        check.not_negative(adapt_epochs=self.adapt_epochs)
        check.count(local_epochs=self.local_epochs)
        check.positive(step=self.step, adapt_rate=self.adapt_rate)
        check.fraction(count_share=self.count_share)
        _ = self._schedule, self._blueprint, self._labelling  # refuse what cannot be
        self._check_mode()

    def _check_mode(self) -> None:
        is_published = isinstance(self.privacy, PublishedClippedSum)
        if self.privacy.is_private and is_published != (self.mode == "paper"):
            raise BadValue(
                "mode='paper' and mechanism 'published' go together: the paper's clip "
                "and noise are reachable from it alone, and it has no others"
            )
        if self.mode == "paper" and self.server_step != "reptile":
            raise BadValue(
                f"server_step='{self.server_step}' belongs to mode='sound': the paper "
                "takes plain steps, and its noise is made for them"
            )
        if self.mode == "paper" and self.count_rounds:
            raise BadValue(
                f"count_rounds={self.count_rounds} is not in the paper; use "
                "mode='sound'"
            )
        if self.uses_value and self.mode != "paper":
            raise BadValue(
                "uses_value=True belongs to mode='paper': the value of an event tells "
                "whether it happened, and no candidate has one"
            )
        if VALUE in self.situations:
            raise BadValue(f"situations: '{VALUE}' is the event's own; see uses_value")

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """Counting likes, if any, for a share of the budget; then updates."""
        counting, training = in_turn(
            ("counts", self.count_rounds, "PrivRec counts"),
            ("updates", 0, "trains"),
            total=plan.rounds,
        )
        updates = Phase(
            "updates",
            training,
            what="updates of the model",
            is_clipped=True,
            share=1 - self.count_share if self.count_rounds else 1.0,
            step=self.step if self.server_step == "reptile" else 1.0,
        )
        if not self.count_rounds:
            return (updates,)
        proof = "likes of length 1"
        counts = Phase(
            "counts",
            counting,
            what="counts of likes",
            share=self.count_share,
            proof=proof,
        )
        return counts, updates

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item while counting; then one per weight."""
        if phase.name == "counts":
            return {"counts": Slot("float64", (len(catalog),))}
        return self._blueprint.report_shape(catalog)

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The network, and the items as it reads them."""
        return self._blueprint.public_shape(catalog)

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """The profile of each user as the network reads it; it stays on the client."""
        return self._blueprint.profile_columns(profiles)

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Line 1 for all clients; while counting, the likes as a row of norm 1."""
        cohort = self.cohort(broadcast)
        if phase.name == "counts":
            return Tree.dense(counts=unit(rows(cohort.labelling.liked(shards))))
        return cohort.movement(clients.state, shards, self._schedule, keys)

    # server

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Random weights, and counts of zero."""
        weights = self._blueprint.start(catalog, key)
        memory = self._optimizer.start(without_catalog(weights))
        if self.count_rounds:
            memory["counts"] = np.zeros(len(catalog))
        return Server(plan, catalog, 0, weights, memory)

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 3, or one more round of counting. The step scales the noise as well."""
        if phase.name == "counts":
            return self._counted(server, phase, total["counts"])
        # Clients planned, not clients that came: how many came is not released.
        planned = self.planned(server.plan)
        away = {name: -value / planned for name, value in total.items()}
        return server.stepped(self._optimizer, away)

    def _counted(
        self, server: Server, phase: Phase, found: Float64[np.ndarray, "items"]
    ) -> Server:
        """Counts so far; after the last counting round they become item features."""
        counts, weights = server.memory["counts"] + found, server.weights
        if server.round == self.count_rounds - 1:
            users, n_items = server.plan.cohort_size, len(counts)
            noise = self.privacy.variance(phase, users=users, size=n_items)
            logs = log_counts(counts, floor=math.sqrt(noise * self.count_rounds))
            items = self._blueprint.read(server.catalog, logs)
            weights = {**without_catalog(weights), **items.arrays()}
        return server.after(weights=weights, memory={**server.memory, "counts": counts})

    # serving

    @property
    def liked(self) -> float:
        """The least value that counts as liked."""
        return self._labelling.least_liked

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 5: adapted weights, reduced to what ranking needs of them."""
        how = replace(self._schedule, epochs=self.adapt_epochs, rate=self.adapt_rate)
        return Tastes(self.cohort(broadcast).taste(clients.state, shards, how, keys))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 5: the adapted network's scores of the candidates."""
        return self.cohort(broadcast).scores(user.tree, candidates.items)

    # what can be learnt

    def outlook(self, plan: Plan, catalog: Catalog) -> str:
        """How many items the features tell apart, and how loud the noise is."""
        kinds = len(self._blueprint.read(catalog).kinds)
        alike = (
            "counts tell a kind apart" if self.count_rounds else "those of a kind tie"
        )
        said = f"{len(catalog):,} items are {kinds:,} kinds; {alike}"
        *_, training = self.phases(plan)
        noise = self.privacy.mechanism(training, self.privacy.told(training, {}))
        if noise is None:
            return said
        n = size(self._blueprint.network(catalog))
        a_weight = noise.scale("") / self.planned(plan)
        longest = float(self.privacy.told(training, {}).get("clip", noise.sensitivity))
        times = a_weight * np.sqrt(n) / longest
        return (
            f"{said}. The noise of a round on {n:,} weights is {times:.1f} times as "
            "long as the longest mean update"
        )

    def for_catalog(self, catalog: Catalog) -> Self:
        """A copy that reads every feature of this catalog, with enough weights."""
        is_small = len(self.widths) < 2 or self.widths[0] < _ENOUGH[0]
        return replace(
            self,
            items=(),
            by_value=(),
            people={},
            situations={},
            embedding=max(16, self.embedding),
            widths=_ENOUGH if is_small else self.widths,
        )

    # details

    def cohort(self, broadcast: Broadcast) -> Cohort:
        """The network of a broadcast, and how clients read a history with it."""
        return self._blueprint.cohort(broadcast.weights, self._labelling)

    @property
    def _blueprint(self) -> Blueprint:
        return Blueprint(
            items=self.items,
            by_value=self.by_value,
            people=self.people,
            situations=self.situations,
            uses_value=self.uses_value,
            has_counts=self.count_rounds > 0,
            is_scaled=self.mode == "sound",
            embedding=self.embedding,
            widths=self.widths,
            activation=self.activation,
            dtype=self.precision,
        )

    @property
    def _labelling(self) -> Labelling:
        return Labelling(self.positive_from, self.negatives, self.dislikes, self.head)

    @property
    def _optimizer(self) -> ServerOptimizer:
        return BY_NAME[self.server_step](self.step)

    @property
    def _schedule(self) -> Schedule:
        return Schedule(
            epochs=self.local_epochs,
            batch=self.batch,
            rate=self.rate,
            pull=self.pull,
            is_squared=self.mode == "sound",
            head=self.head,
        )
