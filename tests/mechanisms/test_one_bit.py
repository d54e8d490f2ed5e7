from __future__ import annotations

import math
from itertools import combinations

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
from scipy.optimize import minimize_scalar

from tacit.accounting.epsilon import epsilon as account
from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.keys import Key
from tacit.mechanisms.one_bit import (
    BEST_EPSILON,
    Bits,
    OneBit,
    distinct,
    one_of_each,
    randomized_bits,
)
from tacit.testing.statistics import assert_frequencies


def contributions(mechanism: OneBit, reports: Bits) -> np.ndarray:
    """What each client adds to the sum; (clients, dimension)."""
    table = np.zeros((len(reports), mechanism.dimension))
    signs = mechanism.scale * (reports.bits * 2.0 - 1.0)
    np.add.at(table, (np.arange(len(reports))[:, None], reports.coordinates), signs)
    return table


def probability_of_one(x: float, epsilon: float) -> float:
    grown = math.exp(epsilon)
    return (x * (grown - 1) + grown + 1) / (2 * grown + 2)


def test_worked_numbers():
    assert OneBit(2.5, 5000, 1).scale == pytest.approx(5894.2549, abs=5e-4)
    assert OneBit(2.5, 5000, 100).scale == pytest.approx(58.9425, abs=5e-4)
    assert OneBit(2.5, 1, 1).scale == pytest.approx(1.178851, abs=5e-7)
    assert OneBit(2.5, 5000, 1).variance(0.0) == pytest.approx(6948.4, abs=0.05)
    assert OneBit(2.5, 5000, 100).total_epsilon == 250


@pytest.mark.parametrize(
    ("x", "published"), [(0.5, 0.712071), (1.0, 0.924142), (0.0, 0.5)]
)
def test_bits_have_the_published_probability(x, published):
    """False alarm below 1e-9; sees a probability 0.7 % off."""
    assert probability_of_one(x, 2.5) == pytest.approx(published, abs=5e-7)
    bits = randomized_bits(np.full((DRAWS, 1), x), clients(1), epsilon=2.5)
    p = probability_of_one(x, 2.5)
    assert_frequencies(np.bincount(bits[:, 0]), [1 - p, p], false_alarm=1e-9)


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(1e-3, 30))
def test_the_likelihood_ratio_of_a_bit_is_bounded(x, y, epsilon):
    """Rounding then flipping is the published formula, and stays within epsilon."""

    def one(value: float) -> float:
        flip = 1 / (math.exp(epsilon) + 1)
        return (1 + value) / 2 * (1 - flip) + (1 - value) / 2 * flip

    assert one(x) == pytest.approx(probability_of_one(x, epsilon), rel=1e-12)
    assert abs(math.log(one(x) / one(y))) <= epsilon * (1 + 1e-9)
    assert abs(math.log((1 - one(x)) / (1 - one(y)))) <= epsilon * (1 + 1e-9) + 1e-9
    assert math.log(one(1.0) / one(-1.0)) == pytest.approx(epsilon)


@pytest.mark.parametrize(("one", "other"), [(1.0, -1.0), (1.0, 0.0), (9.0, -math.inf)])
def test_two_hundred_thousand_draws_of_an_extreme_pair(one, other):
    """False alarm 3e-5 a comparison; sees an epsilon 2 % larger for the first pair."""
    said = randomized_bits(np.full((DRAWS, 1), one), clients(1), epsilon=1.0)
    else_ = randomized_bits(np.full((DRAWS, 1), other), clients(2), epsilon=1.0)
    for bit in (0, 1):
        assert_no_louder(said == bit, else_ == bit, 1.0)
        assert_no_louder(else_ == bit, said == bit, 1.0)


def test_a_whole_report_of_an_extreme_pair():
    """All bits one: count · epsilon is reached, and not passed. False alarm 3e-5."""
    mechanism = OneBit(0.7, 3, 2)
    yes = mechanism.privatize(np.ones((DRAWS, 3)), clients(1)).bits.all(axis=1)
    no = mechanism.privatize(-np.ones((DRAWS, 3)), clients(2)).bits.all(axis=1)
    assert_no_louder(yes, no, mechanism.total_epsilon)
    with pytest.raises(AssertionError):
        assert_no_louder(yes, no, mechanism.total_epsilon * 0.95)


