"""Honest samples pass, slightly wrong ones fail, and the bounds are the theorems'."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.testing.statistics import (
    assert_distribution,
    assert_frequencies,
    assert_independent,
    assert_mean,
    samples_to_see,
)

RARE = 1e-9
SEE_3_PERCENT = samples_to_see(0.007, false_alarm=RARE)  # of a normal's scale


def draws(n, *purpose):
    return Key.from_seed(1).at(*purpose).generator().normal(size=n)


def uniforms(n, *purpose):
    return Key.from_seed(1).at(*purpose).generator().random(n)


def alarms(judge, runs):
    """In how many of `runs` worlds the assertion fails."""
    count = 0
    for world in range(runs):
        try:
            judge(world)
        except AssertionError:
            count += 1
    return count


# Distribution


def test_distribution_sees_what_it_promises():
    """False alarm below 1e-9, and each wrong one is missed with at most 1e-9."""
    x = draws(SEE_3_PERCENT)
    assert_distribution(x, norm.cdf, false_alarm=RARE)
    assert_distribution(x.reshape(2, -1)[:, :7], norm.cdf, false_alarm=RARE)
    for wrong in (x * 1.03, x / 1.03, x + 0.02, np.round(x, 1)):
        with pytest.raises(AssertionError, match="distance to the cdf"):
            assert_distribution(wrong, norm.cdf, false_alarm=RARE)


@pytest.mark.parametrize(
    ("samples", "distance"),
    [
        ([0.6, 0.7, 0.8, 0.9], 0.6),  # below the first
        ([0.1, 0.2, 0.3, 0.4], 0.6),  # above the last
        ([0.9, 0.05, 0.95, 0.1], 0.4),  # between, in any order
    ],
)
def test_distribution_by_hand(samples, distance):
    """Against the uniform; the bound is sqrt(ln(2 / 0.9) / 8)."""
    with pytest.raises(AssertionError, match=rf"is {distance}, bound 0.315933; n=4"):
        assert_distribution(samples, lambda x: x, false_alarm=0.9)


def test_one_sample_never_alarms_at_a_small_rate():
    assert_distribution([0.0], norm.cdf, false_alarm=RARE)


def test_samples_to_see_is_where_the_gap_is_twice_the_bound():
    n = samples_to_see(0.01, false_alarm=1e-6)
    bound = math.sqrt(math.log(2 / 1e-6) / (2 * n))
    assert 2 * bound == pytest.approx(0.01, rel=1e-5)


def test_distribution_alarms_no_more_than_stated():
    """Expects fewer than 20 alarms in 200 worlds; 45 or more have probability 2e-7."""
    x = draws((200, 50))
    found = alarms(lambda i: assert_distribution(x[i], norm.cdf, false_alarm=0.1), 200)
    assert 0 < found < 45


# Frequencies


def test_frequencies_see_what_they_promise():
    """False alarm below 1e-9; one cell off by twice the Hoeffding bound fails."""
    p, n = np.array([0.5, 0.3, 0.2]), 100_000
    generator = Key.from_seed(2).generator()
    assert_frequencies(generator.multinomial(n, p), p, false_alarm=RARE)
    gap = 2 * math.sqrt(math.log(2 * 3 / RARE) / (2 * n))
    wrong = generator.multinomial(n, p + np.array([gap, -gap, 0]))
    with pytest.raises(AssertionError, match=r"cell 1: count .* n=100000, 3 cells"):
        assert_frequencies(wrong, p, false_alarm=RARE)


def test_frequencies_are_the_exact_binomial():
    """The largest count that passes is the last whose tail has the allowed chance."""
    n, p, false_alarm = 40, 0.2, 0.01
    tail = false_alarm / 4
    passes = [
        k for k in range(n + 1) if binom.cdf(k, n, p) >= tail <= binom.sf(k - 1, n, p)
    ]
    for count in range(n + 1):
        judged = alarms(
            lambda _, c=count: assert_frequencies(
                [c, n - c], [p, 1 - p], false_alarm=false_alarm
            ),
            1,
        )
        assert judged == (count not in passes)
    least, most = n - passes[-1], n - passes[0]
    with pytest.raises(AssertionError, match=rf"cell 1: .*\[{least}, {most}\]"):
        assert_frequencies([n, 0], [p, 1 - p], false_alarm=false_alarm)


def test_impossible_cells_stay_empty():
    assert_frequencies([10, 0], [1.0, 0.0], false_alarm=RARE)
    with pytest.raises(AssertionError, match="outside"):
        assert_frequencies([10**6, 1], [1.0, 0.0], false_alarm=RARE)


# Mean


def test_bounded_mean_sees_what_it_promises():
    n = samples_to_see(0.01, false_alarm=RARE)
    x = uniforms(n)
    assert_mean(x, 0.5, bounds=(0, 1), false_alarm=RARE)
    assert_mean(4 * x - 2, 0.0, bounds=(-2, 2), false_alarm=RARE)
    with pytest.raises(AssertionError, match="distance to the mean"):
        assert_mean(x, 0.51, bounds=(0, 1), false_alarm=RARE)
    with pytest.raises(AssertionError, match=r"leave \[0.1, 1\]"):
        assert_mean(x, 0.5, bounds=(0.1, 1), false_alarm=RARE)


def test_normal_mean_sees_what_it_promises():
    x = 3.0 * draws(10_000)
    bound = 3.0 / 100 * norm.isf(RARE / 2)
    assert_mean(x, 0.0, sd=3.0, false_alarm=RARE)
    with pytest.raises(AssertionError, match=f"bound {bound:.5g}.*; n=10000"):
        assert_mean(x, 2 * bound, sd=3.0, false_alarm=RARE)


def test_normal_mean_alarms_as_often_as_stated():
    """Exact: 20 of 200 expected; fewer than 2 or more than 45 has probability 8e-8."""
    x = draws((200, 5))
    found = alarms(lambda i: assert_mean(x[i], 0.0, sd=1.0, false_alarm=0.1), 200)
    assert 2 <= found <= 45


def test_every_coordinate_has_its_mean():
    x = uniforms((20_000, 4))
    assert_mean(x, 0.5, bounds=(0, 1), false_alarm=RARE)
    assert_mean(x + np.arange(4), np.arange(4) + 0.5, bounds=(0, 5), false_alarm=RARE)
    with pytest.raises(AssertionError):
        assert_mean(x, [0.5, 0.5, 0.5, 0.6], bounds=(0, 1), false_alarm=RARE)


# Independence


@pytest.mark.parametrize("shape", ["normal", "uniform", "heavy", "discrete"])
def test_independent_samples_pass_whatever_their_distribution(shape):
    """False alarm below 1e-9 for each, ties and infinite variance included."""
    change = {
        "normal": lambda z: z,
        "uniform": norm.cdf,
        "heavy": lambda z: np.tan(np.pi * (norm.cdf(z) - 0.5)),  # Cauchy
        "discrete": np.round,
    }[shape]
    x, y = change(draws(20_000, "x")), change(draws(20_000, "y"))
    assert_independent(x, y, false_alarm=RARE)


def test_correlation_beyond_twice_the_bound_is_seen():
    n, rho = 100_000, 0.06
    x, y = draws(n, "x"), draws(n, "y")
    assert_independent(x, y, false_alarm=RARE)
    for sign in (-1, 1):
        mixed = sign * rho * x + math.sqrt(1 - rho**2) * y
        with pytest.raises(AssertionError, match=r"correlation is 0.0.*; n=100000"):
            assert_independent(x, mixed, false_alarm=RARE)


def test_other_dependence_is_seen_through_a_function():
    x = draws(20_000)
    assert_independent(x, x**2, false_alarm=RARE)
    with pytest.raises(AssertionError):
        assert_independent(np.abs(x), x**2, false_alarm=RARE)


def test_independence_alarms_no_more_than_stated():
    """Expects fewer than 20 alarms in 200 worlds; 45 or more have probability 2e-7."""
    x, y = draws((200, 100), "x"), draws((200, 100), "y")
    found = alarms(lambda i: assert_independent(x[i], y[i], false_alarm=0.1), 200)
    assert found < 45


def test_a_constant_is_independent_of_everything():
    assert_independent(np.ones(9), draws(9), false_alarm=RARE)


# Refusals


def test_samples_that_are_no_numbers_fail():
    for bad in ([0.0, math.nan], [0.0, math.inf]):
        with pytest.raises(AssertionError, match="1 of 2 are not finite"):
            assert_distribution(bad, norm.cdf, false_alarm=RARE)
        with pytest.raises(AssertionError, match="1 of 2 are not finite"):
            assert_mean(bad, 0.0, sd=1.0, false_alarm=RARE)
        with pytest.raises(AssertionError, match="1 of 2 are not finite"):
            assert_independent(bad, [0.0, 1.0], false_alarm=RARE)


@pytest.mark.parametrize("rate", [0.0, 1.0, -1e-9, math.nan])
def test_false_alarm_is_a_probability(rate):
    for judge in (
        lambda: assert_distribution([0.0], norm.cdf, false_alarm=rate),
        lambda: assert_frequencies([1, 1], [0.5, 0.5], false_alarm=rate),
        lambda: assert_mean([0.0], 0.0, sd=1.0, false_alarm=rate),
        lambda: assert_independent([0.0, 1.0], [1.0, 2.0], false_alarm=rate),
        lambda: samples_to_see(0.1, false_alarm=rate),
    ):
        with pytest.raises(BadValue, match="false_alarm"):
            judge()


def test_nothing_to_judge_is_an_error_and_not_a_pass():
    for judge in (
        lambda: assert_distribution([], norm.cdf, false_alarm=RARE),
        lambda: assert_frequencies([0, 0], [0.5, 0.5], false_alarm=RARE),
        lambda: assert_mean([], 0.0, sd=1.0, false_alarm=RARE),
        lambda: assert_independent([], [], false_alarm=RARE),
    ):
        with pytest.raises(BadValue, match="no samples"):
            judge()


def test_what_cannot_be_judged_is_refused():
    for judge in (
        lambda: assert_distribution([0.0], lambda x: x + 2, false_alarm=RARE),
        lambda: assert_distribution([0.0, 1.0], lambda x: 0.5, false_alarm=RARE),
        lambda: assert_frequencies([1, 1], [0.5, 0.6], false_alarm=RARE),
        lambda: assert_frequencies([1, 1], [1.5, -0.5], false_alarm=RARE),
        lambda: assert_frequencies([1, 1, 1], [0.5, 0.5], false_alarm=RARE),
        lambda: assert_frequencies([1.5, 1], [0.5, 0.5], false_alarm=RARE),
        lambda: assert_frequencies([-1, 3], [0.5, 0.5], false_alarm=RARE),
        lambda: assert_mean([0.0], 0.0, false_alarm=RARE),
        lambda: assert_mean([0.0], 0.0, bounds=(0, 1), sd=1.0, false_alarm=RARE),
        lambda: assert_mean([0.0], 0.0, bounds=(1, 1), false_alarm=RARE),
        lambda: assert_mean([0.0], 0.0, sd=0.0, false_alarm=RARE),
        lambda: assert_independent([0.0, 1.0], [1.0], false_alarm=RARE),
    ):
        with pytest.raises(BadValue):
            judge()
