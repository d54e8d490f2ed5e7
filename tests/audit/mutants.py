"""Implementations that break their promise, each in one way. None is in the product.

Every mutant is a subclass of what the product has, with one thing wrong. An audit must
catch them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from audit.subjects import (
    POPULARITY,
    AdaptiveFactors,
    NoisyFactors,
    reports_of,
    sums_of,
)
from runtime.chosen import choosing

from tacit.audit.checks import Check
from tacit.audit.reports import check_epsilon
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT, ClippedSumWithBits
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.gaussian import GaussianSum, gaussian_event
from tacit.mechanisms.label_choice import LabelChoice, negatives
from tacit.mechanisms.one_bit import OneBit, randomized_bits
from tacit.mechanisms.randomized_response import respond
from tacit.mechanisms.sums import add_noise, filled
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.privacy import CentralGaussian, LocalItem, LocalPrivUnit
from tacit.privacy.guarantees import summed
from tacit.release import Release
from tacit.transport.channels import Each
from tacit.tree import Dense, Tree

# --- Mechanisms of sums ---------------------------------------------------------------


@dataclass(frozen=True)
class Quieter(GaussianSum):
    share: float = 1.0  # of the noise that is stated

    def add(self, total, key):
        noisy = super().add(total, key)
        return {n: v + self.share * (noisy[n] - v) for n, v in total.items()}


@dataclass(frozen=True)
class Unclipped(GaussianSum):
    def bound(self, tree):
        return tree


@dataclass(frozen=True)
class ClipsEachTensor(GaussianSum):
    def bound(self, tree):
        alone = [Tree({name: leaf}) for name, leaf in tree.leaves.items()]
        clipped = [clip_by_norm(leaf, self.clip).leaves for leaf in alone]
        return Tree({name: leaf for part in clipped for name, leaf in part.items()})


@dataclass(frozen=True)
class RepeatsItsNoise(GaussianSum):
    def add(self, total, key):
        return super().add(total, Key.from_seed(0))


@dataclass(frozen=True)
class UniformNoise(GaussianSum):
    def add(self, total, key):
        def draw(key, n):
            draws = iter(key.generator().uniform(-np.sqrt(3), np.sqrt(3), n))

            def fill(out):
                out[:] = [next(draws) for _ in out]

            return filled(fill)

        return add_noise(total, key, draw=draw, scale=self.scale)


@dataclass(frozen=True)
class HalvesItsSensitivity(GaussianSum):
    """As if one person moved the sum by half a clip."""

    @property
    def event(self):
        return gaussian_event(2 * self.noise_multiplier)


@dataclass(frozen=True)
class LateBits(ClippedSumWithBits):
    """Asks whether an update is within the clip after clipping it."""

    def bound(self, tree):
        clipped = clip_by_norm(tree, self.clip)
        bits = (clipped.norms() <= self.clip * (1 + 1e-6)) - 0.5
        return Tree({**clipped.leaves, BIT: Dense(bits)})


CENTRAL = GaussianSum(1.0, 1.5)

# --- Methods --------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken(CentralGaussian):
    """Central privacy with another mechanism in the place of its own."""

    noise_multiplier: float = 1.5
    broken: GaussianSum = CENTRAL

    def mechanism(self, phase, told):
        return self.broken


def popularity(mechanism: GaussianSum) -> FederatedPopularity:
    """Central popularity that bounds and adds noise by this mechanism."""
    return FederatedPopularity(privacy=Broken(broken=mechanism))


@dataclass(frozen=True)
class ClaimsMore(FederatedPopularity):
    """Adds one noise and tells the ledger of another, twice as large."""

    def releases(self, plan):
        cells = summed(plan, gaussian_event(3.0), reason="so it says")
        return (Release("noisy sum of votes", "server", "each round", cells),)


@dataclass(frozen=True)
class CountsOneRound(FederatedPopularity):
    """Tells the ledger of one round, whatever the plan."""

    def releases(self, plan):
        return super().releases(replace(plan, rounds=1))


@dataclass(frozen=True)
class DividesByWhoCame(FederatedPopularity):
    def aggregate(self, server, delivery, context):
        if not isinstance(delivery, Each):
            return super().aggregate(server, delivery, context)
        chunks = [*delivery.chunks]
        after = super().aggregate(server, Each(chunks), context)
        came = sum(map(len, chunks)) / server.plan.cohort_size
        weights = {name: value / came for name, value in after.weights.items()}
        return replace(after, weights=weights)


@dataclass(frozen=True)
class TwoClips(FederatedPopularity):
    """Where the server sums by itself, bounds and noise come from another clip."""

    def aggregate(self, server, delivery, context):
        if isinstance(delivery, Each):
            context = replace(context, mechanism=GaussianSum(2.0, 1.5))
        return super().aggregate(server, delivery, context)


@dataclass(frozen=True)
class AddsNothing(FederatedPopularity):
    def noise(self, cast, plan):
        return None


@dataclass(frozen=True)
class KeepsItsKey(FederatedPopularity):
    """Draws a device's noise from a key that no round is part of."""

    def privatize(self, cast, clients, updates, keys):
        own = Key.from_seed(0).each(clients.numbers)
        return super().privatize(cast, clients, updates, own)


