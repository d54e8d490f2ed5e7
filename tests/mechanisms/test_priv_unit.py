from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanisms.local_audit import (
    DRAWS,
    assert_mean_and_variance,
    assert_no_louder,
    clients,
)
from scipy.special import logit, ndtr

from tacit.errors import BadValue
from tacit.mechanisms.priv_unit import PrivUnit, cap_at
from tacit.testing.statistics import assert_distribution


@pytest.mark.parametrize(
    ("epsilon", "t", "p", "q", "gain", "variance", "digits"),
    [
        (0.5, 0.1993, 0.545237, 0.578972, 0.199284, 25.1799, 4),
        (1.0, 0.3974, 0.589341, 0.654472, 0.397463, 6.3300, 4),
        (2.5, 0.9756, 0.705972, 0.835360, 0.975662, 1.0505, 4),
        (5.0, 1.8505, 0.831247, 0.967876, 1.850644, 0.29198, 5),
        (10.0, 3.2597, 0.924747, 0.999442, 3.260060, 0.094091, 6),
    ],
)
def test_parameters_for_five_thousand_dimensions(
    epsilon, t, p, q, gain, variance, digits
):
    mechanism = PrivUnit(epsilon, 5000)
    cap = mechanism.cap
    assert cap.threshold == pytest.approx(t, abs=5e-5)
    assert cap.inside == pytest.approx(p, abs=5e-7)
    assert cap.below == pytest.approx(q, abs=5e-7)
    assert cap.gain == pytest.approx(gain, abs=5e-7)
    assert round(mechanism.variance(1.0), digits) == variance


@given(st.floats(0.01, 60), st.floats(-2, 6))
def test_the_densities_of_two_inputs_differ_by_e_to_the_epsilon(epsilon, threshold):
    """Over the Gaussian, a report has one density on the cap and one off it."""
    cap = cap_at(threshold, epsilon=epsilon)
    on, off = math.log(cap.inside / cap.above), math.log(cap.outside / cap.below)
    assert on - off == pytest.approx(epsilon, rel=1e-9, abs=1e-9)
    assert cap.inside + cap.outside == pytest.approx(1)
    if epsilon < 20 and abs(threshold) < 4:
        total = float(logit(cap.inside) + logit(ndtr(threshold)))
        assert total == pytest.approx(epsilon, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 8.0, 30.0])
def test_no_other_threshold_has_less_variance(epsilon, dimension):
    best = PrivUnit(epsilon, dimension).variance(1.0)
    for t in np.linspace(-3, math.sqrt(2 * epsilon) + 4, 200):
        cap = cap_at(float(t), epsilon=epsilon)
        square = (dimension + t * cap.gain) / cap.gain**2
        assert best <= (square - 1) / dimension * (1 + 1e-9)


def along_the_cap(mechanism: PrivUnit, reports: np.ndarray) -> np.ndarray:
    """The first coordinate in units where the cap begins at the threshold."""
    return reports[:, 0] * mechanism.cap.gain / mechanism.radius


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_two_hundred_thousand_draws_of_an_extreme_pair(epsilon):
    """The cap of one input is the loudest event against its opposite.

    False alarm 3e-5 a comparison; sees an epsilon 0.05 larger.
    """
    mechanism = PrivUnit(epsilon, 3)
    v = np.tile([1.0, 0.0, 0.0], (DRAWS, 1))
    one = along_the_cap(mechanism, mechanism.privatize(v, clients(1)))
    other = along_the_cap(mechanism, mechanism.privatize(-v, clients(2)))
    t = mechanism.cap.threshold
    assert_no_louder(one >= t, other >= t, epsilon)
    assert_no_louder(other <= -t, one <= -t, epsilon)
    for place in (-2.0, -t, 0.0, t, 2.0):
        assert_no_louder(one >= place, other >= place, epsilon)
    with pytest.raises(AssertionError):
        assert_no_louder(one >= t, other >= t, epsilon - 0.05)


def test_a_cap_hit_too_often_is_caught():
    """A mechanism of epsilon 1.15 does not pass for one of 1."""
    mechanism, louder = PrivUnit(1.0, 3), PrivUnit(1.15, 3)
    v = np.tile([1.0, 0.0, 0.0], (DRAWS, 1))
    one = along_the_cap(louder, louder.privatize(v, clients(1)))
    other = along_the_cap(louder, louder.privatize(-v, clients(2)))
    t = louder.cap.threshold
    with pytest.raises(AssertionError):
        assert_no_louder(one >= t, other >= t, mechanism.epsilon)


