"""Gaussian noise on sums and on devices: what it is, and what it is said to be."""

import numpy as np
import pytest
from scipy.stats import norm

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum, LocalGaussian
from tacit.testing.mechanism_contract import MechanismContract, assert_variance
from tacit.testing.statistics import assert_distribution, assert_independent
from tacit.tree import Dense, Factored, Tree

RARE = 1e-9
LOCAL = LocalGaussian(clip=2.0, noise_multiplier=1.5)
EPSILONS = (0.1, 0.5, 1, 2, 3, 4, 5, 8, 10)
SIGMAS = {
    1e-5: "30.7496 7.0318 3.7306 1.9938 1.3906 1.0812 0.8919 0.6002 0.4999",
    1e-6: "36.3047 8.0576 4.2247 2.2305 1.5439 1.1935 0.9800 0.6529 0.5411",
    1e-8: "45.9374 9.8635 5.1003 2.6529 1.8186 1.3956 1.1390 0.7484 0.6158",
}


class TestGaussianSum(MechanismContract):
    def mechanism(self):
        return GaussianSum(clip=2.5, noise_multiplier=1.3)


class TestSmallClip(MechanismContract):
    def mechanism(self):
        return GaussianSum(clip=1e-4, noise_multiplier=0.1)


@pytest.mark.parametrize("delta", SIGMAS)
def test_calibrated_is_the_analytic_gaussian(delta):
    found = [
        GaussianSum.calibrated(2.0, epsilon=e, delta=delta).noise_multiplier
        for e in EPSILONS
    ]
    expected = [float(sigma) for sigma in SIGMAS[delta].split()]
    np.testing.assert_allclose(found, expected, atol=5e-4)


def test_calibrated_scales_with_the_clip():
    made = GaussianSum.calibrated(3.0, epsilon=2, delta=1e-6)
    assert made.scale("V") == pytest.approx(3 * 2.2305, abs=2e-3)
    assert made.sensitivity == 3.0
    assert made.event.noise_multiplier == made.noise_multiplier


@pytest.mark.parametrize("kind", [GaussianSum, LocalGaussian])
@pytest.mark.parametrize("bad", [0, 0.0, -1.0, float("nan"), float("inf"), True])
def test_nonsense_is_refused(kind, bad):
    with pytest.raises(BadValue, match="clip="):
        kind(clip=bad, noise_multiplier=1.0)
    with pytest.raises(BadValue, match=r"noise_multiplier=.*use mechanism = 'none'"):
        kind(clip=1.0, noise_multiplier=bad)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.0, 1e-6), (-1, 1e-6), (float("nan"), 1e-6), (1, 0.0), (1, 1.0), (1, -1e-6)],
)
def test_an_impossible_budget_is_refused(epsilon, delta):
    with pytest.raises(BadValue, match=r"(epsilon|delta)="):
        GaussianSum.calibrated(1.0, epsilon=epsilon, delta=delta)
    with pytest.raises(BadValue, match=r"(epsilon|delta)="):
        LOCAL.most_reports(epsilon=epsilon, delta=delta)


def test_integers_become_noisy_floats():
    noisy = GaussianSum(1.0, 1.0).add({"n": np.arange(3)}, Key.from_seed(1))
    assert noisy["n"].dtype == np.float64


# On one client


def cohort(clients):
    draws = Key.from_seed(3).generator()
    return Tree(
        {
            "V": Factored(
                draws.normal(size=(clients, 1, 3)), draws.normal(size=(clients, 1, 2))
            ),
            "b": Dense(draws.normal(size=(clients, 4))),
        }
    )


def keys(clients, *purpose):
    return Key.from_seed(4).at(*purpose).each(np.arange(clients))


def test_local_noise_has_the_stated_scale():
    """False alarm below 1e-9; sees a scale 2 % off, missed with 1e-9 or less."""
    n = 10**6
    zero = Tree.dense(x=np.zeros((10, n // 10)))
    noise = LOCAL.privatize(zero, keys(10))["x"].ravel()
    assert_distribution(noise, norm(scale=3.0).cdf, false_alarm=RARE)
    assert_variance(noise, 9.0, false_alarm=RARE)


def test_local_noise_is_independent_between_clients_leaves_and_rounds():
    """False alarm below 1e-9 each; sees a correlation of 0.03."""
    zero = Tree.dense(x=np.zeros((2, 10**5)), y=np.zeros((2, 10**5)))
    one, two = (LOCAL.privatize(zero, keys(2, "round", t)) for t in range(2))
    assert_independent(one["x"][0], one["x"][1], false_alarm=RARE)
    assert_independent(one["x"][0], one["y"][0], false_alarm=RARE)
    assert_independent(one["x"][0], two["x"][0], false_alarm=RARE)


def test_a_device_never_notices_the_others():
    tree = cohort(5)
    together = LOCAL.privatize(tree, keys(5))
    for row in range(5):
        alone = LOCAL.privatize(tree.select([row]), keys(5)[[row]])
        for name in tree.leaves:
            np.testing.assert_array_equal(alone[name], together[name][[row]])


def test_what_is_not_finite_is_reported_as_noise_around_zero():
    broken = Tree.dense(x=np.array([[np.nan, 1.0], [0.0, 0.0]]))
    same = keys(2)[[0, 0]]
    reports = LOCAL.privatize(broken, same)["x"]
    np.testing.assert_array_equal(reports[0], reports[1])


def test_one_draw_for_a_cohort_equals_the_sum_of_its_reports():
    """In distribution: both follow N(clipped sum, n (z S)²), a Gaussian each.

    False alarm below 1e-9; sees a scale 5 % off, missed with 1e-9 or less.
    """
    clients, n = 6, 300_000
    tree = Tree.dense(x=np.ones((clients, n)))  # far outside the clip
    expected = clients * LOCAL.clip / np.sqrt(n)
    spread = norm(loc=expected, scale=np.sqrt(clients) * 3.0)
    summed = LOCAL.privatize(tree, keys(clients)).sum()["x"]
    drawn = LOCAL.privatized_sum(tree, Key.from_seed(5))["x"]
    for total in (summed, drawn):
        assert_distribution(total, spread.cdf, false_alarm=RARE)
        assert_variance(total - expected, spread.var(), false_alarm=RARE)
    assert_independent(drawn[::2], drawn[1::2], false_alarm=RARE)


def test_the_filter_stops_in_time():
    assert LOCAL.event.noise_multiplier == 1.5
    wide = LocalGaussian(1.0, noise_multiplier=5.0)
    assert wide.most_reports(epsilon=4, delta=1e-6) == 17
    assert LOCAL.most_reports(epsilon=0.1, delta=1e-6) == 0
