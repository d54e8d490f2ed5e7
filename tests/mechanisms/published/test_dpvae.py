from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from mechanisms.local_audit import clients
from scipy.stats import norm

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.published import (
    bisected,
    classic_sigma,
    clip_error,
    noise_decides,
    noisy_prior,
    optimal_clip,
)

LOOSE = {"epsilon": 100.0, "delta": 0.5}  # little noise, so that clipping costs
TIGHT = {"epsilon": 1.0, "delta": 1e-5}


def test_the_error_by_hand():
    """Gradients 1 and 3 in one dimension, bound 2; clipped 1 and 2, their mean 1.5.

    Noise: sqrt(2/pi) sqrt(2 ln 125000) · 2 = 7.731200. Spread 0.5 on average. Cut:
    (0 + 1) / 2.
    """
    found = clip_error(np.array([[1.0], [3.0]]), 2.0, **TIGHT)
    assert found == pytest.approx(7.731200 + 0.5 + 0.5, abs=1e-5)


@pytest.mark.parametrize("examples", [1, 2, 3, 4, 7, 20])
def test_with_much_noise_the_smallest_norm_is_best(examples):
    """The noise term grows by 3.9 a unit of the bound, all others by 2 at the most."""
    gradients = np.arange(1.0, examples + 1)[:, None]
    found = optimal_clip(gradients, **TIGHT)
    best = min(range(examples), key=lambda i: clip_error(gradients, i + 1.0, **TIGHT))
    assert best == 0
    assert found == 1


def test_bisection_finds_the_minimum_of_a_convex_error():
    gradients = np.sort(Key.from_seed(2).generator().exponential(size=(31, 1)), axis=0)
    errors = [clip_error(gradients, float(s), **LOOSE) for s in gradients[:, 0]]
    found = optimal_clip(gradients, **LOOSE)
    assert clip_error(gradients, found, **LOOSE) <= sorted(errors)[2]


@pytest.mark.parametrize("size", [1, 2, 20])
def test_where_the_noise_decides_nothing_else_has_to_be_computed(size):
    """The shortcut is Algorithm 2 itself: bisection with H and with S are the same."""
    draws = Key.from_seed(3).generator()
    for examples in range(1, 12):
        gradients = draws.normal(size=(examples, size)) * draws.exponential()
        norms = np.linalg.norm(gradients, axis=1)
        slow = bisected(norms, lambda s: clip_error(gradients, s, **TIGHT))  # noqa: B023
        assert noise_decides(size, **TIGHT)
        assert optimal_clip(gradients, **TIGHT) == slow == norms.min()
    assert not noise_decides(20, epsilon=100.0, delta=0.5)


def test_the_noise_decides_at_every_size_that_the_paper_has():
    """275,802 numbers: H grows by 1,055,955 per unit of S, all else by 1,576."""
    assert noise_decides(275_802, epsilon=1.0, delta=1 / 80_000)
    slope = 275_802 * math.sqrt(2 / math.pi) * classic_sigma(1.0, delta=1 / 80_000)
    assert round(slope) == 1_055_955
    assert round(3 * math.sqrt(275_802)) == 1_576


def test_two_equal_norms_in_the_middle_stop_the_search():
    """Algorithm 2 as printed: 3 is returned, and 1 would have been better."""
    assert bisected(np.array([5.0, 3.0, 3.0, 1.0])) == 3.0
    assert bisected(np.array([5.0, 3.0, 2.0, 1.0])) == 1.0


def test_the_bound_follows_the_gradients():
    """Homogeneous, so the noise tells how large a user's gradients are."""
    gradients = Key.from_seed(1).generator().normal(size=(9, 4))
    small = optimal_clip(gradients, **TIGHT)
    large = optimal_clip(1000 * gradients, **TIGHT)
    assert large == pytest.approx(1000 * small)


def test_the_noise_gives_the_user_away():
    """Two users, the same direction, a thousand times the size: told apart.

    Claimed is (1, 1e-5). The event |release| > 30 sigma of the small user has chance
    0 for one and over 0.97 for the other: delta at epsilon 1 is above 0.97.
    """
    sigma = classic_sigma(1.0, delta=1e-5) * optimal_clip(np.ones((5, 1)), **TIGHT)
    wide = classic_sigma(1.0, delta=1e-5) * optimal_clip(np.full((5, 1), 1e3), **TIGHT)
    place = 30 * sigma
    quiet = 2 * norm.sf(place - 1.0, scale=sigma)
    loud = norm.sf(place - 1e3, scale=wide) + norm.cdf(-place - 1e3, scale=wide)
    assert loud - math.e * quiet > 0.97


def test_zero_gradients_have_a_zero_bound():
    assert optimal_clip(np.zeros((4, 2)), **TIGHT) == 0
    with pytest.raises(BadValue, match="examples"):
        optimal_clip(np.zeros((0, 2)), **TIGHT)


def test_the_prior_by_hand():
    """Two kinds, one number: 0.5 · 0.4 + 1 · 0.2; (0.5 - 0.4)² + (1 - 0.4)²."""
    metadata, means = np.array([[[0.5], [1.0]]]), np.array([[0.4], [0.2]])
    mean, variance = noisy_prior(metadata, means, clients(1, 1), sigma=1e-12)
    assert mean[0] == pytest.approx([0.4], abs=1e-9)
    assert variance[0] == pytest.approx([0.37], abs=1e-9)


def test_priors_get_negative_variances():
    metadata, means = np.full((1000, 3, 8), 0.5), np.full((3, 8), 0.5)
    sigma = classic_sigma(1.0, delta=1e-5)
    _, variance = noisy_prior(metadata, means, clients(2, 1000), sigma=sigma)
    assert (variance < 0).mean() > 0.05


def test_the_noise_of_a_prior_is_made_for_one_number():
    """A prior of 200 means, each moved by one: epsilon 16, not 1."""
    sigma = classic_sigma(1.0, delta=1e-5)
    assert get_epsilon_gaussian(sigma, 1e-5) < 1
    assert get_epsilon_gaussian(sigma / math.sqrt(200), 1e-5) > 16


def test_wrong_numbers_are_refused():
    with pytest.raises(BadValue, match="keys"):
        noisy_prior(np.zeros((2, 1, 1)), np.zeros((1, 1)), clients(0, 1), sigma=1.0)
    with pytest.raises(BadValue, match="sigma"):
        noisy_prior(np.zeros((1, 1, 1)), np.zeros((1, 1)), clients(0, 1), sigma=0.0)