VECTOR = np.array([1.0, -1.0, 0.5, 0.0, -0.25, 0.9])


@pytest.mark.parametrize("count", [1, 3, 6])
def test_reports_are_unbiased_and_have_the_stated_variance(count):
    """False alarm 6e-5 a coordinate; sees a scale 2 % off in the variance."""
    mechanism = OneBit(1.5, 6, count)
    reports = mechanism.privatize(np.tile(VECTOR, (DRAWS, 1)), clients(count))
    stated = float(np.mean([mechanism.variance(x) for x in VECTOR]))
    assert_mean_and_variance(contributions(mechanism, reports), VECTOR, stated)
    mean = contributions(mechanism, reports).mean(axis=0)
    assert mechanism.estimate(reports) == pytest.approx(mean)


def test_the_scale_d_is_caught():
    """Without the division by count the mean is count times too large."""
    mechanism = OneBit(1.5, 6, 3)
    reports = mechanism.privatize(np.tile(VECTOR, (DRAWS, 1)), clients(3))
    wrong = contributions(mechanism, reports) * mechanism.count
    with pytest.raises(AssertionError, match="standard errors"):
        assert_mean_and_variance(wrong, VECTOR, 9 * mechanism.variance(0.5))


def test_sampling_with_replacement_is_caught():
    """All coordinates once leave only the bits' noise; with replacement far more."""
    mechanism, keys = OneBit(4.0, 4, 4), clients(9)
    at = keys.at("coordinates").integers(4, below=4).astype(np.int32)
    ones = np.ones((DRAWS, 4))
    wrong = Bits(at, randomized_bits(ones, keys, epsilon=4.0))
    right = mechanism.privatize(ones, keys)
    stated = mechanism.variance(1.0)
    assert_mean_and_variance(contributions(mechanism, right), ones[0], stated)
    with pytest.raises(AssertionError, match="variance"):
        assert_mean_and_variance(contributions(mechanism, wrong), ones[0], stated)


def test_coordinates_are_distinct_and_every_set_is_equally_likely():
    """False alarm below 1e-9; sees a set 4 % too rare."""
    drawn = np.sort(distinct(clients(2), 2, below=5), axis=1)
    sets = {pair: i for i, pair in enumerate(combinations(range(5), 2))}
    counts = np.bincount([sets[a, b] for a, b in drawn.tolist()], minlength=len(sets))
    assert_frequencies(counts, np.full(len(sets), 1 / len(sets)), false_alarm=1e-9)


@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 2**32))
def test_any_number_of_coordinates_is_distinct(count, more, seed):
    drawn = distinct(clients(seed, 3), count, below=count + more)
    assert all(len(set(row)) == count for row in drawn.tolist())
    assert drawn.min() >= 0
    assert drawn.max() < count + more


def test_coordinates_do_not_depend_on_the_vector():
    mechanism, keys = OneBit(1.0, 20, 5), clients(1, 100)
    one = mechanism.privatize(np.zeros((100, 20)), keys)
    other = mechanism.privatize(np.full((100, 20), math.nan), keys)
    assert (one.coordinates == other.coordinates).all()
    assert (one.bits == other.bits).all()  # NaN counts as 0


def test_only_reported_coordinates_need_to_be_known():
    mechanism, keys = OneBit(1.0, 30, 4), clients(6, 50)
    values = np.linspace(-1.5, 1.5, 1500).reshape(50, 30)
    whole = mechanism.privatize(values, keys)
    asked = mechanism.privatize_from(
        lambda at: values[np.arange(50)[:, None], at].astype(np.float32), keys
    )
    assert (whole.coordinates == asked.coordinates).all()
    assert whole.bits.dtype == np.uint8
    assert whole.coordinates.dtype == np.int32


