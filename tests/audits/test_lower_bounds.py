from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from tacit.accounting.calibration import gaussian_epsilon
from tacit.audits.lower_bounds import (
    correlation_errors,
    epsilon_of,
    largest_log_ratio,
    log_ratio,
    mu_lower_bound,
    normal_p_value,
    upper_rate,
    variance_interval,
)
from tacit.keys import Key
from tacit.mechanisms.randomized_response import RandomizedResponse

THRESHOLDS = np.linspace(-3.5, 4.5, 9)


def normals(seed: int, n: int) -> np.ndarray:
    return Key.from_seed(seed).generator().standard_normal(n)


@pytest.mark.parametrize(("hits", "n"), [(0, 50), (3, 50), (49, 50)])
def test_the_upper_rate_is_where_so_few_hits_become_too_rare(hits, n):
    [rate] = upper_rate(np.array([hits]), n, alarm=1e-3)
    assert binom.cdf(hits, n, rate) == pytest.approx(1e-3, rel=1e-9)


def test_all_hits_allow_any_rate():
    assert upper_rate(np.array([7]), 7, alarm=0.5).tolist() == [1.0]


def test_perfect_separation_is_worth_what_so_few_canaries_can_show():
    """By hand: 1000 of each without an error, at 1e-3 over 18."""
    found = mu_lower_bound(np.full(1000, 9.0), np.full(1000, -9.0), THRESHOLDS)
    rate = -math.expm1(math.log(1e-3 / 18) / 1000)
    assert found == pytest.approx(-2 * norm.ppf(rate), rel=1e-9)
    assert found == pytest.approx(4.67, abs=0.01)


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.0, 3.0])
def test_the_bound_stays_below_the_truth_and_near_it(mu):
    """False alarm 1e-3 each; misses a mu half as large with about 1e-4."""
    found = mu_lower_bound(normals(1, 1000) + mu, normals(2, 1000), mu / 2 + THRESHOLDS)
    assert max(0.0, mu - 0.7) <= found <= mu


def test_the_bound_holds_as_often_as_it_says():
    """At an alarm of 0.2 it may pass mu = 1 in 80 of 400; more than 110 is 1e-4."""
    passed = 0
    for seed in range(400):
        draws = normals(seed, 400)
        found = mu_lower_bound(draws[:200] + 1, draws[200:], THRESHOLDS, alarm=0.2)
        passed += found > 1
    assert passed <= 110


def test_nothing_to_tell_is_zero():
    assert mu_lower_bound(np.zeros(100), np.zeros(100), THRESHOLDS) == 0.0
    assert epsilon_of(0.0, delta=1e-6) == 0.0


def test_mu_as_epsilon():
    expected = gaussian_epsilon(2.0, delta=1e-6)
    assert epsilon_of(0.5, delta=1e-6) == pytest.approx(expected)


def test_an_event_that_never_happens_for_the_other():
    ratio, error = log_ratio(np.array([104]), np.array([0]), draws=1000)
    assert ratio.tolist() == pytest.approx([math.log(10)])
    assert error.tolist() == pytest.approx([math.sqrt((1 - 0.104) / 104)])


def test_an_event_that_never_happens_at_all_is_not_loud():
    ratio, error = log_ratio(np.array([0]), np.array([5]), draws=1000)
    assert ratio[0] == -math.inf
    assert math.isfinite(error[0])


def test_the_variance_interval_holds_the_mean_square():
    low, high = variance_interval(16_000)
    assert low < float((normals(3, 16_000) ** 2).mean()) < high
    assert low > 0.95**2 + 0.05  # a scale 5 % off is outside
    assert normal_p_value(normals(3, 16_000)) > 1e-3
    assert normal_p_value(1.2 * normals(3, 16_000)) < 1e-6


def test_correlation():
    one, other = normals(4, 5000), normals(5, 5000)
    assert correlation_errors(one, other) < 4.5
    assert correlation_errors(one, one) == pytest.approx(math.sqrt(5000))
    assert correlation_errors(one, other + 0.1 * one) > 4.5
    assert correlation_errors(one, np.zeros(5000)) == math.inf
    assert correlation_errors(one[:1], other[:1]) == 0.0


def test_the_exact_loss_of_a_discrete_mechanism():
    table = RandomizedResponse(1.3, 5).likelihoods()
    assert largest_log_ratio(table) == pytest.approx(1.3)
    assert largest_log_ratio(np.array([[1.0, 0.0], [0.5, 0.5]])) == math.inf
    unused = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    assert largest_log_ratio(unused) == pytest.approx(math.log(2))
