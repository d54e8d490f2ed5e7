"""The clip finds the quantile, stays within its limits, and the account is one z."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT, AdaptiveClip, ClippedSumWithBits
from tacit.testing.mechanism_contract import MechanismContract
from tacit.tree import Dense, Factored, Tree

RULE = AdaptiveClip(
    start=1.0, least=1e-3, most=100.0, noise_multiplier=1.0, bit_noise=5.0
)


class TestClippedSumWithBits(MechanismContract):
    """The bits take a visible part of the budget here: z_D is 1.25 z."""

    def mechanism(self):
        return ClippedSumWithBits(clip=0.8, noise_multiplier=0.6, bit_noise=0.5)

    def names(self):
        return (*self.shapes, BIT)


def test_the_split_of_the_noise():
    made = ClippedSumWithBits(2.0, noise_multiplier=1.0, bit_noise=5.0)
    assert made.update_multiplier == pytest.approx(1.005038, abs=5e-7)
    assert made.scale("V") == 2.0 * made.update_multiplier
    assert made.scale(BIT) == 5.0
    assert made.event.noise_multiplier == 1.0


def test_bits_are_from_before_the_clip():
    x = np.array([[3.0], [1.0], [0.0], [math.nan]])
    sent = ClippedSumWithBits(1.0, 1.0, bit_noise=5.0).bound(Tree.dense(x=x))
    np.testing.assert_array_equal(sent["x"], [[1.0], [1.0], [0.0], [0.0]])
    np.testing.assert_array_equal(sent[BIT], [-0.5, 0.5, 0.5, 0.0])


def test_the_bit_sees_the_joint_norm_of_all_leaves():
    tree = Tree(
        {
            "a": Dense(np.array([[3.0], [3.0]])),
            "V": Factored(np.array([[[4.0]], [[4.1]]]), np.ones((2, 1, 1))),
        }
    )
    sent = ClippedSumWithBits(5.0 + 1e-9, 1.0, bit_noise=5.0).bound(tree)
    np.testing.assert_array_equal(sent[BIT], [0.5, -0.5])


def test_the_clip_moves_by_hand():
    """Three of four within, planned six: (1.0 / 6 + 0.5 - 0.5) of a step down."""
    total = {BIT: np.array(1.0)}
    moved = RULE.following(2.0, total, planned=6.0)
    assert moved == pytest.approx(2.0 * math.exp(-0.2 / 6), rel=1e-15)
    higher = replace(RULE, quantile=0.9)
    moved = higher.following(2.0, total, planned=6.0)
    assert moved == pytest.approx(2.0 * math.exp(-0.2 * (1 / 6 - 0.4)), rel=1e-15)


def test_limits_hold():
    """Whatever the noise: a clip outside would be refused by every client."""
    most, least = {BIT: np.array(-1e9)}, {BIT: np.array(1e9)}
    assert RULE.following(50.0, most, planned=1000.0) == 100.0
    assert RULE.following(50.0, least, planned=1000.0) == 1e-3
    for clip in (1e-4, 101.0, math.nan, math.inf, -1.0):
        with pytest.raises(Refused, match="agreed to at enrolment"):
            RULE.at(clip)
    assert RULE.at(3.0) == ClippedSumWithBits(3.0, 1.0, bit_noise=5.0)


@pytest.mark.parametrize(("quantile", "start"), [(0.3, 20.0), (0.5, 0.05), (0.8, 0.05)])
def test_the_clip_converges_to_the_quantile(quantile, start):
    """From far away, with noise, over the true code path of a round.

    Norms are log-normal. At rest, bits and noise leave the share within a round a
    deviation of 0.009, the mean over 40 rounds one of about 0.0025: 0.015 is six.
    """
    n, rounds = 4000, 100
    draws, key = np.random.default_rng(1), Key.from_seed(1)
    rule = replace(RULE, start=start, quantile=quantile, bit_noise=0.01 * n)
    clip, shares = rule.start, []
    for t in range(rounds):
        norms = np.exp(draws.normal(size=n))
        mechanism = rule.at(clip)
        contributions = mechanism.bound(Tree.dense(x=norms[:, None]))
        noisy = mechanism.add(contributions.sum(), key.at("round", t))
        shares.append((norms <= clip).mean())
        clip = rule.following(clip, noisy, planned=n)
    assert np.mean(shares[-40:]) == pytest.approx(quantile, abs=0.015)


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": 1e-4},
        {"start": math.nan},
        {"least": 0.0},
        {"most": 1e-4},
        {"quantile": 0.0},
        {"quantile": 1.0},
        {"rate": 0.0},
        {"noise_multiplier": 0.0},
        {"bit_noise": 0.0},
        {"bit_noise": 0.5},  # the bits alone would spend the whole budget
        {"bit_noise": math.nan},
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises((BadValue, Refused)):
        replace(RULE, **wrong)


def test_the_name_of_the_bit_is_taken():
    with pytest.raises(BadValue, match="rename the update's"):
        RULE.at(1.0).bound(Tree.dense(**{BIT: np.zeros(2)}))


def test_a_sum_enforces_what_honest_reports_keep():
    mechanism = ClippedSumWithBits(1.0, 1.0, bit_noise=5.0)
    honest = mechanism.bound(Tree.dense(x=np.array([[3.0, 4.0], [0.1, 0.0]])))
    again = mechanism.enforce(honest)
    np.testing.assert_allclose(again["x"], honest["x"])
    np.testing.assert_array_equal(again[BIT], honest[BIT])
    lies = Tree.dense(x=np.full((2, 2), 9.0), **{BIT: np.array([7.0, np.nan])})
    bounded = mechanism.enforce(lies)
    assert np.linalg.norm(bounded["x"], axis=1) == pytest.approx([1, 1])
    assert bounded[BIT].tolist() == [0.5, 0.0]
