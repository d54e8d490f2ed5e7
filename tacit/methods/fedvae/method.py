"""FedVAE: a Mult-VAE trained by gradients of devices that hold one example each.

    ω = (φ, θ)   the network: encoder and decoder       R   users a round
    r_u          a person's 0/1 history                 T   rounds; t counts epochs
    g_u          the gradient of u's loss               f, m  attackers, kept reports
    η, β₁, β₂, ε  Adam's                                γ, δ  boost and its decay
    β            the weight of the KL term              S, z  clip and noise over clip

    server  1  ω ← drawn from N(0, 1)                                 Algorithm 1, 2
    device  2  g_u ← gradient of -ELBO(ω; r_u), one pass or several   Algorithm 1, 8
    server  3  G ← SecureFilter(G): Krum                              Algorithm 2, 1
            4  g ← mean of G                                          Algorithm 2, 2
            5  ω ← Adam(ω, g) with rate η (1 + γ δᵗ)        Algorithm 2, 3-7; Eq. 4

With privacy="central" line 2 clips g_u to norm S, all layers together; the channel adds
N(0, (z S)²) to the sum, and line 4 divides by the planned cohort. Line 3 looks at
single reports and may not come before the noise; `groups` does its work after it. Some
rounds may count first: the most counted items are the network's (`head`), the others
follow in the ranking by count, and the output bias starts at the counts' logarithm.

    mode    privacy   what runs
    paper   none      the paper, to the letter; nothing protects anyone
    sound   none      the same, with the usual first weights
    sound   central   DP-FedAdam over secure_sum

Source: Polato 2021, "Federated Variational Autoencoder for Collaborative Filtering".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from jaxtyping import Float64

from tacit.aggregation.bucketed import Bucketed
from tacit.aggregation.mean import Mean
from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.keys import Key, Keys
from tacit.mechanisms.adaptive_clip import BIT
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.methods.fedvae import exported
from tacit.methods.fedvae.protection import Central
from tacit.methods.fedvae.settings import Settings
from tacit.models.formula import Formula
from tacit.models.histories import rows
from tacit.models.mult_vae import Held, Pass
from tacit.models.mult_vae.gradients import gradients
from tacit.models.relations import places_by_count, unit
from tacit.phases import Noises
from tacit.plan import Plan
from tacit.release import Release, given
from tacit.transport.channels import Delivery, Noise
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Array, Arrays, Tree

_BIT_SHARE = 0.05  # of the planned cohort: the noise on the sum of clip bits


@dataclass(frozen=True)
class FedVae(Settings, Method):
    """Leave the noise out to have it follow from the plan's target."""

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the least noise for the plan's target."""
        made = self
        if self.privacy == "central" and self.noise_multiplier is None:
            fixed = replace(self, clip_quantile=None)  # the bits of a moving clip fit
            found = self._phases.calibrated(
                plan, lambda noises: fixed._noisy(noises).releases(plan)
            )
            made = self._noisy(found)
        if made.clip_quantile is not None and made.bit_noise is None:
            noise = given(made.noise_multiplier, "noise_multiplier")
            # Few devices: noise of z leaves the update 1.15 times its own.
            least = max(_BIT_SHARE * plan.cohort_size, noise)
            made = replace(made, bit_noise=least)
        return made

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Line 1; nothing is counted."""
        self._training(plan)
        network, init = self._network(self._columns(catalog)), self._init
        weights = network.start(key.at("weights"), init=init, dtype=self._dtype)
        memory = {**self._optimizer.start(weights), **self._protection.start()}
        known: dict[str, Array] = {"head": np.arange(network.n_items)}
        if self.count_rounds:
            known["counts"] = np.zeros(len(catalog))
        return Server(plan, catalog, 0, {**weights, **known}, memory)

    def broadcast(self, server: Server) -> Cast:
        """The network, its items, the counts, and the clip where it moves."""
        clip = {name: server.memory[name] for name in self._protection.start()}
        return Cast(server.round, server.plan.digest, {**server.weights, **clip})

    def aggregate(self, server: Server, delivery: Delivery, key: Key) -> Server:
        """Lines 3 to 5, or one more round of counting."""
        layout = self.layout(server.plan, server.catalog, round=server.round)
        noise = self._mechanism(server.round, server.memory)
        if server.round < self.count_rounds:
            total = Mean().total(delivery, layout, noise=noise, key=key)
            return self._counted(server, total["counts"])
        planned = server.plan.cohort_size
        gradient = self.aggregator.mean(
            delivery, layout, planned=planned, noise=noise, key=key
        )
        bits = {BIT: gradient.pop(BIT) * planned} if BIT in gradient else {}
        moved = self._protection.after(server.memory, bits, planned=planned)
        return self._stepped(server, gradient, moved)

    def _stepped(self, server: Server, gradient: Arrays, moved: Arrays) -> Server:
        own = {name: server.weights[name] for name in gradient}
        weights, memory = self._optimizer.step(
            own, server.memory, gradient, epoch=self._epoch(server)
        )
        return server.after(
            weights={**server.weights, **weights}, memory={**memory, **moved}
        )

    def _counted(self, server: Server, found: Float64[np.ndarray, "items"]) -> Server:
        """Counts so far; after the last of them the head, and the output bias."""
        counts = server.weights["counts"] + found
        weights = {**server.weights, "counts": counts}
        if server.round == self.count_rounds - 1:
            head = np.argsort(-counts, kind="stable")[: len(weights["head"])]
            last = self._network(len(head)).decoder[-1]
            layer = weights[last].copy()
            logs = self._phases.logarithms(counts[head], noise=self.count_noise)
            layer[-1] = logs - logs.mean()
            weights |= {"head": head, last: layer}
        return server.after(weights=weights, memory=server.memory)

    # device

    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Line 2, raw; in the first rounds the history, of length 1."""
        if cast.round < self.count_rounds:
            return clients.state, Updates(Tree.dense(counts=unit(rows(shards))))
        held = Held.of(shards, cast.weights["head"])
        network = self._network(held.n_items)
        tree = gradients(
            network,
            cast.weights,
            held,
            [self._pass(held, keys.at("pass", i)) for i in range(self.local_passes)],
            beta=self._beta(cast.round),
            is_mean=self.loss == "mean",
            rate=self.local_rate,
        )
        return clients.state, Updates(tree)

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """All that leaves: bounded if there is noise, placed if there are groups."""
        mechanism, tree = self._mechanism(cast.round, cast.weights), updates.tree
        if mechanism is not None:
            tree = mechanism.bound(tree)
        groups = self.aggregator
        if cast.round < self.count_rounds or not isinstance(groups, Bucketed):
            return Reports(tree)
        bit = {name: leaf for name, leaf in tree.leaves.items() if name == BIT}
        own = Tree({n: leaf for n, leaf in tree.leaves.items() if n != BIT})
        return Reports(Tree({**groups.placed(own, keys.at("group")).leaves, **bit}))

    def noise(self, cast: Cast) -> Noise | None:
        """What a trusted sum adds."""
        return self._mechanism(cast.round, cast.weights)

    # serving

    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Where the encoder puts the history: the mean μ."""
        held = Held.of(shards, cast.weights["head"])
        x = held.dense(held.values, self._dtype)
        latent = self._network(held.n_items).encode(cast.weights, x)
        return Tastes(Tree.dense(latent=latent))

    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """The decoder's scores; items outside the head follow, by their counts."""
        head = cast.weights["head"]
        found = self._network(len(head)).decode(cast.weights, person.tree["latent"])
        if "counts" not in cast.weights:
            return found[:, candidates.items]
        counts = cast.weights["counts"]
        after = -1 - places_by_count(counts) / len(counts)
        scores = found.min(axis=1, keepdims=True) + after
        scores[:, head] = found
        return scores[:, candidates.items]

    def formula(self, cast: Cast) -> Formula:
        """Encoder and decoder in one, from histories on."""
        network = self._network(len(cast.weights["head"]))
        return exported.formula(network, cast.weights)

    # account

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """A number an item while counting; then two factors a layer."""
        if round < self.count_rounds:
            return Layout({"counts": Slot("float64", (len(catalog),))})
        network = self._network(self._columns(catalog))
        made = {
            name: Slot(self._dtype, shape, network.ranks[name] * self.local_passes)
            for name, shape in network.shapes.items()
        }
        groups = self.aggregator
        slots = Layout(made)
        if isinstance(groups, Bucketed):
            slots = groups.declared(slots)
        bit = {} if self.clip_quantile is None else {BIT: Slot("float64", ())}
        return Layout({**slots.slots, **bit})

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The sums of histories, if any, and of gradients; all else follows."""
        protection, noises = self._protection, None
        if isinstance(protection, Central):
            noises = protection.count_noise, protection.noise_multiplier
        return self._phases.releases(
            plan,
            counted=lambda part: protection.cells(part, is_counting=True),
            others=protection.cells(self._training(plan), is_counting=False),
            of="gradients",
            noises=noises,
        )

    # details

    def _pass(self, held: Held, keys: Keys) -> Pass:
        latent = self.latent if self.variational else 0
        return Pass.drawn(held, keys, dropout=self.dropout, latent=latent)

    def _epoch(self, server: Server) -> int:
        """The epoch of this round, from 1: M rounds in which M R >= the population."""
        plan = server.plan
        an_epoch = math.ceil(plan.population / plan.cohort_size)
        return 1 + (server.round - self.count_rounds) // an_epoch

    def _noisy(self, noises: Noises) -> Self:
        count, train = noises
        return replace(self, count_noise=count, noise_multiplier=train)
