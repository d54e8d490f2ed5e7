from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian

from tacit.accounting.epsilon import epsilon as account
from tacit.accounting.published import effective_noise
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT
from tacit.mechanisms.published import PublishedClipping, PublishedSum
from tacit.release import Adjacency
from tacit.tree import Tree

PAPER = PublishedClipping(1.0, balance=0.7, rate=0.2, quantile=0.4)


def test_noises_by_hand():
    """On a mean of M = 30: 2 S z / M sqrt(1 / (1 - h)) = 80 / 30 / sqrt(0.3)."""
    assert PAPER.update_sigma(40.0) / 30 == pytest.approx(4.868645, abs=1e-6)
    assert PAPER.bit_sigma == pytest.approx(2 / math.sqrt(0.7))


def test_the_bound_moves_linearly():
    assert PAPER.next_bound(40.0, noisy_mean=0.9) == pytest.approx(39.9)
    assert PAPER.next_bound(40.0, noisy_mean=0.4) == 40.0


def test_the_bit_says_nothing():
    """After clipping every norm is within the bound, so the quantile is not sought."""
    norms = np.array([0.1, 39.9, 40.0, 1e9, np.inf, np.nan])  # the last are zero then
    assert PAPER.bits(norms, bound=40.0).all()


def test_the_bound_falls_below_zero_whatever_the_updates():
    bound, norms, rounds = 40.0, np.full(30, 1e6), 0
    while bound > 0:
        beta = float(PAPER.bits(norms, bound=bound).mean())
        bound, rounds = PAPER.next_bound(bound, noisy_mean=beta), rounds + 1
    assert rounds == 334  # 40 / (0.2 · 0.6), a third of the paper's thousand


@pytest.mark.parametrize(("step", "noise"), [(0.1, 1.1927), (1.0, 1.0), (2.0, 0.7255)])
def test_a_missing_report_takes_update_and_bit_away(step, noise):
    """A larger step is less private than the paper's z says, a smaller one more."""
    event = PAPER.event(step, adjacency=Adjacency.ZERO_OUT)
    assert event.noise_multiplier == pytest.approx(2 * noise, abs=1e-4)
    joint = effective_noise(1.0, step=step, shared=0.7)
    assert event.noise_multiplier == pytest.approx(2 * joint)


@pytest.mark.parametrize("step", [0.1, 1.0, 2.0])
def test_an_exchange_of_users_leaves_the_bits_as_they_were(step):
    """Multiplier 1 / sqrt(.3) at step 1, over 2 S / M, which the accountant doubles."""
    event = PAPER.event(step, adjacency=Adjacency.REPLACE_ONE)
    assert event.noise_multiplier == pytest.approx(2 / math.sqrt(0.3) / step)


HISTORIES = np.array([[0.0], [0.1], [1e9], [np.inf], [np.nan]])


@pytest.mark.parametrize("step", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_event_is_what_two_neighbours_can_differ_by(adjacency, step):
    """The largest distance of what two users send, in noises; a missing one is zero."""
    mechanism = PublishedSum(PAPER, 2.0, step=step)
    sent = mechanism.bound(Tree.dense(theta=np.vstack([HISTORIES, -HISTORIES])))
    leaves = [np.ravel(sent[name]) / mechanism.scale(name) for name in ("theta", BIT)]
    reports = np.stack(leaves, axis=1)
    others = reports if adjacency is Adjacency.REPLACE_ONE else np.zeros((1, 2))
    apart = np.linalg.norm(reports[:, None] - others[None], axis=2).max()
    times = 2 if adjacency is Adjacency.REPLACE_ONE else 1  # the accountant's
    event = PAPER.event(step, adjacency=adjacency)
    assert times / event.noise_multiplier == pytest.approx(apart)


def test_the_event_follows_the_accountants_convention():
    """One round, everyone asked, 1 / sqrt(.3) over the distance of an exchange."""
    event = PAPER.event(1.0, adjacency=Adjacency.REPLACE_ONE)
    found = account(event, delta=1e-5, adjacency="replace_one").value
    expected = get_epsilon_gaussian(1 / math.sqrt(0.3), 1e-5)
    assert found == pytest.approx(expected, abs=5e-4)


def test_nonsense_is_refused():
    for bad in ({"balance": 1.0}, {"quantile": 0.0}, {"rate": -1.0}):
        with pytest.raises(BadValue):
            PublishedClipping(
                1.0, **({"balance": 0.7, "rate": 0.2, "quantile": 0.4} | bad)
            )
    with pytest.raises(BadValue, match="step"):
        PAPER.event(0.0, adjacency=Adjacency.REPLACE_ONE)


# the same as a mechanism of sums

ROUND = PublishedSum(PAPER, 40.0, step=0.5)


def test_the_step_does_not_scale_the_noise():
    """α₃ (Σ Δ + noise) / M has line 9's σ; the bits have line 10's."""
    assert 0.5 * ROUND.scale("theta") == pytest.approx(PAPER.update_sigma(40.0))
    assert ROUND.scale(BIT) == pytest.approx(PAPER.bit_sigma)
    noisy = ROUND.add({"theta": np.zeros(4000), BIT: np.zeros(())}, Key.from_seed(0))
    assert noisy["theta"].std() == pytest.approx(ROUND.scale("theta"), rel=0.06)


def test_contributions_over_noise_are_what_the_event_says():
    """Both leaves at their bounds, in units of their noise."""
    update, bit = 40.0 / ROUND.scale("theta"), 1.0 / ROUND.scale(BIT)
    assert 1 / math.hypot(update, bit) == pytest.approx(ROUND.event.noise_multiplier)
    assert ROUND.event == PAPER.event(0.5, adjacency=Adjacency.ZERO_OUT)


def test_every_update_is_said_to_be_within_and_liars_are_bounded():
    tree = Tree.dense(theta=np.array([[3.0, 4.0], [300.0, 400.0]]))
    sent = ROUND.bound(tree)
    np.testing.assert_allclose(sent["theta"], [[3.0, 4.0], [24.0, 32.0]])
    assert sent[BIT].tolist() == [1.0, 1.0]
    lie = Tree.dense(theta=np.full((2, 2), 1e9), **{BIT: np.array([7.0, np.nan])})
    held = ROUND.enforce(lie)
    assert held[BIT].tolist() == [1.0, 0.0]
    assert np.linalg.norm(held["theta"], axis=1) == pytest.approx(40.0)


def test_the_next_clip_by_hand():
    """40 - 0.2 (27 / 30 - 0.4)."""
    found = ROUND.next_clip({BIT: np.array(27.0)}, planned=30)
    assert found == pytest.approx(39.9)