# --- Mechanisms on one device ---------------------------------------------------------

BITS, LABELS = OneBit(1.0, 4, 1), LabelChoice(1.0, 1)
VECTORS = {f"e{i}": np.eye(4)[i] for i in (0, 3)}
CLICKS = {"the first": 0, "the second": 1}


def honest_bits(vector, keys):
    reports = BITS.privatize(np.tile(vector, (len(keys), 1)), keys)
    return np.hstack([reports.coordinates, reports.bits]).astype(np.float64)


def bits_where_it_matters(vector, keys):
    """Reports a coordinate that the data chose, not chance."""
    at = np.full((len(keys), 1), int(np.argmax(vector)))
    bits = randomized_bits(vector[at], keys, epsilon=BITS.epsilon)
    return np.hstack([at, bits]).astype(np.float64)


def honest_labels(click, keys):
    n = len(keys)
    shown = LABELS.privatize(np.full(n, click), keys, sizes=np.full(n, 4))
    return shown.values.reshape(n, -1).astype(np.float64)


def candidates_around_the_click(click, keys):
    """Negatives drawn from what the true click left over."""
    n, sizes = len(keys), np.full(len(keys), 4)
    clicks = np.full(n, click)
    labels = respond(clicks, keys.at("label"), sizes=sizes, epsilon=LABELS.epsilon)
    others = negatives(clicks, keys.at("negatives"), sizes=sizes, count=1).values
    return np.stack([labels, others], axis=1).astype(np.float64)


# --- All of them ----------------------------------------------------------------------

Run = Callable[[Key], list[Check]]


@dataclass(frozen=True)
class Mutant:
    name: str
    run: Run

    def caught_by(self, key: Key) -> list[str]:
        """The names of the checks that fail."""
        return [check.name for check in self.run(key) if not check.ok]


def _summed(mechanism: type[GaussianSum], **fields) -> Run:
    return partial(sums_of, popularity(mechanism(1.0, 1.5, **fields)))


def _popularity(method: type[FederatedPopularity]) -> Run:
    return partial(sums_of, method(privacy=CentralGaussian(1.5)))


def _bits(say) -> Run:
    return lambda key: [
        check_epsilon(say, VECTORS, epsilon=BITS.total_epsilon, key=key)
    ]


def _labels(say) -> Run:
    return lambda key: [check_epsilon(say, CLICKS, epsilon=LABELS.epsilon, key=key)]


HONEST = (
    Mutant("popularity, central", partial(sums_of, POPULARITY)),
    Mutant("two leaves, one factored", partial(sums_of, NoisyFactors())),
    Mutant("adaptive clip", partial(sums_of, AdaptiveFactors())),
    Mutant(
        "popularity, local",
        partial(reports_of, FederatedPopularity(privacy=LocalPrivUnit(1.0))),
    ),
    Mutant(
        "popularity, local_item",
        partial(reports_of, FederatedPopularity(privacy=LocalItem(1.0))),
    ),
    Mutant(
        "popularity, phases chosen as it goes",
        partial(sums_of, choosing("dear", "cheap", "cheap")),
    ),
    Mutant("one-bit reports", _bits(honest_bits)),
    Mutant("label choice", _labels(honest_labels)),
)

MUTANTS = (
    Mutant("noise × 0.95", _summed(Quieter, share=0.95)),
    Mutant("noise × 0.9", _summed(Quieter, share=0.9)),
    Mutant("noise × 0.5", _summed(Quieter, share=0.5)),
    Mutant("no noise in the sum", _summed(Quieter, share=0.0)),
    Mutant("no noise given to the channel", _popularity(AddsNothing)),
    Mutant("no clip", _summed(Unclipped)),
    Mutant(
        "clip per tensor, not jointly",
        partial(sums_of, NoisyFactors(mechanism=ClipsEachTensor(0.7, 1.5))),
    ),
    Mutant("the same noise in every round", _summed(RepeatsItsNoise)),
    Mutant("uniform noise of the same variance", _summed(UniformNoise)),
    Mutant("sensitivity halved", _summed(HalvesItsSensitivity)),
    Mutant("another noise told to the ledger", _popularity(ClaimsMore)),
    Mutant("one round told to the ledger", _popularity(CountsOneRound)),
    Mutant("divided by the realised cohort", _popularity(DividesByWhoCame)),
    Mutant("the server's own noise from another clip", _popularity(TwoClips)),
    Mutant(
        "clip bit computed after the clip",
        partial(sums_of, AdaptiveFactors(kind=LateBits)),
    ),
    Mutant("coordinates that depend on the data", _bits(bits_where_it_matters)),
    Mutant("label candidates around the click", _labels(candidates_around_the_click)),
    Mutant(
        "a client key used in two rounds",
        partial(reports_of, KeepsItsKey(privacy=LocalPrivUnit(1.0))),
    ),
)
