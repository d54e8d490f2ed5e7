"""The audit's own formulas: hand-made figures, and never above the accountant's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from tacit.accounting.dp_events import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from tacit.accounting.epsilon import epsilon
from tacit.accounting.events import PureDpEvent, ShuffledDpEvent
from tacit.audits import closed_forms as forms

DELTA = 1e-6
COIN = PoissonSampledDpEvent(0.1, GaussianDpEvent(0.8))
SAMPLE = SampledWithoutReplacementDpEvent(1000, 100, GaussianDpEvent(1.0))
KNOWN = {
    "Gaussian": (GaussianDpEvent(1.3), forms.gaussian(1.3), "zero_out"),
    "a coin": (COIN, forms.behind_a_coin(0.1, 0.8), "zero_out"),
    "two coins": (
        SelfComposedDpEvent(COIN, 2),
        forms.behind_two_coins(0.1, 0.8),
        "zero_out",
    ),
    "fixed size": (SAMPLE, forms.fixed_size(0.1, 1.0), "replace_one"),
    "responses": (
        SelfComposedDpEvent(PureDpEvent(0.4, 5), 7),
        forms.responses(0.4, choices=5, times=7),
        "replace_one",
    ),
    "clones": (ShuffledDpEvent(1.0, 80), forms.clones(1.0, 80), "replace_one"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_accountant_is_above_and_near(name):
    event, profile, adjacency = KNOWN[name]
    printed = epsilon(event, delta=DELTA, adjacency=adjacency).value
    exact = forms.epsilon_of(profile, DELTA)
    assert exact * (1 - 1e-9) <= printed <= exact * (1 + 5e-4)


def test_a_gaussian_by_hand():
    """At epsilon 0 delta is the total variation distance of two normals 1/z apart."""
    apart = 2 * norm.cdf(0.5 / 2.0) - 1
    assert forms.gaussian(2.0)(0.0) == pytest.approx(apart, rel=1e-12)


def test_one_response_by_hand():
    profile = forms.responses(math.log(3), choices=2, times=1)
    assert profile(0.0) == pytest.approx(0.5)
    assert profile(math.log(3)) == pytest.approx(0.0, abs=1e-15)


def test_two_coins_of_rate_one_are_two_gaussians():
    both = forms.behind_two_coins(1 - 1e-12, 1.5)
    one = forms.gaussian(1.5 / math.sqrt(2))
    for at in (0.5, 2.0):
        assert both(at) == pytest.approx(one(at), rel=1e-9)


def test_two_coins_by_chance():
    """Hoeffding: within 0.01 of the mean over 2e5 draws but once in 1e17."""
    rate, z, at, n = 0.3, 1.0, 0.2, 200_000
    draws = np.random.default_rng(1)
    x = draws.normal(size=(n, 2)) * z + (draws.random((n, 2)) < rate)
    loss = np.log(1 - rate + rate * np.exp((2 * x - 1) / (2 * z**2))).sum(axis=1)
    found = np.maximum(0.0, 1 - np.exp(at - loss)).mean()
    assert found == pytest.approx(forms.behind_two_coins(rate, z)(at), abs=0.01)


def test_what_delta_covers_alone_has_epsilon_zero():
    assert forms.epsilon_of(forms.gaussian(1e6), 1e-3) == 0.0


def test_what_no_epsilon_reaches_is_infinite():
    assert forms.epsilon_of(lambda at: 0.5, 1e-6) == math.inf