def test_a_client_does_not_depend_on_the_others():
    mechanism, keys = OneBit(1.0, 9, 4), clients(3, 20)
    values = np.linspace(-1, 1, 180).reshape(20, 9)
    together = mechanism.privatize(values, keys)
    for i in range(20):
        alone = mechanism.privatize(values[[i]], keys[[i]])
        assert (alone.coordinates[0] == together.coordinates[i]).all()
        assert (alone.bits[0] == together.bits[i]).all()


def test_reports_cut_into_single_bits_give_the_same_estimate():
    mechanism = OneBit(1.0, 9, 4)
    whole = mechanism.privatize(np.full((20, 9), 0.3), clients(3, 20))
    cut = Bits(whole.coordinates.reshape(-1, 1), whole.bits.reshape(-1, 1))
    one, other = mechanism.estimate(whole), mechanism.estimate(cut, clients=20)
    assert one == pytest.approx(other)


def test_a_huge_epsilon_still_flips_now_and_then(monkeypatch):
    """Of 2**32 equally likely draws, the first flips for any epsilon."""
    monkeypatch.setattr("tacit.keys.Keys.bits", lambda self, n: np.zeros((1, n), "u8"))
    for epsilon in (1.0, 60.0, 5000.0):
        assert randomized_bits(np.ones((1, 1)), clients(0, 1), epsilon=epsilon) == 0


def test_ten_thousand_clients_of_a_real_size():
    """d = 5000, k = 100, without 10,000 dense vectors."""
    mechanism = OneBit(2.5, 5000, 100)
    reports = mechanism.privatize_from(
        lambda at: np.where(at < 2500, 1.0, -1.0), clients(1, 10_000)
    )
    found = mechanism.estimate(reports)
    error = math.sqrt(mechanism.variance(1.0) / 10_000 / 2500)
    assert abs(found[:2500].mean() - 1) < 5 * error
    assert abs(found[2500:].mean() + 1) < 5 * error


def test_the_best_epsilon_of_a_bit():
    found = minimize_scalar(lambda e: e / math.tanh(e / 2) ** 2, bounds=(0.5, 6))
    assert found.x == pytest.approx(BEST_EPSILON, abs=5e-5)


def test_the_event_is_count_times_one_bit():
    event = OneBit(1.0, 500, 100).event
    assert account(event, delta=1e-6, adjacency="replace_one").value == pytest.approx(
        83.5307, abs=5e-4
    )


@pytest.mark.parametrize(
    "bad", [(0.0, 5, 1), (math.nan, 5, 1), (1.0, 5, 6), (1.0, 0, 1), (1.0, 2**31, 1)]
)
def test_nonsense_is_refused(bad):
    with pytest.raises(BadValue):
        OneBit(*bad)


def test_vectors_of_a_wrong_shape_are_refused():
    keys = clients(0, 3)
    with pytest.raises(BadValue, match="needed is one vector of 4"):
        OneBit(1.0, 4, 2).privatize(np.zeros((3, 5)), keys)
    with pytest.raises(BadValue, match="keys"):
        OneBit(1.0, 4, 2).privatize_from(lambda at: np.zeros((2, 2)), keys)


def test_of_a_secret_no_compiled_generator_draws(monkeypatch):
    """The kernels have Philox inside; whatever the size, a cipher's coins decide."""
    keys = Key.from_secret(bytes(range(32))).each(range(3))
    values = np.linspace(-1, 1, 12).reshape(3, 4)
    starts, sizes = np.array([0, 5]), np.array([5, 7])
    small = randomized_bits(values, keys, epsilon=1.0), one_of_each(keys, starts, sizes)
    for name in ("one_bit.bits", "one_bit.places"):
        monkeypatch.setitem(TABLE, name, TABLE[name].at(0))
    np.testing.assert_array_equal(small[0], randomized_bits(values, keys, epsilon=1.0))
    np.testing.assert_array_equal(small[1], one_of_each(keys, starts, sizes))
