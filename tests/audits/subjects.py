"""Honest methods to audit: the toy with a noisy sum, and one with an adaptive clip."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tacit.aggregation.mean import Mean
from tacit.audits.audit_method import audit
from tacit.audits.canary_run import CANARIES, ROUNDS
from tacit.audits.checks import Check
from tacit.audits.claims import read_claims
from tacit.audits.noisy_sums import check_sums
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT, AdaptiveClip, ClippedSumWithBits
from tacit.mechanisms.gaussian import GaussianSum
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.privacy import CentralGaussian
from tacit.privacy.guarantees import summed
from tacit.release import EVERYONE, Release
from tacit.testing.toy import ToyFactors
from tacit.transport.messages import (
    Broadcast,
    BroadcastLayout,
    Layout,
    PublicSlot,
    Reports,
    Slot,
)

PLAN = Plan(CANARIES, ROUNDS, channel="secure_sum", delta=1e-6)
MECHANISM = GaussianSum(0.7, 1.5)
RULE = AdaptiveClip(
    start=0.7, least=0.01, most=100.0, noise_multiplier=1.5, bit_noise=50.0
)
POPULARITY = FederatedPopularity(privacy=CentralGaussian(1.5))
SCALE = {"strict": 0.2, "open": 1.0}
STRICT = replace(PLAN, groups={"strict": CANARIES, "open": 0})  # all of one group


@dataclass(frozen=True)
class Steps:
    """A server optimizer that goes down the gradient and needs no torch."""

    def start(self, weights):
        return {}

    def step(self, weights, memory, gradient, *, epoch=0):
        return {n: value - 0.01 * gradient[n] for n, value in weights.items()}, {}


@dataclass(frozen=True)
class NoisyFactors(ToyFactors):
    """The toy with two leaves, one of them factored, over a noisy sum."""

    mechanism: GaussianSum = MECHANISM
    optimizer: Steps = field(default_factory=Steps)

    def privatize(self, broadcast, clients, updates, keys):
        return Reports(self.mechanism.bound(updates.tree))

    def noise(self, broadcast, plan):
        return self.mechanism

    def releases(self, plan):
        cells = summed(plan, self.mechanism.event, reason="Gaussian mechanism")
        return (Release("gradients", "server", "each round", cells),)


@dataclass(frozen=True)
class AdaptiveFactors(NoisyFactors):
    """The same with a clip that follows the norms; the broadcast says which."""

    rule: AdaptiveClip = RULE
    kind: type[ClippedSumWithBits] = ClippedSumWithBits

    def start(self, plan, catalog, key):
        server = super().start(plan, catalog, key)
        clip = np.array(self.rule.start)
        return replace(server, weights={**server.weights, "clip": clip})

    def model_layout(self, catalog):
        clip = PublicSlot("float64", (), self.rule.least, self.rule.most)
        return BroadcastLayout({**super().model_layout(catalog).slots, "clip": clip})

    def _at(self, broadcast: Broadcast) -> ClippedSumWithBits:
        rule = self.rule.at(float(broadcast.weights["clip"]))
        return self.kind(rule.clip, rule.noise_multiplier, rule.bit_noise)

    def privatize(self, broadcast, clients, updates, keys):
        return Reports(self._at(broadcast).bound(updates.tree))

    def noise(self, broadcast, plan):
        return self._at(broadcast)

    def aggregate(self, server, delivery, context):
        total = Mean().total(delivery, context)
        planned, clip = context.planned, float(server.weights["clip"])
        clip = self.rule.following(clip, total, planned=planned)
        weights = {
            name: server.weights[name] - 0.01 * total[name] / planned for name in "Vb"
        }
        return server.after(weights={**weights, "clip": np.array(clip)}, memory={})

    def layout(self, plan, catalog, *, round):
        slots = super().layout(plan, catalog, round=round).slots
        return Layout({**slots, BIT: Slot("float64", ())})

    def releases(self, plan):
        event = self.rule.at(self.rule.start).event
        cells = summed(plan, event, reason="Gaussian mechanism, bits included")
        return (Release("gradients and bits", "server", "each round", cells),)


def sums_of(
    method, key: Key, plan: Plan = PLAN, *, group: str = EVERYONE
) -> list[Check]:
    """The checks of a method's noisy sums, for a member of a group."""
    mu = read_claims(method, plan, group=group).mu
    assert mu is not None
    return [*check_sums(method, plan, mu=mu, delta=1e-6, key=key, group=group)]


def reports_of(method, key: Key) -> list[Check]:
    """The checks of reports that clients protect themselves."""
    return [*audit(method, PLAN, key=key).checks]


def audited(
    method, key: Key, plan: Plan = PLAN, *, group: str = EVERYONE
) -> list[Check]:
    """All checks of a whole audit."""
    return [*audit(method, plan, key=key, group=group).checks]
