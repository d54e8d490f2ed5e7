"""Noise for a target: minimal, and within the target for sure."""

import math

import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from quick import some_of

from tacit.accounting.calibration import (
    calibrate,
    clipped_noise,
    gaussian_epsilon,
    gaussian_noise,
)
from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue, Refused


def training(rate, noise, rounds):
    event = PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
    return SelfComposedDpEvent(event, rounds)


def assert_calibrated(rate, rounds, delta, *, target, expected):
    z = calibrate(lambda z: training(rate, z, rounds), target=target, delta=delta)
    assert z == pytest.approx(expected, abs=1e-3)
    assert epsilon(training(rate, z, rounds), delta=delta).value <= target
    less = training(rate, z * (1 - 1.5e-4), rounds)
    assert epsilon(less, delta=delta).value > target


@pytest.mark.parametrize(
    ("rate", "rounds", "delta", "target", "expected"),
    some_of(
        [
            (604 / 6040, 100, 1e-5, 2, 2.248),
            (189 / 943, 100, 1e-5, 4, 2.380),
            (1000 / 50_000, 500, 1e-6, 2, 1.288),
        ],
        1,
    ),
)
def test_training(rate, rounds, delta, target, expected):
    assert_calibrated(rate, rounds, delta, target=target, expected=expected)


def test_other_families():
    z = calibrate(GaussianDpEvent, target=1.0, delta=1e-5)
    assert gaussian_noise(1.0, delta=1e-5) <= z <= 3.7306 * (1 + 2e-4)
    pure = calibrate(
        lambda z: SelfComposedDpEvent(LaplaceDpEvent(z), 10), target=2.0, delta=0
    )
    assert 5.0 <= pure <= 5.0 * (1 + 1e-4)
    doubled = calibrate(
        GaussianDpEvent, target=1.0, delta=1e-5, adjacency="replace_one"
    )
    assert doubled == pytest.approx(2 * z, rel=2e-4)


def test_a_target_that_noise_cannot_meet_is_refused():
    with pytest.raises(Refused, match="does more noise lower"):
        calibrate(lambda z: GaussianDpEvent(1.0), target=1.0, delta=1e-6)
    for target in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(BadValue, match="target="):
            calibrate(GaussianDpEvent, target=target, delta=1e-6)


def test_where_any_noise_will_do_a_little_is_given():
    """A user is hardly ever asked: with delta above the rate, epsilon is 0."""
    z = calibrate(lambda z: training(1e-5, z, 1), target=1.0, delta=1e-4)
    assert z < 0.01


@pytest.mark.parametrize("target", [0.1, 1.0, 10.0])
def test_analytic_gaussian_and_back(target):
    found = gaussian_noise(target, delta=1e-6)
    assert gaussian_epsilon(found, delta=1e-6) == pytest.approx(target, abs=1e-9)
    four = gaussian_epsilon(2 * found, delta=1e-6, count=4)
    assert four == pytest.approx(target, abs=1e-9)


def test_the_clips_share():
    z = clipped_noise(1.0, bits=5.0)
    assert z == pytest.approx(1.005038, abs=5e-7)
    assert z**-2 + (2 * 5.0) ** -2 == pytest.approx(1.0)
    with pytest.raises(BadValue, match=r"bits=0\.5 must be > 0\.5"):
        clipped_noise(1.0, bits=0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian_noise(0.0, delta=1e-6),
        lambda: gaussian_noise(1.0, delta=0.0),
        lambda: gaussian_noise(1.0, delta=1.0),
        lambda: gaussian_epsilon(0.0, delta=1e-6),
        lambda: gaussian_epsilon(1.0, delta=0.0),
        lambda: gaussian_epsilon(1.0, delta=1e-6, count=0),
        lambda: clipped_noise(-1.0, bits=1.0),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(BadValue):
        call()
