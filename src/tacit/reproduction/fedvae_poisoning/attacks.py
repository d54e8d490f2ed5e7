"""Which attacks meet which defenses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tacit.attacks.poisoning import Attack, EveryGroup, Gaussian, Promote, Scaled
from tacit.method import CentralGaussian
from tacit.methods.fedvae import FedVae

_OUTPUT = "decoder/0"  # the layer whose gradient promotes an item

# One hidden layer and nothing sampled; chosen on validation people without attackers.
SMALL = FedVae(hidden=(), latent=32, variational=False, rate=0.01)
PRIVATE = replace(SMALL, privacy=CentralGaussian(clip=0.05), dropout=0.0, loss="mean")

FLIPPED, LOUD, STEALTHY = "flipped x10", "promoting x10", "promoting x1"
ALONE, SPREAD = "flipped x1000", "promoting x1, in every group"

ATTACKS: Mapping[str, Callable[[int], Attack]] = {  # from the item to be promoted
    "scaled x10": lambda _: Scaled(10.0),
    "scaled x100": lambda _: Scaled(100.0),
    "flipped x1": lambda _: Scaled(-1.0),
    FLIPPED: lambda _: Scaled(-10.0),
    "Gaussian x10": lambda _: Gaussian(10.0),
    LOUD: lambda item: Promote(item, _OUTPUT, 10.0),
    STEALTHY: lambda item: Promote(item, _OUTPUT),
    SPREAD: lambda item: EveryGroup(Promote(item, _OUTPUT)),
    ALONE: lambda _: Scaled(-1000.0),
}
PLAIN_ATTACKS = tuple(name for name in ATTACKS if name not in (ALONE, SPREAD))

Defense = Callable[[int], FedVae]  # from how many of a cohort attack

NONE, KRUM, MULTI_KRUM = "no defense", "Krum", "multi-Krum"
MEDIAN, TRIMMED = "median of 50 groups", "trimmed mean of 50 groups"
NOISE, NOISY_GROUPS = "noise, epsilon 8", "noise, epsilon 8, median of 5 groups"

DEFENSES: Mapping[str, Defense] = {
    NONE: lambda _: SMALL,
    KRUM: lambda f: replace(SMALL, attackers=f, keep=1),
    MULTI_KRUM: lambda f: replace(SMALL, attackers=f),
    MEDIAN: lambda _: replace(SMALL, groups=50),
    TRIMMED: lambda _: replace(SMALL, groups=50, statistic="trimmed", trim=20),
    NOISE: lambda _: PRIVATE,
    NOISY_GROUPS: lambda _: replace(PRIVATE, groups=5),
}
