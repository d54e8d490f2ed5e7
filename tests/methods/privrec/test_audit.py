"""PrivRec through the audit: the code that runs, and what must be caught."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from audits.mutants import LateBits
from audits.subjects import sums_of
from quick import some_of

from tacit.audits.audit_method import audit
from tacit.audits.small_world import small_data
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT, ClippedSumWithBits
from tacit.mechanisms.clipping import clip_by_norm
from tacit.method import CentralGaussian, Tree
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.privacy import PublishedClippedSum
from tacit.sampling import FixedSize

PLAN = Plan(2000, rounds=2, channel="secure_sum", delta=1e-6)
FEW = replace(PLAN, population=300, groups={})  # canaries; enough for coarse faults
SETTINGS = {
    "items": ("topics",),
    "embedding": 16,
    "widths": (64, 48, 24),
}
NOISE = {"noise_multiplier": 1.5, "clip": 0.3, "clip_quantile": 0.5, "bit_noise": 100.0}
SOUND = PrivRec(**SETTINGS, privacy=CentralGaussian(**NOISE))
COUNTED = NOISE | {"noise_multiplier": {"counts": 2.0, "updates": 1.5}}


def failed(method, plan=PLAN, seed=1):
    found = audit(method, plan, key=Key.from_seed(seed))
    return [check.name for check in found.checks if not check.ok]


def failed_sums(method, seed=1):
    checks = sums_of(method, Key.from_seed(seed), FEW)
    return [check.name for check in checks if not check.ok]


@pytest.mark.slow
def test_what_privrec_does_is_what_it_claims():
    """One round counts, one trains. False alarm below 5e-3 with a seed drawn anew."""
    privacy = CentralGaussian(**COUNTED)
    assert failed(replace(SOUND, count_rounds=1, privacy=privacy)) == []


@dataclass(frozen=True)
class CountsEveryLike(CentralGaussian):
    """Counts are of 0/1 histories, however long, and nobody bounds them."""

    def report(self, tree, phase, told, *, codes, keys):
        if phase.name == "counts":
            return Tree.dense(counts=np.ceil(tree["counts"]))
        return super().report(tree, phase, told, codes=codes, keys=keys)


def test_counting_every_like_is_caught():
    """A mutant that a longer history moves by more than 1."""
    privacy = CountsEveryLike(**COUNTED)
    broken = PrivRec(**SETTINGS, count_rounds=1, privacy=privacy)
    assert "largest contribution over the sensitivity" in failed_sums(broken)


class Quieter(ClippedSumWithBits):
    """Nine tenths of the noise that it states."""

    def add(self, total, key):
        noisy = super().add(total, key)
        return {n: v + 0.9 * (noisy[n] - v) for n, v in total.items()}


class ClipsEachLeaf(ClippedSumWithBits):
    """Clips every layer by itself: several clips fit into one update."""

    def bound(self, tree):
        alone = [Tree({name: leaf}) for name, leaf in tree.leaves.items()]
        clipped = [clip_by_norm(leaf, self.clip).leaves for leaf in alone]
        leaves = {name: leaf for part in clipped for name, leaf in part.items()}
        return Tree({**leaves, BIT: super().bound(tree).leaves[BIT]})


class RepeatsItsNoise(ClippedSumWithBits):
    """The same noise in every round: a difference of two sums has none."""

    def add(self, total, key):
        return super().add(total, Key.from_seed(0))


@dataclass(frozen=True)
class Through(CentralGaussian):
    """Another mechanism in the place of its own; claims as before."""

    kind: type[ClippedSumWithBits] = ClippedSumWithBits

    def mechanism(self, phase, told):
        own = super().mechanism(phase, told)
        return self.kind(own.clip, own.noise_multiplier, own.bit_noise)


@pytest.mark.parametrize(
    ("kind", "caught"),
    some_of(  # at once test_mutants.py has one for each check
        [
            (Quieter, "noise variance over the claimed one"),
            (ClipsEachLeaf, "largest contribution over the sensitivity"),
            (LateBits, "canaries whose bit says within the clip"),
            (RepeatsItsNoise, "noise correlation between rounds, in standard errors"),
        ],
        1,
    ),
)
def test_mechanisms_that_break_their_promise_are_caught(kind, caught):
    """By the check that is there for them; others may fail too."""
    broken = replace(SOUND, privacy=Through(**NOISE, kind=kind))
    assert caught in failed_sums(broken)


def test_the_mechanism_itself_is_not():
    """False alarm below 5e-3 with a seed drawn anew."""
    assert failed_sums(replace(SOUND, privacy=Through(**NOISE))) == []


ONLY_THE_RUNS = {  # an audit's place knows none of these
    "items": ("genres", "year", "title"),
    "by_value": ("year",),
    "people": {"age_group": 7},
    "embedding": 4,
    "widths": (8,),
}


@pytest.mark.slow
def test_the_published_bit_is_caught_and_nothing_else():
    """Its noise is what we state; its bit, after the clip, is 1 for the longest.

    As `tacit audit RUN` has it: noise, cohorts and features are those of the run.
    """
    plan = Plan(4832, rounds=1000, sampler=FixedSize(30), delta=1e-6)
    changes = {"mode": "paper", "privacy": PublishedClippedSum(clip=0.3)}
    paper = replace(SOUND, **ONLY_THE_RUNS, **changes, step=0.5).calibrated(plan)
    assert failed(paper, plan) == ["canaries whose bit says within the clip"]


@pytest.mark.slow
def test_features_that_only_the_run_has_do_not_matter():
    """Nor Adam at the server. False alarm as above."""
    method = replace(SOUND, **ONLY_THE_RUNS, server_step="adam", step=0.02)
    assert failed_sums(method.for_catalog(small_data(20).catalog)) == []
