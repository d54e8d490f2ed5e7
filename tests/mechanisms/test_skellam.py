"""Skellam sums: integers, exact sensitivities, and noise that adds up in shares."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ive
from scipy.stats import skellam as skellam_law

from tacit.accounting.calibration import gaussian_epsilon
from tacit.accounting.rdp import skellam_epsilon, skellam_rdp
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.skellam import SkellamShares, SkellamSum, skellam
from tacit.testing.mechanism_contract import FALSE_ALARM, MechanismContract
from tacit.testing.statistics import (
    assert_frequencies,
    assert_independent,
    assert_mean,
)
from tacit.tree import Tree

RARE = 1e-9


def frequencies(draws, variance, edges):
    """How often draws fell between the edges, and how often they should."""
    cells = np.searchsorted(edges, draws)  # cell i: edges[i-1] < draw <= edges[i]
    law = skellam_law(variance / 2, variance / 2)
    below = np.concatenate([[0.0], law.cdf(edges), [1.0]])
    return np.bincount(cells, minlength=len(edges) + 1), np.diff(below)


def check_skellam(draws, variance, *, false_alarm=RARE):
    sd = math.sqrt(variance)
    edges = np.unique(np.floor(sd * np.array([-2.5, -1.5, -0.7, 0.7, 1.5, 2.5])))
    seen, expected = frequencies(np.asarray(draws).ravel(), variance, edges)
    assert_frequencies(seen, expected, false_alarm=false_alarm)


class TestSkellamSum(MechanismContract):
    dtype = np.int64
    is_tight = False  # a few long roundings would be needed

    def mechanism(self):
        return SkellamSum(clip=2.0, noise_multiplier=1.2, resolution=50.0, dimension=22)

    def contributions(self, tree, keys):
        return self.mechanism().encode(tree, keys)

    def noise_multiplier(self):
        return self.mechanism().noise_multiplier

    def check_law(self, noise, scale):
        check_skellam(noise, scale**2, false_alarm=FALSE_ALARM)


# The bound


def exact_divergence(alpha, variance, shift):
    """The Rényi divergence of Skellam noise moved by `shift`, summed numerically."""
    most = 20 * math.isqrt(int(variance))  # farther out the terms vanish
    k = np.arange(-most, most + 1)
    p, q = (np.log(ive(np.abs(at), variance)) for at in (k - shift, k))
    return math.log(np.exp(alpha * p + (1 - alpha) * q).sum()) / (alpha - 1)


def bound(alpha, variance, shift):
    (found,) = skellam_rdp(
        np.array([alpha * 1.0]), variance=variance, l1=shift, l2=shift
    )
    return found


def test_the_bound_is_near_the_exact_divergence():
    assert bound(8, 100.0, 3.0) == pytest.approx(0.363825, abs=5e-7)
    assert exact_divergence(8, 100.0, 3) == pytest.approx(0.355722, abs=5e-7)


@pytest.mark.parametrize("variance", [20.0, 100.0, 400.0])
@pytest.mark.parametrize("shift", [1, 3, 5])
def test_the_bound_is_never_below_the_exact_divergence(variance, shift):
    for alpha in (2, 3, 8, 20):
        assert exact_divergence(alpha, variance, shift) <= bound(alpha, variance, shift)


def test_the_account_reads_the_mechanisms_own_sensitivities():
    made = SkellamSum(1.0, noise_multiplier=2.0, resolution=100.0, dimension=9)
    event = made.event
    assert (event.variance, event.l1, event.l2) == (
        made.variance,
        made.l1_sensitivity,
        made.sensitivity,
    )
    # A Gaussian of the same multiplier, and a little more.
    assert 4 / (2 * 2.0**2) < made.rdp(4) < 1.01 * 4 / (2 * 2.0**2)
    assert made.rdp(1) == math.inf
    spent = skellam_epsilon(
        variance=event.variance, l1=event.l1, l2=event.l2, delta=1e-6
    )
    gaussian = gaussian_epsilon(2.0, delta=1e-6)
    assert gaussian < spent < 1.2 * gaussian


# Sensitivities


def test_sensitivities_by_hand():
    """c = 3: (3 + 2)² = 25 against 9 + 1 + (3 + 1) = 14, a little more by slack."""
    made = SkellamSum(3.0, noise_multiplier=1.0, resolution=1.0, dimension=4)
    assert made.sensitivity**2 == pytest.approx(14, rel=1e-12)
    assert made.l1_sensitivity == pytest.approx(math.sqrt(4 * 14), rel=1e-12)
    one = SkellamSum(0.5, noise_multiplier=1.0, resolution=1.0, dimension=1)
    assert one.sensitivity**2 == pytest.approx(1, rel=1e-12)
    assert one.l1_sensitivity == pytest.approx(1, rel=1e-12)


@given(
    seed=st.integers(0, 2**32),
    clip=st.sampled_from([0.01, 0.5, 1.0, 30.0]),
    resolution=st.sampled_from([0.3, 1.0, 7.0, 1000.0]),
    size=st.sampled_from([1e-3, 1.0, 1e9]),
)
def test_no_contribution_exceeds_either_sensitivity(seed, clip, resolution, size):
    """Values at one half of a step make rounding as long as it gets."""
    made = SkellamSum(clip, noise_multiplier=1.0, resolution=resolution, dimension=12)
    draws = np.random.default_rng(seed)
    x = size * draws.choice([-1.0, 0.0, 0.5 / resolution, 1.0, 3.0], (20, 12))
    keys = Key.from_seed(seed).each(np.arange(20))
    k = made.encode(Tree.dense(x=x), keys)["x"]
    assert k.dtype == np.int64
    squares = (k**2).sum(axis=1)
    assert squares.max() <= made.sensitivity**2 * (1 + 1e-12)
    assert np.abs(k).sum(axis=1).max() <= made.l1_sensitivity * (1 + 1e-12)


def test_long_roundings_are_drawn_again():
    """Without the limit one in fifty of these would be longer than the sensitivity."""
    made = SkellamSum(2.0, noise_multiplier=1.0, resolution=1.0, dimension=16)
    x = np.full((4000, 16), 0.5)  # norm 2, every coordinate at one half
    unlimited = np.random.default_rng(1).integers(0, 2, x.shape).sum(axis=1)
    assert (unlimited > made.sensitivity**2).mean() > 0.01
    keys = Key.from_seed(1).each(np.arange(4000))
    k = made.encode(Tree.dense(x=x), keys)["x"]
    assert (k**2).sum(axis=1).max() <= made.sensitivity**2 * (1 + 1e-12)


def test_rounding_is_unbiased_where_nothing_is_drawn_again():
    """False alarm below 1e-9; sees a bias of 0.02 steps, as rounding down has."""
    made = SkellamSum(10.0, noise_multiplier=1.0, resolution=4.0, dimension=3)
    x = np.tile([0.1, -0.33, 1.2], (100_000, 1))
    keys = Key.from_seed(2).each(np.arange(len(x)))
    k = made.encode(Tree.dense(x=x), keys)["x"]
    assert_mean(k, x[0] * 4, bounds=(-2, 5), false_alarm=RARE)
    sums = made.estimate({"x": k.sum(axis=0)})["x"]
    np.testing.assert_allclose(sums / len(x), x[0], atol=0.01)


def test_whole_steps_are_exact():
    made = SkellamSum(100.0, noise_multiplier=1.0, resolution=2.0, dimension=3)
    x = np.array([[1.0, -2.5, 0.0], [3.0, 0.5, -0.5]])
    keys = Key.from_seed(1).each(np.arange(2))
    np.testing.assert_array_equal(made.encode(Tree.dense(x=x), keys)["x"], 2 * x)
    np.testing.assert_array_equal(made.estimate({"x": np.array([3])})["x"], [1.5])


# Noise


def test_small_noise_has_the_exact_frequencies():
    """False alarm below 1e-9; sees a cell off by 0.01."""
    draws = skellam(Key.from_seed(3), 1.5, (200_000,))
    edges = np.arange(-4, 5) - 0.0
    seen, expected = frequencies(draws, 1.5, edges)
    assert_frequencies(seen, expected, false_alarm=RARE)
    wrong = skellam(Key.from_seed(3), 1.5 * 1.1, (200_000,))
    with pytest.raises(AssertionError):
        assert_frequencies(
            frequencies(wrong, 1.5, edges)[0], expected, false_alarm=RARE
        )


def test_noise_is_for_whole_numbers():
    made = SkellamSum(1.0, noise_multiplier=1.0, resolution=1.0, dimension=3)
    with pytest.raises(BadValue, match=r"leaf 'x' is float64.*encode"):
        made.add({"x": np.zeros(3)}, Key.from_seed(1))


WHOLE = SkellamSum(1.0, noise_multiplier=1.0, resolution=20.0, dimension=20_000)


def test_shares_of_honest_devices_add_up_to_the_noise_of_the_sum():
    """False alarm below 1e-9; sees a scale 5 % off, missed with less than 1e-6.

    Five clients take part, two tell their share: the other three carry the whole.
    """
    shares = SkellamShares(WHOLE, least_clients=5, colluders=2)
    assert shares.variance == pytest.approx(WHOLE.variance / 3)
    zero = Tree.dense(x=np.zeros((5, 20_000)))
    reports = shares.privatize(zero, Key.from_seed(4).each(np.arange(5)))["x"]
    assert reports.dtype == np.int64
    check_skellam(reports[0], shares.variance)
    check_skellam(reports[2:].sum(axis=0), WHOLE.variance)
    assert_independent(reports[0], reports[1], false_alarm=RARE)


def test_a_device_never_notices_the_others():
    shares = SkellamShares(
        SkellamSum(1.0, noise_multiplier=1.0, resolution=20.0, dimension=5), 4
    )
    tree = Tree.dense(a=np.random.default_rng(1).normal(size=(4, 2)), b=np.ones((4, 3)))
    keys = Key.from_seed(5).each(np.arange(4))
    together = shares.privatize(tree, keys)
    for row in range(4):
        alone = shares.privatize(tree.select([row]), keys[[row]])
        for name in ("a", "b"):
            np.testing.assert_array_equal(alone[name], together[name][[row]])


# Refusals


@pytest.mark.parametrize(
    "wrong",
    [
        {"clip": 0.0},
        {"clip": float("nan")},
        {"noise_multiplier": 0.0},
        {"resolution": -1.0},
        {"resolution": float("inf")},
        {"dimension": 0},
        {"dimension": 2.5},
    ],
)
def test_nonsense_is_refused(wrong):
    sound = {"clip": 1.0, "noise_multiplier": 1.0, "resolution": 1.0, "dimension": 3}
    with pytest.raises(BadValue, match=next(iter(wrong))):
        SkellamSum(**(sound | wrong))


def test_a_grid_too_fine_for_integers_is_refused():
    with pytest.raises(BadValue, match="choose a smaller one"):
        SkellamSum(1.0, noise_multiplier=1.0, resolution=1e10, dimension=3)


def test_another_dimension_is_refused():
    made = SkellamSum(1.0, noise_multiplier=1.0, resolution=1.0, dimension=3)
    with pytest.raises(BadValue, match="4 coordinates; dimension=3 was agreed"):
        made.encode(Tree.dense(x=np.zeros((1, 4))), Key.from_seed(1).each([0]))


@pytest.mark.parametrize(("least", "colluders"), [(0, 0), (3, 3), (3, 5), (3, -1)])
def test_shares_need_somebody_honest(least, colluders):
    with pytest.raises(BadValue, match=r"(least_clients|colluders)="):
        SkellamShares(WHOLE, least, colluders)
