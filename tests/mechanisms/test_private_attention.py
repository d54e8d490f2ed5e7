from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mechanisms.local_audit import DRAWS, assert_no_louder, clients
from scipy.stats import laplace as laplace_law
from scipy.stats import norm

from tacit.accounting.epsilon import epsilon as account
from tacit.errors import BadValue
from tacit.mechanisms.private_attention import (
    GaussianAttention,
    LaplaceAttention,
    clip_attention,
    draw_interest,
    l1_sensitivity,
    l2_sensitivity,
    laplace,
    normalized,
    to_weights,
)
from tacit.testing.statistics import assert_distribution, assert_frequencies


@pytest.mark.parametrize(
    ("interests", "apart"), [(3, 2.4142), (5, 3.1463), (10, 4.4721)]
)
def test_l1_sensitivity_for_small_theta(interests, apart):
    for theta in (1e-3, 0.1):
        found = l1_sensitivity(theta, interests=interests)
        assert found == pytest.approx(apart * theta, abs=5e-5 * theta)


def test_sensitivities_at_the_ends():
    assert l2_sensitivity(0.3) == pytest.approx(0.3 * math.sqrt(2))
    assert l2_sensitivity(1.0) == l2_sensitivity(7.0) == pytest.approx(math.sqrt(2))
    for interests in (2, 3, 10):
        assert l1_sensitivity(1.0, interests=interests) == 2
        assert l1_sensitivity(9.0, interests=interests) == 2
    assert l1_sensitivity(0.6, interests=3) == pytest.approx(0.6 + 0.6 * math.sqrt(2))


def test_noise_scales():
    """Analytic Gaussian at (1, 1e-6) is 4.2247; Laplace is Δ1 / eps."""
    gaussian = GaussianAttention(1.0, 5, theta=0.1, delta=1e-6)
    assert gaussian.sigma == pytest.approx(0.141421 * 4.2247, rel=2e-5)
    assert LaplaceAttention(2.0, 3, theta=0.1).scale == pytest.approx(
        0.120711, abs=1e-6
    )


def simplex(interests: int, steps: int) -> np.ndarray:
    """Every distribution over the interests in whole steps, corners and edges too."""
    grid = np.indices((steps + 1,) * (interests - 1)).reshape(interests - 1, -1).T
    inside = grid[grid.sum(axis=1) <= steps]
    return np.column_stack([inside, steps - inside.sum(axis=1)]) / steps


@pytest.mark.parametrize("theta", [0.2, 0.5, 0.62, 0.75, 0.9, 1.0, 3.0])
@pytest.mark.parametrize(("interests", "steps"), [(2, 60), (3, 24), (4, 12)])
def test_brute_force_finds_the_sensitivities_and_nothing_beyond(
    interests, steps, theta
):
    """Even splits are on these grids, so both bounds are reached exactly."""
    points = clip_attention(simplex(interests, steps), theta=theta)
    gaps = points[:, None] - points[None]
    euclid = np.sqrt((gaps**2).sum(axis=-1)).max()
    total = np.abs(gaps).sum(axis=-1).max()
    assert euclid == pytest.approx(l2_sensitivity(theta), rel=1e-12)
    assert total == pytest.approx(l1_sensitivity(theta, interests=interests), rel=1e-12)
    assert euclid > min(theta, 1) * 1.4  # the published theta is violated


weird = st.floats(width=32) | st.sampled_from([0.0, -1.0, 1e30, math.nan, math.inf])


@given(arrays(np.float32, (2, 4), elements=weird), st.floats(0.01, 3))
def test_any_input_stays_within_the_sensitivities(pair, theta):
    one, other = clip_attention(pair, theta=theta)
    assert np.linalg.norm(one - other) <= l2_sensitivity(theta) * (1 + 1e-12)
    apart = l1_sensitivity(theta, interests=4)
    assert np.abs(one - other).sum() <= apart * (1 + 1e-12)
    assert np.linalg.norm(one) <= theta * (1 + 1e-12)


@given(arrays(np.float64, (3, 4), elements=st.floats(-1e4, 1e4)))
def test_weights_are_distributions(noisy):
    weights = to_weights(noisy)
    assert weights.sum(axis=1) == pytest.approx(1)
    assert (weights >= 0).all()


def test_all_zero_becomes_uniform():
    assert to_weights(np.full((1, 4), -1e6)).tolist() == [[0.25] * 4]
    assert normalized(np.zeros((1, 2))).tolist() == [[0.5, 0.5]]


def test_softplus_by_hand():
    weights = to_weights(np.array([[0.0, math.log(math.e - 1)]]))
    assert weights[0] == pytest.approx(np.array([math.log(2), 1]) / (1 + math.log(2)))


def test_laplace_noise_has_its_law():
    """False alarm below 1e-9; sees a scale 4 % off."""
    drawn = laplace(clients(1, 50_000), 2)
    assert_distribution(drawn, laplace_law.cdf, false_alarm=1e-9)


NEAR, FAR = [[1.0, 0.0, 0.0]], [[0.0, 0.5, 0.5]]  # Δ1 apart, for any theta


def noisy_parts(mechanism, attention, *, seed: int) -> np.ndarray:
    """What is released before softplus: both noises are additive."""
    keys = clients(seed)
    whole = np.repeat(clip_attention(np.array(attention), theta=0.5), DRAWS, axis=0)
    if isinstance(mechanism, LaplaceAttention):
        return whole + mechanism.scale * laplace(keys.at("noise"), 3)
    return whole + mechanism.sigma * keys.at("noise").normal(3)


