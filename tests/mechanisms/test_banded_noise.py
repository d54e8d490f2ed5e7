"""The stream is C⁻¹ z, bit by bit as in the vectors, and restarts from its state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import toeplitz
from scipy.stats import norm as normal

from tacit.accounting.ftrl import Banded, coefficients
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.banded_noise import BandedNoise
from tacit.testing.mechanism_contract import assert_variance
from tacit.testing.statistics import assert_distribution, assert_independent
from tacit.tree import Tree

RARE = 1e-9


def made(bands, *, participations=1, separation=None):
    schedule = Banded(participations, separation or bands, bands)
    return BandedNoise(1.0, noise_multiplier=1.0, schedule=schedule)


def norm(bands):
    return Banded(1, bands, bands).norm


def stream(mechanism, rounds, width, seed=1):
    """The noise of several rounds, (rounds, width)."""
    zero = {"x": np.zeros(width)}
    state, found = mechanism.start(zero), []
    for t in range(rounds):
        key = Key.from_seed(seed).at("round", t)
        noisy, state = mechanism.add(zero, key, state=state)
        found.append(noisy["x"])
    return np.array(found)


def matrix(bands, rounds):
    column = np.zeros(rounds)
    column[:bands] = coefficients(bands)[:rounds]
    return np.tril(toeplitz(column))


# Calibration


@pytest.mark.parametrize(
    ("bands", "participations", "epsilon", "expected"),
    [(20, 10, 4, 5.3587), (20, 5, 4, 3.7892), (100, 10, 2, 11.2221)],
)
def test_the_noise_of_a_run_in_clips(bands, participations, epsilon, expected):
    for clip in (1.0, 3.0):
        schedule = Banded(participations, bands, bands)
        mechanism = BandedNoise.calibrated(clip, schedule, epsilon=epsilon, delta=1e-6)
        assert mechanism.scale("x") / clip == pytest.approx(expected, abs=5e-4)
        ratio = mechanism.scale("x") / mechanism.sensitivity
        assert mechanism.event.noise_multiplier == pytest.approx(ratio, rel=1e-12)


@given(
    bands=st.integers(1, 4),
    extra=st.integers(0, 3),
    first=st.integers(0, 5),
    times=st.integers(1, 4),
    data=st.data(),
)
def test_nobody_who_keeps_the_rules_moves_more_than_the_sensitivity(
    bands, extra, first, times, data
):
    """Every pattern of participation, any contributions within the clip."""
    separation, rounds = bands + extra, 24
    steps = [data.draw(st.integers(separation, separation + 2)) for _ in range(times)]
    when = [t for t in first + np.cumsum([0, *steps[1:]]) if t < rounds]
    mechanism = made(bands, participations=times, separation=separation)
    directions = np.random.default_rng(first).normal(size=(rounds, 3))
    user = np.zeros((rounds, 3))
    user[when] = directions[when]
    user = mechanism.bound(Tree.dense(x=user * 1e3))["x"]
    moved = np.linalg.norm(matrix(bands, rounds) @ user)
    assert moved <= mechanism.sensitivity * (1 + 1e-6)
    if len(when) == times and when[-1] + bands <= rounds:
        assert moved == pytest.approx(mechanism.sensitivity, rel=1e-9)


def test_closer_participations_would_break_the_sensitivity():
    """Why bands above the separation are refused: aligned updates overlap."""
    user = np.zeros(20)
    user[[0, 1]] = 1.0
    moved = np.linalg.norm(matrix(5, 20) @ user)
    assert moved > 1.2 * made(5, participations=2).sensitivity
    with pytest.raises(BadValue, match="participations overlap"):
        made(5, separation=4)


# The stream


@pytest.mark.parametrize(
    ("bands", "expected"),
    [
        (3, [1, -0.5, -0.125, 0.25, -0.078125, -0.0546875]),
        (6, [1, -0.5, -0.125, -0.0625, -0.0390625, -0.02734375]),
        (1, [1, 0, 0, 0, 0, 0]),
    ],
)
def test_impulse_responses_are_exact(bands, expected, monkeypatch):
    """One unit of fresh noise in the first round, none later."""
    fresh = iter([1.0, 0, 0, 0, 0, 0])
    monkeypatch.setattr(
        "tacit.mechanisms.banded_noise.add_noise",
        lambda total, key, **_: {name: v + next(fresh) for name, v in total.items()},
    )
    assert stream(made(bands), 6, 1)[:, 0].tolist() == expected


@pytest.mark.parametrize("bands", [1, 2, 3, 7])
def test_c_times_the_stream_is_fresh_noise(bands):
    """False alarm below 1e-9; sees a scale 2 % off, missed with less than 1e-9."""
    mechanism = BandedNoise(2.0, noise_multiplier=1.5, schedule=Banded(3, 9, bands))
    fresh = matrix(bands, 12) @ stream(mechanism, 12, 40_000)
    scale = 1.5 * 2.0 * np.sqrt(3) * norm(bands)
    assert mechanism.scale("x") == pytest.approx(scale, rel=1e-12)
    assert_distribution(fresh, normal(scale=scale).cdf, false_alarm=RARE)
    assert_variance(fresh.ravel(), scale**2, false_alarm=RARE)
    for t in range(1, 12):
        assert_independent(fresh[t], fresh[t - 1], false_alarm=RARE)


def test_the_covariance_over_rounds_is_that_of_the_inverse():
    """40 000 streams; an entry is off by 1 % of a variance, six deviations allowed.

    By the normal law each of the 36 entries passes 6 deviations with 2e-9.
    """
    width, rounds, bands = 40_000, 6, 3
    x = stream(made(bands), rounds, width) / norm(bands)
    inverse = np.linalg.inv(matrix(bands, rounds))
    expected = inverse @ inverse.T
    spread = np.sqrt(
        (expected**2 + np.outer(np.diag(expected), np.diag(expected))) / width
    )
    assert (np.abs(x @ x.T / width - expected) < 6 * spread).all()


def test_sums_over_rounds_suffer_less_than_from_fresh_noise():
    """What it is for: at equal privacy, the noise on the last weights is smaller."""
    rounds = 100
    inverse = np.linalg.inv(matrix(20, rounds))
    banded = np.linalg.norm(inverse.sum(axis=0)) * norm(20)
    assert banded < 0.5 * np.sqrt(rounds)


# State


def test_a_stream_goes_on_from_its_state():
    mechanism = made(4)
    zero = {"x": np.zeros(3), "y": np.zeros((2, 2))}
    state = mechanism.start(zero)
    keys = [Key.from_seed(3).at("round", t) for t in range(8)]
    for t in range(5):
        _, state = mechanism.add(zero, keys[t], state=state)
    saved = {name: value.copy() for name, value in state.items()}
    assert {name: value.shape for name, value in saved.items()} == {
        "x": (3, 3),
        "y": (3, 2, 2),
    }
    first, _ = mechanism.add(zero, keys[5], state=state)
    again, _ = mechanism.add(zero, keys[5], state=saved)
    for name in zero:
        np.testing.assert_array_equal(state[name], saved[name])  # left alone
        np.testing.assert_array_equal(first[name], again[name])


def test_noise_does_not_depend_on_the_total():
    mechanism, key = made(3), Key.from_seed(4)
    total = {"x": np.array([1e6, -3.0])}
    state = {"x": np.array([[1.0, 2.0], [3.0, 4.0]])}
    noisy, after = mechanism.add(total, key, state=state)
    noise, other = mechanism.add({"x": np.zeros(2)}, key, state=state)
    np.testing.assert_array_equal(noisy["x"], total["x"] + noise["x"])
    np.testing.assert_array_equal(after["x"], other["x"])


def test_another_state_is_refused():
    mechanism = made(3)
    with pytest.raises(BadValue, match=r"begin with start\(\)"):
        mechanism.add({"x": np.zeros(2)}, Key.from_seed(1), state={})
    with pytest.raises(BadValue, match=r"begin with start\(\)"):
        mechanism.add(
            {"x": np.zeros(2)}, Key.from_seed(1), state={"x": np.zeros((3, 2))}
        )


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_nonsense_is_refused(bad):
    schedule = Banded(1, 20)
    with pytest.raises(BadValue, match="clip="):
        BandedNoise(bad, noise_multiplier=1.0, schedule=schedule)
    with pytest.raises(BadValue, match="noise_multiplier="):
        BandedNoise(1.0, noise_multiplier=bad, schedule=schedule)
    with pytest.raises(BadValue, match="epsilon="):
        BandedNoise.calibrated(1.0, schedule, epsilon=bad, delta=1e-6)


def test_an_update_is_clipped_jointly():
    tree = Tree.dense(a=np.full((1, 1), 3.0), b=np.full((1, 1), 4.0))
    np.testing.assert_allclose(made(3).bound(tree).norms(), 1.0)
