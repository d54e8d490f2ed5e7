"""The contract holds for a sound mechanism, and catches those that break it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.gaussian import GaussianSum, gaussian_event
from tacit.testing.mechanism_contract import (
    SAMPLES,
    MechanismContract,
    assert_variance,
)
from tacit.tree import Dense, Tree


class TestSound(MechanismContract):
    def mechanism(self):
        return GaussianSum(clip=2.0, noise_multiplier=1.5)


# What may go wrong with noise


@dataclass(frozen=True)
class Fainter(GaussianSum):
    factor: float = 0.9

    def add(self, total, key):
        clean = {name: np.zeros(v.shape) for name, v in total.items()}
        noise = super().add(clean, key)
        return {name: v + self.factor * noise[name] for name, v in total.items()}


@dataclass(frozen=True)
class NoNoise(GaussianSum):
    def add(self, total, key):
        return {name: np.asarray(v, np.float64) for name, v in total.items()}


@dataclass(frozen=True)
class Uniform(GaussianSum):
    """Of the right variance, so that only the law gives it away."""

    def add(self, total, key):
        half = self.scale("") * np.sqrt(3)
        return {
            name: v + key.at(name).generator().uniform(-half, half, v.shape)
            for name, v in total.items()
        }


@dataclass(frozen=True)
class Repeated(GaussianSum):
    """The same noise in every round: the difference of two rounds has none."""

    def add(self, total, key):
        return super().add(total, Key.from_seed(0))


@dataclass(frozen=True)
class Mirrored(GaussianSum):
    """Every second coordinate has its neighbour's noise, turned around."""

    def add(self, total, key):
        noisy = {}
        for name, v in total.items():
            noise = key.at(name).generator().normal(0, self.scale(name), v.size)
            noise[1::2] = -noise[: noise.size // 2 * 2 : 2]
            noisy[name] = v + noise.reshape(v.shape)
        return noisy


@dataclass(frozen=True)
class Shared(GaussianSum):
    """One stream for all leaves."""

    def add(self, total, key):
        return {name: super(Shared, self).add({"x": v}, key)["x"]
                for name, v in total.items()}  # fmt: skip


@dataclass(frozen=True)
class ByOrder(GaussianSum):
    """One generator for all leaves, so that their order matters."""

    def add(self, total, key):
        generator = key.generator()
        return {
            name: v + generator.normal(0, self.scale(name), v.shape)
            for name, v in total.items()
        }


@dataclass(frozen=True)
class ByTotal(GaussianSum):
    """Less noise where the total is small."""

    def add(self, total, key):
        size = np.sqrt(sum(float((v**2).sum()) for v in total.values()))
        noisy = Fainter(self.clip, self.noise_multiplier, 1 + size)
        return noisy.add(total, key)


@dataclass(frozen=True)
class InPlace(GaussianSum):
    def add(self, total, key):
        for name, v in super().add(total, key).items():
            total[name][...] = v
        return dict(total)


# What may go wrong with contributions


@dataclass(frozen=True)
class PerTensor(GaussianSum):
    """Each leaf within the clip, all together outside."""

    def bound(self, tree):
        parts = [
            clip_by_norm(Tree({name: leaf}), self.clip)
            for name, leaf in tree.leaves.items()
        ]
        return Tree(
            {name: leaf for part in parts for name, leaf in part.leaves.items()}
        )


@dataclass(frozen=True)
class NoClip(GaussianSum):
    def bound(self, tree):
        return tree


@dataclass(frozen=True)
class PlainClip(GaussianSum):
    """The textbook's line, with no thought for what is not finite."""

    def bound(self, tree):
        with np.errstate(all="ignore"):
            return tree.scale(np.minimum(1, self.clip / np.maximum(tree.norms(), 1e-9)))


@dataclass(frozen=True)
class Lifted(GaussianSum):
    """Adds a little to every coordinate, so that a sender of nothing shows."""

    def bound(self, tree):
        lifted = {
            n: Dense(leaf.dense().values + 1e-3) for n, leaf in tree.leaves.items()
        }
        return clip_by_norm(Tree(lifted), self.clip)


@dataclass(frozen=True)
class BatchNorm(GaussianSum):
    """Clips by the largest norm of the batch."""

    def bound(self, tree):
        largest = float(np.nan_to_num(tree.norms()).max(initial=1e-9))
        return tree.scale(min(1.0, self.clip / largest))


# What may go wrong with the account


@dataclass(frozen=True)
class HalvedSensitivity(GaussianSum):
    """Says half, adds noise for the half: consistent, and wrong."""

    @property
    def sensitivity(self):
        return self.clip / 2

    def scale(self, leaf):
        return self.noise_multiplier * self.sensitivity


@dataclass(frozen=True)
class HalvedInNameOnly(GaussianSum):
    @property
    def sensitivity(self):
        return self.clip / 2


@dataclass(frozen=True)
class BoastfulEvent(GaussianSum):
    """Adds the noise it states, tells the account of more."""

    @property
    def event(self):
        return gaussian_event(1.05 * self.noise_multiplier)


@dataclass(frozen=True)
class BoastfulScale(GaussianSum):
    """States the scale that the event needs, and adds less."""

    def add(self, total, key):
        less = replace(self, noise_multiplier=0.95 * self.noise_multiplier)
        return GaussianSum(less.clip, less.noise_multiplier).add(total, key)


LAW = "test_noise_has_the_stated_law_and_scale"
BOUNDED = "test_contributions_are_bounded"
HUGE = "test_one_huge_leaf_cannot_hide_another"
BROKEN = [
    (Fainter(2.0, 1.5, 0.9), LAW),
    (Fainter(2.0, 1.5, 0.5), LAW),
    (Fainter(2.0, 1.5, 0.95), LAW),
    (Fainter(2.0, 1.5, 1.05), LAW),
    (NoNoise(2.0, 1.5), LAW),
    (Uniform(2.0, 1.5), LAW),
    (Repeated(2.0, 1.5), "test_noise_is_independent_between_rounds"),
    (Mirrored(2.0, 1.5), "test_noise_is_independent_between_coordinates"),
    (Shared(2.0, 1.5), "test_noise_is_independent_between_leaves"),
    (ByOrder(2.0, 1.5), "test_the_same_key_gives_the_same_noise"),
    (ByTotal(2.0, 1.5), "test_noise_does_not_depend_on_the_total"),
    (InPlace(2.0, 1.5), "test_noise_does_not_depend_on_the_total"),
    (PerTensor(2.0, 1.5), BOUNDED),
    (PerTensor(2.0, 1.5), HUGE),
    (NoClip(2.0, 1.5), BOUNDED),
    (NoClip(2.0, 1.5), HUGE),
    (PlainClip(2.0, 1.5), BOUNDED),
    (PlainClip(2.0, 1.5), "test_what_is_not_finite_counts_as_nothing"),
    (Lifted(2.0, 1.5), "test_zero_stays_zero_where_the_update_was"),
    (BatchNorm(2.0, 1.5), "test_a_client_never_notices_the_others"),
    (HalvedSensitivity(2.0, 1.5), BOUNDED),
    (HalvedSensitivity(2.0, 1.5), HUGE),
    (HalvedInNameOnly(2.0, 1.5), HUGE),
    (BoastfulEvent(2.0, 1.5), HUGE),
    (BoastfulScale(2.0, 1.5), LAW),
]


def contract_of(broken):
    class Broken(MechanismContract):
        def mechanism(self):
            return broken

    return Broken()


@pytest.mark.parametrize(
    ("broken", "caught_by"), BROKEN, ids=[f"{type(b).__name__}-{t}" for b, t in BROKEN]
)
def test_a_broken_mechanism_is_caught(broken, caught_by):
    with pytest.raises(AssertionError):
        getattr(contract_of(broken), caught_by)()


def test_more_noise_than_needed_is_no_reason_to_claim_less():
    """A contribution that cannot reach the stated sensitivity is found out too."""

    @dataclass(frozen=True)
    class Timid(GaussianSum):
        def bound(self, tree):
            return clip_by_norm(tree, self.clip / 2)

    with pytest.raises(AssertionError, match="Not equal"):
        getattr(contract_of(Timid(2.0, 1.5)), HUGE)()


def test_variance_sees_what_it_promises():
    """False alarm below 1e-9; 2 % of scale is seen at this size."""
    x = Key.from_seed(1).generator().normal(0, 3, SAMPLES)
    assert_variance(x, 9.0, false_alarm=1e-9)
    for wrong in (0.98, 1.02):
        with pytest.raises(AssertionError, match="of what is stated"):
            assert_variance(wrong * x, 9.0, false_alarm=1e-9)


def test_variance_alarms_no_more_than_stated():
    """Expects 20 alarms in 200 worlds; 45 or more have probability 2e-7."""
    worlds, alarms = Key.from_seed(2).generator().normal(size=(200, 30)), 0
    for x in worlds:
        try:
            assert_variance(x, 1.0, false_alarm=0.1)
        except AssertionError:
            alarms += 1
    assert 5 < alarms < 45
