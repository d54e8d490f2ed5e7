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
nobody has touched are scored like any other, and items of the same features tie. In
sound mode some rounds may count first (`count_rounds`): a device sends its likes, a row
of length 1, and the logarithm of their noisy sum is one more feature of the items.

Source: Q. Wang, H. Yin, T. Chen, J. Yu, A. Zhou and X. Zhang, "Fast-adapting and
Privacy-preserving Federated Recommender System", 2021. Departures and what the paper
leaves open: docs/methods/privrec.md; its errors: docs/errata/privrec.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from jaxtyping import Float64

from tacit.aggregation.mean import Mean
from tacit.data.catalog import Catalog, Profiles
from tacit.data.shards import Shards
from tacit.keys import Key, Keys
from tacit.mechanisms.adaptive_clip import BIT
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.methods.privrec.settings import Settings
from tacit.models.feature_mlp import Devices
from tacit.models.feature_mlp.blueprint import size
from tacit.models.feature_mlp.items import without_catalog
from tacit.models.histories import rows
from tacit.models.relations import unit
from tacit.phases import Noises
from tacit.plan import Plan
from tacit.release import Cells, Release, given, summed, unprotected
from tacit.transport.channels import Delivery, Noise
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Arrays, Tree

_ENOUGH = (64, 48, 24)  # widths with which an audit has coordinates to look at
_COUNTED = "Gaussian mechanism on a sum of histories of length 1"
_BIT_SHARE = 0.05  # noise on the sum of bits, over the planned cohort


@dataclass(frozen=True)
class PrivRec(Settings, Method):
    """A network over features that every device adapts to its user.

    Leave the noise out to have it follow from the plan's target.
    """

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the noise of the plan's target."""
        if self.privacy == "none":
            return self
        if self.mode == "paper":
            z = self.noise_multiplier or 1.0  # Section 4.4
            return replace(self, noise_multiplier=z)
        made = self
        if self.noise_multiplier is None:
            # The bits of a moving clip fit into the noise of a fixed one.
            fixed = replace(self, is_adaptive=False, bit_noise=None)
            found = self._phases.calibrated(
                plan, lambda noises: fixed._noisy(noises).releases(plan)
            )
            made = self._noisy(found)
        if not self.is_adaptive or self.bit_noise is not None:
            return made
        noise = given(made.noise_multiplier, "noise_multiplier")
        # Few devices: noise of z leaves the update 1.15 times its own.
        return replace(made, bit_noise=max(_BIT_SHARE * plan.cohort_size, noise))

    def _noisy(self, noises: Noises) -> Self:
        count, train = noises
        return replace(self, count_noise=count, noise_multiplier=train)

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Random weights; nothing is counted."""
        self._training(plan)
        weights = self._blueprint.start(catalog, key)
        memory = self._optimizer.start(without_catalog(weights))
        memory["clip"] = np.array(self._protection.start)
        if self.count_rounds:
            memory["counts"] = np.zeros(len(catalog))
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
        """Lines 3 and 4, or one more round of counting."""
        layout = self.layout(server.plan, server.catalog, round=server.round)
        noise = self._mechanism(server.round, float(server.memory["clip"]))
        total = self.aggregator.total(delivery, layout, noise=noise, key=key)
        if server.round < self.count_rounds:
            return self._counted(server, total["counts"])
        return self._stepped(server, total)

    def _counted(self, server: Server, found: Float64[np.ndarray, "items"]) -> Server:
        """Counts so far; after the last of them they are a feature of the items."""
        counts, weights = server.memory["counts"] + found, server.weights
        if server.round == self.count_rounds - 1:
            logs = self._phases.logarithms(counts, noise=self.count_noise)
            items = self._blueprint.read(server.catalog, logs)
            weights = {**without_catalog(weights), **items.told()}
        return server.after(weights=weights, memory={**server.memory, "counts": counts})

    def _stepped(self, server: Server, total: Arrays) -> Server:
        """The step scales update and noise alike."""
        planned, clip = server.plan.cohort_size, float(server.memory["clip"])
        away = {name: -value / planned for name, value in total.items() if name != BIT}
        after = server.stepped(self._optimizer, away)
        clip = self._protection.following(clip, total, planned=planned)
        return replace(after, memory={**after.memory, "clip": np.array(clip)})

    # device

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """What a person has told of themselves; it stays here."""
        return self._blueprint.told_by(profiles)

    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Line 1, for all at once; in the first rounds the likes, of length 1."""
        device = self.devices(cast)
        if cast.round < self.count_rounds:
            likes = device.labelling.liked(shards)
            return clients.state, Updates(Tree.dense(counts=unit(rows(likes))))
        found = device.movement(clients.state, shards, self._schedule, keys)
        return clients.state, Updates(found)

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Line 2."""
        mechanism = self._mechanism(cast.round, float(cast.weights["clip"]))
        if mechanism is None:
            return Reports(updates.tree)
        return Reports(mechanism.bound(updates.tree))

    def noise(self, cast: Cast) -> Noise | None:
        """What a trusted sum adds."""
        return self._mechanism(cast.round, float(cast.weights["clip"]))

    # serving

    @property
    def liked(self) -> float:
        """The least that counts as liked."""
        return self._labelling.least_liked

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
        alike = (
            "counts tell a kind apart" if self.count_rounds else "those of a kind tie"
        )
        said = f"{len(catalog):,} items are {kinds:,} kinds; {alike}"
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
        """A number an item while counting; then one a weight, and the bit."""
        if round < self.count_rounds:
            return Layout({"counts": Slot("float64", (len(catalog),))})
        shapes = self._blueprint.network(catalog).shapes
        slots = {name: Slot(self.precision, shape) for name, shape in shapes.items()}
        bit = {BIT: Slot("float64", ())} if self._protection.has_bits else {}
        return Layout({**slots, **bit})

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The sums of likes, if any, and of updates with their bits."""
        is_private = self.privacy == "central"
        return self._phases.releases(
            plan,
            counted=self._counting_cells,
            others=self._protection.cells(self._training(plan)),
            of="updates",
            noises=(self.count_noise, self.noise_multiplier or 0.0)
            if is_private
            else None,
        )

    def _counting_cells(self, plan: Plan) -> Cells:
        counting = self._counting
        if counting is None:
            return unprotected("likes are sent as they are; nothing protects them")
        return summed(plan, counting.event, reason=_COUNTED)

    # details

    def devices(self, cast: Cast) -> Devices:
        """The network that a Cast tells of, and how devices read a history."""
        return self._blueprint.devices(cast.weights, self._labelling)