@pytest.mark.parametrize(
    "vector",
    [
        [2.0, 0.0, 0.0, 0.0],
        [0.6, -0.5, 0.2, 0.0],
        [0.0, 0.0, 0.0, 0.0],
        [-0.01, 0.0, 0.01, 0.02],
    ],
)
def test_reports_are_unbiased_and_have_the_stated_variance(vector):
    """False alarm 6e-5 a coordinate; sees a norm that is off by 1 %."""
    mechanism, x = PrivUnit(2.5, 4, radius=2.0), np.array(vector)
    reports = mechanism.privatize(np.tile(x, (DRAWS, 1)), clients(4))
    assert reports.dtype == np.float32
    stated = mechanism.variance(float(np.linalg.norm(x)))
    assert_mean_and_variance(reports.astype(np.float64), x, stated)
    assert mechanism.estimate(reports) == pytest.approx(reports.mean(0, np.float64))


def test_longer_vectors_are_clipped():
    mechanism, keys = PrivUnit(1.0, 3, radius=0.5), clients(1, 100)
    unit = np.tile([0.0, 3.0, 4.0], (100, 1))
    short = mechanism.privatize(unit / 10, keys)
    for factor in (1.0, 1e6, 4e307):
        long = mechanism.privatize(unit * factor, keys)
        assert long == pytest.approx(short, abs=1e-5)


def test_the_part_along_the_vector_has_its_distribution():
    """False alarm below 1e-9; sees a threshold 0.05 off."""
    mechanism = PrivUnit(2.0, 2)
    cap, v = mechanism.cap, np.tile([1.0, 0.0], (DRAWS, 1))
    along = along_the_cap(mechanism, mechanism.privatize(v, clients(7)))

    def cdf(a: np.ndarray) -> np.ndarray:
        low = cap.outside * np.minimum(ndtr(a) / cap.below, 1.0)
        high = cap.inside * np.maximum(ndtr(a) - cap.below, 0.0) / cap.above
        return np.clip(low + high, 0.0, 1.0)

    assert_distribution(along, cdf, false_alarm=1e-9)


def test_across_the_vector_there_is_only_noise():
    """False alarm below 1e-9; sees noise that is 1.5 % off."""
    mechanism = PrivUnit(2.0, 2)
    v = np.tile([0.6, 0.8], (DRAWS, 1))
    reports = mechanism.privatize(v, clients(8)).astype(np.float64)
    across = (reports @ [0.8, -0.6]) * mechanism.cap.gain
    assert_distribution(across, ndtr, false_alarm=1e-9)


def test_five_thousand_dimensions_project_to_the_same_law():
    """The mean along the vector is 1 in 4 s.e., across it 0; variance within 3 %."""
    mechanism, n = PrivUnit(5.0, 5000), 400
    v = np.full(5000, 5000**-0.5)
    reports = mechanism.privatize(np.tile(v, (n, 1)), clients(9, n))
    along = reports @ v
    assert abs(along.mean() - 1) < 4 * along.std() / math.sqrt(n)
    measured = float(((reports - v) ** 2).mean())
    assert measured == pytest.approx(mechanism.variance(1.0), rel=0.03)


def test_what_is_not_finite_counts_as_zero():
    mechanism, keys = PrivUnit(1.0, 3), clients(1, 3)
    bad = np.array([[math.nan, 0, 0], [math.inf, 1, 1], [0, -math.inf, math.nan]])
    zero = mechanism.privatize(np.zeros((3, 3)), keys)
    assert (mechanism.privatize(bad, keys) == zero).all()
    assert np.isfinite(zero).all()


@given(st.integers(0, 2**32), st.floats(0.01, 200), st.integers(1, 5))
def test_reports_are_finite(seed, epsilon, dimension):
    mechanism, keys = PrivUnit(epsilon, dimension), clients(seed, 50)
    values = np.full((50, dimension), 5e-324)
    assert np.isfinite(mechanism.privatize(values, keys)).all()


def test_a_client_does_not_depend_on_the_others():
    mechanism, keys = PrivUnit(1.0, 6), clients(3, 20)
    values = np.linspace(-1, 1, 120).reshape(20, 6)
    together = mechanism.privatize(values, keys)
    alone = [mechanism.privatize(values[[i]], keys[[i]])[0] for i in range(20)]
    assert together == pytest.approx(np.array(alone), rel=1e-6)


def test_the_event_is_pure():
    event = PrivUnit(0.3, 5).event
    assert (event.epsilon, event.choices) == (0.3, 2)


@pytest.mark.parametrize(
    "bad", [(0.0, 5, 1.0), (math.inf, 5, 1.0), (1.0, 0, 1.0), (1.0, 5, 0.0)]
)
def test_nonsense_is_refused(bad):
    with pytest.raises(BadValue):
        PrivUnit(*bad)


def test_vectors_of_a_wrong_shape_are_refused():
    with pytest.raises(BadValue, match="needed is one vector of 4"):
        PrivUnit(1.0, 4).privatize(np.zeros((3, 5)), clients(0, 3))
