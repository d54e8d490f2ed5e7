"""PrivateRec's and DP-FedRec's own protections: their claims, and what holds."""

import math

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian

from tacit.aggregation.krum import Krum
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import PublishedAttentionNoise, PublishedGradientNoise
from tacit.release import Standing, Unit
from tacit.statement import account
from tacit.transport.messages import Reports, Slot
from tacit.tree import Tree

GRADIENTS = Phase("gradients", range(20), what="gradients", is_clipped=True)
PLAN = Plan(2000, rounds=20, delta=1e-6)
KEYS, CODES = Key.from_seed(0).each(np.arange(4)), np.zeros(4, np.int64)


def lines(privacy):
    return account(PLAN, privacy.releases(PLAN, (GRADIENTS,))).totals


def test_a_gradient_through_the_raw_history_has_no_guarantee():
    """The claim is for one click; of the user not even the paper claims anything."""
    for line in lines(PublishedAttentionNoise(epsilon=5.0)):
        assert line.standing is Standing.NONE
        assert line.epsilon is None
        assert line.published_epsilon == (5.0 if line.unit is Unit.ITEM else None)
        assert "computed from the history itself" in line.reason


def test_the_reason_says_what_the_noise_alone_would_be_worth():
    """Weights are 2 apart: 2 eps0, and eps0 = log((e^10 - 1/2) / (1/2)) = 10.693."""
    [release] = PublishedAttentionNoise().releases(PLAN, (GRADIENTS,))
    reasons = {cell.reason for cell in release.cells.values()}
    assert ["epsilon 21.39 for the user" in reason for reason in reasons] == [True]
    gaussian = PublishedAttentionNoise(gaussian_delta=1e-6)
    assert "delta 1e-06" in lines(gaussian)[0].reason


def test_its_noise_is_drawn_while_the_update_is_computed():
    """The report leaves unchanged; without padding nothing is padded."""
    privacy, tree = PublishedAttentionNoise(), Tree.dense(w=np.ones((4, 2)))
    assert privacy.report(tree, GRADIENTS, {}, codes=CODES, keys=KEYS) is tree
    assert privacy.attention(3).drawn(KEYS).shape == (4, 3)
    assert privacy.labels(4).negatives == 4
    lengths = [50, 0, 30, 20]
    assert 20 < privacy.padded(lengths, KEYS).sum() < 80
    whole = PublishedAttentionNoise(padding=0.0)
    assert not whole.padded(lengths, KEYS).any()


def test_a_noisy_gradient_has_a_guarantee_far_above_the_claim():
    """20 rounds at a claimed 1: rho = 10 for the user, whoever looks."""
    for line in lines(PublishedGradientNoise(epsilon=1.0)):
        assert line.standing is Standing.ASSUMED  # noise in floats
        assert line.epsilon == pytest.approx(32.2, abs=0.1)
        assert line.published_epsilon == (1.0 if line.unit is Unit.ITEM else None)
    found = lines(PublishedGradientNoise(epsilon=1.0, gaussian_delta=1e-6))[0]
    z = math.sqrt(2 * math.log(1.25e6))  # noise over the diameter, as printed
    expected = get_epsilon_gaussian(z / math.sqrt(20), 1e-6)
    assert found.epsilon == pytest.approx(expected, abs=1e-3)


def test_a_noisy_gradient_is_written_out_in_its_own_type():
    privacy = PublishedGradientNoise(epsilon=1.0)
    slots = {"w": Slot("float32", (2, 3), 1), "b": Slot("float64", (2,))}
    values = {"w": np.ones((4, 2, 3), np.float32), "b": np.ones((4, 2))}
    told = privacy.report(Tree.dense(**values), GRADIENTS, {}, codes=CODES, keys=KEYS)
    privacy.layout(GRADIENTS, slots).check(Reports(told))
    assert np.abs(told["w"]).max() < 1.0  # clipped to .005, noise of scale .01
    assert told["w"][0].std() > 0
    one = privacy.variance(GRADIENTS, users=1.0, size=8)
    assert one == pytest.approx(2 * 0.01**2)


def test_refuses():
    for privacy in (PublishedAttentionNoise, PublishedGradientNoise):
        with pytest.raises(BadValue, match="epsilon"):
            privacy(epsilon=0.0)
        with pytest.raises(BadValue, match="theta"):
            privacy(theta=-1.0)
    with pytest.raises(BadValue, match="padding"):
        PublishedAttentionNoise(padding=1.0)
    with pytest.raises(Refused, match="nearly all noise"):
        PublishedGradientNoise().aggregator(Krum(1))
