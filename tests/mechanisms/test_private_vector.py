"""Tests of a vector with noise on every number."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import laplace, norm

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.private_vector import PrivateVector, cut
from tacit.testing.statistics import assert_distribution

ANY = hnp.arrays(np.float64, (2, 3), elements=st.floats(width=64))


@given(vectors=ANY, theta=st.floats(0.01, 10))
def test_a_cut_vector_is_no_longer_than_theta(vectors, theta):
    """Two of them are at most 2 theta apart, and sqrt(d) times that in L1."""
    one, two = cut(vectors, theta=theta)
    assert max(np.linalg.norm(one), np.linalg.norm(two)) <= theta * (1 + 1e-9)
    assert np.linalg.norm(one - two) <= 2 * theta * (1 + 1e-9)
    assert np.abs(one - two).sum() <= 2 * theta * math.sqrt(3) * (1 + 1e-9)


def test_a_short_vector_is_as_it_was():
    short = np.array([[0.1, -0.2]])
    np.testing.assert_array_equal(cut(short, theta=1.0), short)


def test_opposite_vectors_reach_both_sensitivities():
    even = np.full((1, 4), 9.0)
    apart = cut(even, theta=1.0) - cut(-even, theta=1.0)
    assert np.linalg.norm(apart) == pytest.approx(2.0)
    assert np.abs(apart).sum() == pytest.approx(2.0 * math.sqrt(4))


@pytest.mark.parametrize(
    ("delta", "law"), [(0.0, laplace), (1e-6, norm)], ids=["laplace", "gaussian"]
)
def test_the_noise_has_the_stated_scale(delta, law):
    """False alarm below 1e-9 if the seed were drawn anew; sees a scale 5 % off."""
    mechanism = PrivateVector(1.0, 4, theta=0.5, delta=delta)
    keys = Key.from_seed(1).each(np.arange(5000))
    drawn = mechanism.noisy(np.zeros((5000, 4)), keys).ravel()
    assert_distribution(drawn, law(scale=mechanism.scale).cdf, false_alarm=1e-9)
    assert drawn.var() == pytest.approx(mechanism.variance, rel=0.1)


def test_the_scales_by_hand():
    """Laplace: 2 theta sqrt(d) / epsilon. Gaussian: 2 theta times 4.2247 at 1e-6."""
    assert PrivateVector(2.0, 4, theta=0.5).scale == pytest.approx(1.0)
    gaussian = PrivateVector(1.0, 4, theta=0.5, delta=1e-6).scale
    assert gaussian == pytest.approx(4.2247, abs=5e-4)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_event_costs_the_stated_epsilon(delta):
    event = PrivateVector(3.0, 5, theta=0.2, delta=delta).event
    found = epsilon(event, delta=delta, adjacency="replace_one").value
    assert found == pytest.approx(3.0, abs=5e-3)


def test_a_vector_of_another_width_is_refused():
    keys = Key.from_seed(0).each(np.arange(2))
    with pytest.raises(BadValue, match=r"\(2, 4\)"):
        PrivateVector(1.0, 4, theta=1.0).noisy(np.zeros((2, 3)), keys)


@pytest.mark.parametrize(
    "bad", [{"epsilon": 0.0}, {"theta": 0.0}, {"width": 0}, {"delta": 1.0}]
)
def test_settings_out_of_range_are_refused(bad):
    with pytest.raises(BadValue):
        PrivateVector(**{"epsilon": 1.0, "width": 2, "theta": 1.0, **bad})
