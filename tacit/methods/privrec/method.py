"""PrivRec and DP-PrivRec (Wang et al. 2021): features, meta-learning, adaptation.

    θ₀, θ_τ  weights, of everyone and of client τ       Δ_τ  θ_τ - θ₀          (leaves)
    M, E₁    clients a round, rounds (the plan's)       E₂   local_epochs
    α₁, α₃   rate of a client, step of the server       μ    pull to θ₀
    S, γ, α₄ clip, its quantile, its rate               z, h noise, share of the bits

    device   1  θ_τ = θ₀; E₂ passes over mini-batches: θ_τ -= α₁ ∇ (loss + proximal)
             2  send Δ_τ, clipped jointly to S, and a bit: was it within?
    server   3  θ₀ += α₃ (Σ Δ_τ + noise) / (devices planned), or Adam along it
             4  move S by the noisy bits
    ranking  5  adapt θ₀ on the device to its history; score items by their features

                     mode="sound"                     mode="paper"
    proximal term    μ/2 |θ_τ - θ₀|²                  μ/2 |θ_τ - θ₀|
    bit              of the norm before the clip      after it: always 1
    S                S exp(-α₄ (b̄ - γ))               S - α₄ (b̄ - γ), with a floor
    noise            inside α₃, over secure_sum       outside α₃, by the server
    numbers          of items: standardised           raw; an event's value may be one
    server's step    Reptile's or Adam's              Reptile's

No id of a person or an item enters the network: people without a history and items that
nobody has touched are scored like any other, and items of the same features tie.

Source: Q. Wang, H. Yin, T. Chen, J. Yu, A. Zhou and X. Zhang, "Fast-adapting and
Privacy-preserving Federated Recommender System", 2021. Departures and what the paper
leaves open: docs/methods/privrec.md; its errors: docs/errata/privrec.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from tacit import check
from tacit.aggregation.mean import Mean
from tacit.aggregation.server_optimizers import Adam, ServerOptimizer, Sgd
from tacit.data.catalog import Catalog, Profiles
from tacit.data.shards import Shards
from tacit.errors import BadValue, Refused
from tacit.keys import Key, Keys
from tacit.mechanisms.adaptive_clip import BIT, AdaptiveClip
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.published.privrec import PublishedClipping
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.methods.privrec.protection import (
    Adaptive,
    Bare,
    Constant,
    Protection,
    Published,
)
from tacit.models.feature_mlp import (
    Activation,
    Blueprint,
    Devices,
    Dislikes,
    Labelling,
    Schedule,
)
from tacit.models.feature_mlp.blueprint import size
from tacit.models.feature_mlp.devices import VALUE
from tacit.models.feature_mlp.items import without_catalog
from tacit.plan import Plan
from tacit.release import Release, noise_for_target
from tacit.sampling import Everyone, FixedSize
from tacit.transport.channels import Delivery, Noise
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Tree

_ENOUGH = (64, 48, 24)  # widths with which an audit has coordinates to look at
_BIT_SHARE = 0.05  # noise on the sum of bits, over the planned cohort


@dataclass(frozen=True)
class PrivRec(Method):
    """A network over features that every device adapts to its user.

    `people` and `situations` say how many labels each feature has, 0 for a number:
    everyone must know that beforehand, for it cannot be taken from private data.

    Leave `noise_multiplier` out to have it calibrated to the plan's target.
    """

    items: tuple[str, ...] = ()  # features of the catalog; none named: all but text
    by_value: tuple[str, ...] = ()  # numbers of items with a label for each value
    people: Mapping[str, int] = field(default_factory=dict)
    situations: Mapping[str, int] = field(default_factory=dict)
    mode: Literal["sound", "paper"] = "sound"
    privacy: Literal["none", "central"] = "none"
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
    # Algorithm 2
    clip: float = 1.0  # S, or the first S
    is_adaptive: bool = True  # sound: whether S moves
    quantile: float = 0.5  # gamma
    clip_rate: float = 0.2  # alpha4
    least_clip: float = 1e-3
    most_clip: float = 1e3
    balance: float = 0.7  # h; paper only
    noise_multiplier: float | None = None  # z
    bit_noise: float | None = None  # sound: calibrated to the planned cohort
    cohort: int | None = None  # paper: M, taken from the plan

    def __post_init__(self) -> None:
        check.one_of(("sound", "paper"), mode=self.mode)
        check.one_of(("none", "central"), privacy=self.privacy)
        check.one_of(("reptile", "adam"), server_step=self.server_step)
        check.not_negative(adapt_epochs=self.adapt_epochs)
        check.count(local_epochs=self.local_epochs)
        check.positive(step=self.step, adapt_rate=self.adapt_rate, clip=self.clip)
        check.fraction(quantile=self.quantile, balance=self.balance)
        _ = self._schedule, self._blueprint, self._labelling  # refuse what cannot be
        self._refuse_mixtures()
        for name in ("noise_multiplier", "bit_noise"):
            value = getattr(self, name)
            if value is not None:
                check.positive(**{name: value})
                self._only_central(name)
        if self.cohort is not None:
            check.count(cohort=self.cohort)
            self._only_central("cohort")

    def _only_central(self, name: str) -> None:
        if self.privacy != "central":
            raise BadValue(f"{name} belongs to privacy='central' only")

    def _refuse_mixtures(self) -> None:
        if self.mode == "paper" and self.server_step != "reptile":
            raise BadValue(
                f"server_step='{self.server_step}' belongs to mode='sound': the paper "
                "takes plain steps, and its noise is made for them"
            )
        if self.uses_value and self.mode != "paper":
            raise BadValue(
                "uses_value=True belongs to mode='paper': the value of an event tells "
                "whether it happened, and no candidate has one"
            )
        if VALUE in self.situations:
            raise BadValue(f"situations: '{VALUE}' is the event's own; see uses_value")

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the noise of the plan's target, and its cohort."""
        if self.privacy == "none":
            return self
        if self.mode == "paper":
            noise = self.noise_multiplier or 1.0  # Section 4.4: z = 1
            return replace(self, noise_multiplier=noise, cohort=_whole_cohort(plan))
        noise = self.noise_multiplier or noise_for_target(plan)
        bits = self.bit_noise or max(_BIT_SHARE * plan.cohort_size, noise)
        if not self.is_adaptive:
            return replace(self, noise_multiplier=noise)
        return replace(self, noise_multiplier=noise, bit_noise=bits)

    # server

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Random weights."""
        weights = self._blueprint.start(catalog, key)
        clip = {"clip": np.array(self._protection.start)}
        memory = {**self._optimizer.start(without_catalog(weights)), **clip}
        return Server(plan, catalog, 0, weights, memory)

    def broadcast(self, server: Server) -> Cast:
        """Weights, the catalog's features and the clip."""
        told = {**server.weights, "clip": server.memory["clip"]}
        return Cast(server.round, server.plan.digest, told)

    @property
    def aggregator(self) -> Mean:
        """A plain sum."""
        return Mean()

    def aggregate(self, server: Server, delivery: Delivery, key: Key) -> Server:
        """Lines 3 and 4: the step scales update and noise alike."""
        layout = self.layout(server.plan, server.catalog, round=server.round)
        protection, clip = self._protection, float(server.memory["clip"])
        noise, planned = protection.at(clip), server.plan.cohort_size
        total = self.aggregator.total(delivery, layout, noise=noise, key=key)
        learnt = without_catalog(server.weights)
        away = {name: -total[name] / planned for name in learnt}
        moved, memory = self._optimizer.step(learnt, server.memory, away)
        clip = protection.following(clip, total, planned=planned)
        weights = {**server.weights, **moved}
        return server.after(weights=weights, memory={**memory, "clip": np.array(clip)})

    # device

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """What a person has told of themselves; it stays here."""
        return Tree.dense(
            **self._blueprint.person.columns(profiles.features, len(profiles))
        )

    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Line 1, for all clients at once; lines 10 to 18 of Algorithm 1."""
        device = self.devices(cast)
        examples = device.examples(clients.state, shards, keys.at("negatives"))
        found = device.train(examples, self._schedule, keys.at("train"))
        return clients.state, Updates(Tree.dense(**found))

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Line 2."""
        mechanism = self._protection.at(float(cast.weights["clip"]))
        if mechanism is None:
            return Reports(updates.tree)
        return Reports(mechanism.bound(updates.tree))

    def noise(self, cast: Cast) -> Noise | None:
        """What a trusted sum adds."""
        return self._protection.at(float(cast.weights["clip"]))

    # serving

    @property
    def liked(self) -> float:
        """The least that counts as liked."""
        return 1.0 if self.positive_from is None else self.positive_from

    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 5: adapted weights, folded to what ranking needs of them."""
        device, how = self.devices(cast), self._adaptation
        return Tastes(device.taste(clients.state, shards, how, keys))

    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 5, on the device."""
        return self.devices(cast).scores(person.tree, candidates.items)

    # account

    def outlook(self, plan: Plan, catalog: Catalog) -> str:
        """How many items the features tell apart, and how loud the noise is."""
        kinds = len(self._blueprint.read(catalog).kinds)
        said = f"{len(catalog):,} items are {kinds:,} kinds; those of a kind tie"
        noise = self._protection.at(self._protection.start)
        if noise is None:
            return said
        n = size(self._blueprint.network(catalog))
        a_weight = noise.scale("") / plan.cohort_size
        times = a_weight * np.sqrt(n) / self.clip
        return (
            f"{said}. The noise of a round on {n:,} weights is {times:.1f} times as "
            "long as the longest mean update"
        )

    def for_any_catalog(self) -> Self:
        """With whatever is known of items, and a network with numbers enough."""
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

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """A number a weight, and the bit."""
        shapes = self._blueprint.network(catalog).shapes
        slots = {name: Slot(self.precision, shape) for name, shape in shapes.items()}
        bit = {BIT: Slot("float64", ())} if self._protection.has_bits else {}
        return Layout({**slots, **bit})

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The sum of updates with its bits; models and clips follow from it."""
        if self.cohort is not None and self.cohort != _whole_cohort(plan):
            raise Refused(
                f"cohort={self.cohort}, and the plan asks {plan.cohort_size:g} devices "
                "a round: leave cohort out and it is taken from the plan"
            )
        cells = self._protection.cells(plan)
        seen_by = "server, and everyone through the model"
        return (Release("sum of updates", seen_by, "each round", cells),)

    # details

    def devices(self, cast: Cast) -> Devices:
        """The network that a Cast tells of, and how devices read a history."""
        return self._blueprint.devices(cast.weights, self._labelling)

    @property
    def _blueprint(self) -> Blueprint:
        return Blueprint(
            items=self.items,
            by_value=self.by_value,
            people=self.people,
            situations=self.situations,
            uses_value=self.uses_value,
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
        if self.server_step == "reptile":
            return Sgd(self.step)
        # Of Reddi et al. 2021, "Adaptive Federated Optimization", but a smaller floor.
        return Adam(self.step, beta2=0.99, epsilon=1e-4)

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

    @property
    def _adaptation(self) -> Schedule:
        return replace(self._schedule, epochs=self.adapt_epochs, rate=self.adapt_rate)

    @property
    def _protection(self) -> Protection:
        if self.privacy == "none":
            return Bare()
        noise = _given(self.noise_multiplier, "noise_multiplier")
        if self.mode == "paper":
            rule = PublishedClipping(
                noise,
                int(_given(self.cohort, "cohort")),
                balance=self.balance,
                rate=self.clip_rate,
                quantile=self.quantile,
            )
            return Published(rule, self.clip, least=self.least_clip, step=self.step)
        if not self.is_adaptive:
            return Constant(GaussianSum(self.clip, noise))
        return Adaptive(
            AdaptiveClip(
                self.clip,
                least=self.least_clip,
                most=self.most_clip,
                noise_multiplier=noise,
                bit_noise=_given(self.bit_noise, "bit_noise"),
                quantile=self.quantile,
                rate=self.clip_rate,
            )
        )


def _whole_cohort(plan: Plan) -> int:
    """M; the paper's noise is made for cohorts of one size."""
    if not isinstance(plan.sampler, FixedSize | Everyone):
        raise Refused(
            f"mode='paper' needs cohorts of a fixed size and the plan has "
            f"{type(plan.sampler).__name__}; use fixed_size, or mode='sound'"
        )
    return int(plan.cohort_size)


def _given(value: float | None, name: str) -> float:
    if value is None:
        raise BadValue(
            f"{name} is not set: set it, or calibrate the method to a plan (with "
            "target_epsilon and delta)"
        )
    return value