def test_privatize_releases_those_parts():
    for mechanism in (
        LaplaceAttention(1.0, 3, theta=0.5),
        GaussianAttention(1.0, 3, theta=0.5, delta=1e-3),
    ):
        rows = np.repeat(np.array(NEAR), DRAWS, axis=0)
        released = mechanism.privatize(rows, clients(1))
        expected = to_weights(noisy_parts(mechanism, NEAR, seed=1))
        assert (released == expected).all()


def test_two_hundred_thousand_laplace_draws_of_an_extreme_pair():
    """The corner beyond both inputs is the loudest event. False alarm 3e-5."""
    mechanism = LaplaceAttention(1.0, 3, theta=0.5)

    def corner(attention: list[list[float]], seed: int) -> np.ndarray:
        parts = noisy_parts(mechanism, attention, seed=seed)
        return (parts[:, 0] >= 0.5) & (parts[:, 1] <= 0) & (parts[:, 2] <= 0)

    one, other = corner(NEAR, 1), corner(FAR, 2)
    assert_no_louder(one, other, mechanism.epsilon)
    with pytest.raises(AssertionError):
        assert_no_louder(one, other, mechanism.epsilon * 0.9)


def test_gaussian_draws_of_an_extreme_pair():
    """The best threshold test stays within (epsilon, delta), delta large to be seen.

    False alarm 3e-5; the sigma of the published sensitivity is caught.
    """
    epsilon, delta = 1.0, 0.05
    mechanism = GaussianAttention(epsilon, 3, theta=0.5, delta=delta)
    toward = np.array([0.5, -0.5, 0.0]) / math.sqrt(0.5)  # from one corner to another

    def excess(sigma: float) -> tuple[float, float]:
        gap = math.sqrt(0.5)
        place = gap / 2 + epsilon * sigma**2 / gap  # beyond, the loss exceeds epsilon
        noise = sigma * clients(3).normal(3) @ toward
        p, q = (noise + gap >= place).mean(), (noise >= place).mean()
        grown = math.exp(epsilon)
        error = math.sqrt((p * (1 - p) + grown**2 * q * (1 - q)) / DRAWS)
        return p - grown * q, error

    found, error = excess(mechanism.sigma)
    assert abs(found - delta) <= 4 * error
    found, error = excess(mechanism.sigma / math.sqrt(2))
    assert found > delta + 4 * error


@pytest.mark.parametrize(
    ("releases", "total"), [(1, 1.0), (7, 2.8899), (30, 6.5848), (365, 31.0401)]
)
def test_releases_compose_for_the_user(releases, total):
    from dp_accounting import SelfComposedDpEvent

    one = GaussianAttention(1.0, 5, theta=0.3, delta=1e-6).event
    event = SelfComposedDpEvent(one, releases)
    found = account(event, delta=1e-6, adjacency="replace_one").value
    assert found == pytest.approx(total, abs=5e-4)


def test_the_laplace_event_is_pure():
    event = LaplaceAttention(0.3, 4, theta=1.0).event
    assert (event.epsilon, event.choices) == (0.3, 2)


def test_noise_of_privatize_is_gaussian():
    """Seen through softplus's inverse for theta 0+. False alarm 1e-9, sees 2 %."""
    mechanism = GaussianAttention(1.0, 2, theta=1e-9, delta=1e-6)
    released = mechanism.privatize(np.full((DRAWS, 2), 0.5), clients(5))
    ratio = np.log(released[:, 0] / released[:, 1])  # softplus is linear around 0
    spread = mechanism.sigma * math.sqrt(2) / (2 * math.log(2))
    assert_distribution(ratio / spread, norm.cdf, false_alarm=1e-9)


def test_a_client_does_not_depend_on_the_others():
    attention, keys = np.linspace(0, 1, 60).reshape(20, 3), clients(3, 20)
    for mechanism in (
        LaplaceAttention(1.0, 3, theta=0.5),
        GaussianAttention(1.0, 3, theta=0.5, delta=1e-6),
    ):
        together = mechanism.privatize(attention, keys)
        alone = [mechanism.privatize(attention[[i]], keys[[i]])[0] for i in range(20)]
        assert (together == np.array(alone)).all()


def test_an_interest_is_drawn_as_often_as_it_is_attended_to():
    """False alarm below 1e-9; sees a probability 3 % off."""
    rows = np.tile([0.5, 0.0, 0.2, 0.3], (DRAWS, 1))
    drawn = draw_interest(rows, clients(6))
    assert_frequencies(np.bincount(drawn), [0.5, 0, 0.2, 0.3], false_alarm=1e-9)


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"interests": 1},
        {"theta": 0.0},
        {"theta": math.nan},
        {"delta": 0.0},
        {"delta": 1.0},
    ],
)
def test_nonsense_is_refused(bad):
    values = {"epsilon": 1.0, "interests": 3, "theta": 0.5, "delta": 1e-6} | bad
    with pytest.raises(BadValue):
        GaussianAttention(**values)
    if "delta" not in bad:
        del values["delta"]
        with pytest.raises(BadValue):
            LaplaceAttention(**values)


def test_attention_of_a_wrong_shape_is_refused():
    with pytest.raises(BadValue, match="needed is"):
        LaplaceAttention(1.0, 3, theta=1.0).privatize(np.zeros((2, 4)), clients(0, 2))
