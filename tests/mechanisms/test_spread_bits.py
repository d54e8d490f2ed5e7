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

from tacit.accounting.epsilon import epsilon as account
from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.mechanisms import integer_coins
from tacit.mechanisms.one_bit import Bits, OneBit, one_of_each, randomized_bits
from tacit.mechanisms.spread_bits import SpreadBits
from tacit.testing.statistics import assert_frequencies

VECTOR = np.array([1.0, -1.0, 0.5, 0.0, -0.25, 0.9, -0.6])


def contributions(mechanism: SpreadBits, reports: Bits) -> np.ndarray:
    """What each client adds to the sum; (clients, dimension)."""
    table = np.zeros((len(reports), mechanism.dimension))
    scale = mechanism.scales[reports.coordinates]
    rows = np.arange(len(reports))[:, None]
    np.add.at(table, (rows, reports.coordinates), scale * (reports.bits * 2.0 - 1.0))
    return table


def test_worked_numbers():
    """Equal parts have the scale d/k of `OneBit`."""
    mechanism = SpreadBits(2.5, 5000, 100)
    np.testing.assert_allclose(mechanism.scales, 58.9425, atol=5e-4)
    assert mechanism.variance() == pytest.approx(OneBit(2.5, 5000, 100).variance())
    uneven = SpreadBits(2.5, 7, 3)
    assert uneven.bounds.tolist() == [0, 2, 4, 7]
    sizes = [2, 2, 2, 2, 3, 3, 3]
    np.testing.assert_allclose(uneven.scales, np.array(sizes) * 1.178851, atol=1e-5)


@pytest.mark.parametrize(("dimension", "count"), [(7, 3), (8, 4), (5, 5), (9, 1)])
def test_one_coordinate_of_each_part_and_all_alike(dimension, count):
    """False alarm below 1e-9 a part; sees a coordinate 5 % too rare."""
    mechanism = SpreadBits(1.0, dimension, count)
    at = mechanism.coordinates(clients(1))
    bounds = mechanism.bounds
    for j in range(count):
        size = bounds[j + 1] - bounds[j]
        counts = np.bincount(at[:, j] - bounds[j])
        assert_frequencies(counts, np.full(size, 1 / size), false_alarm=1e-9)


@pytest.mark.parametrize("count", [1, 3, 7])
def test_reports_are_unbiased_and_have_the_stated_variance(count):
    """False alarm 6e-5 a coordinate; sees a scale 2 % off in the variance."""
    mechanism = SpreadBits(1.5, 7, count)
    reports = mechanism.privatize(np.tile(VECTOR, (DRAWS, 1)), clients(count))
    stated = float(np.mean([mechanism.variance(x) for x in VECTOR]))
    made = contributions(mechanism, reports)
    assert_mean_and_variance(made, VECTOR, stated)
    np.testing.assert_allclose(mechanism.total(reports), made.sum(axis=0))


@pytest.mark.parametrize("wrong", [7.0, 7 / 3])
def test_a_scale_that_is_not_the_parts_own_is_caught(wrong):
    """The paper's d, and d/k where parts are uneven."""
    mechanism = SpreadBits(1.5, 7, 3)
    reports = mechanism.privatize(np.tile(VECTOR, (DRAWS, 1)), clients(3))
    made = contributions(mechanism, reports) / mechanism.scales
    made *= wrong / math.tanh(0.75)
    with pytest.raises(AssertionError, match="standard errors"):
        assert_mean_and_variance(made, VECTOR, 1.0)


def test_bits_of_a_report_are_independent():
    """Correlations of coordinates and of bits between parts, 4.5 standard errors."""
    mechanism = SpreadBits(1.0, 12, 3)
    reports = mechanism.privatize(
        np.tile(np.linspace(-1, 1, 12), (DRAWS, 1)), clients(4)
    )
    for column in (reports.coordinates, reports.bits):
        found = np.corrcoef(column.T)[np.triu_indices(3, 1)]
        assert np.abs(found).max() < 4.5 / math.sqrt(DRAWS)


def test_a_whole_report_of_an_extreme_pair():
    """All bits one: count · epsilon is reached, and not passed. False alarm 3e-5."""
    mechanism = SpreadBits(0.7, 4, 2)
    yes = mechanism.privatize(np.ones((DRAWS, 4)), clients(1)).bits.all(axis=1)
    no = mechanism.privatize(-np.ones((DRAWS, 4)), clients(2)).bits.all(axis=1)
    assert_no_louder(yes, no, 1.4)
    with pytest.raises(AssertionError):
        assert_no_louder(yes, no, 1.4 * 0.95)
    assert account(mechanism.event, delta=0.0, adjacency="replace_one").value == (
        pytest.approx(1.4)
    )


def test_coordinates_do_not_depend_on_the_vector():
    mechanism, keys = SpreadBits(1.0, 20, 5), clients(1, 100)
    one = mechanism.privatize(np.zeros((100, 20)), keys)
    other = mechanism.privatize(np.full((100, 20), math.nan), keys)
    assert (one.coordinates == other.coordinates).all()
    assert (one.bits == other.bits).all()  # NaN counts as 0


@given(
    st.integers(1, 9),
    st.integers(1, 12),
    st.integers(0, 2**32),
    st.sampled_from([(1.3, 0.8), (1e-12, 1.0), (900.0, 1e300), (1.0, 5e-324)]),
)
def test_twins_agree(n, count, seed, setting):
    """Also where the slope is zero or infinite, and for values of every kind."""
    keys, draw = clients(seed, n), np.random.default_rng(seed)
    epsilon, bound = setting
    values = draw.normal(size=(n, count))
    kinds = [np.nan, np.inf, -np.inf, 0.0, 5e-324, 1e308]
    values.ravel()[draw.integers(0, n * count)] = draw.choice(kinds)
    sizes = draw.integers(1, 2**31 // count, count)
    starts = np.cumsum(sizes) - sizes
    found = []
    for limit in (2**62, 0):
        with pytest.MonkeyPatch.context() as patch:
            for name in ("one_bit.bits", "one_bit.places"):
                patch.setitem(TABLE, name, TABLE[name].at(limit))
            bits = randomized_bits(values, keys, epsilon=epsilon, bound=bound)
            found.append((bits, one_of_each(keys, starts, sizes)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@given(
    st.floats(allow_subnormal=True),
    st.one_of(st.floats(1e-12, 800), st.sampled_from([5e-324, 1e-300, 1e300])),
    st.floats(5e-324, 1e308),
)
def test_neither_bit_is_rarer_than_epsilon_allows(value, epsilon, bound):
    """A bit is 1 from some draw on; so many draws below it, and above, as flips are."""
    least = integer_coins.flips(epsilon, bits=32)  # within epsilon: test_chances.py
    for draw, bit in ((least - 1, 0), (2**32 - least, 1)):
        with pytest.MonkeyPatch.context() as patch:
            word = np.full((1, 1), draw, np.uint64)
            patch.setattr("tacit.keys.Keys.bits", lambda self, n, word=word: word)
            keys, values = clients(0, 1), np.array([[value]])
            assert randomized_bits(values, keys, epsilon=epsilon, bound=bound) == bit


@pytest.mark.parametrize("word", [0, 2**64 - 1])
@pytest.mark.parametrize("value", [1.0, -1.0, 1e300, -math.inf])
def test_the_first_and_the_last_draw_give_either_bit(monkeypatch, word, value):
    """Whatever was rounded: of 2**32 draws one at least says each bit."""
    monkeypatch.setattr(
        "tacit.keys.Keys.bits", lambda self, n: np.full((1, n), word, np.uint64)
    )
    for epsilon in (0.1, 40.0, 5000.0):
        bit = randomized_bits(np.array([[value]]), clients(0, 1), epsilon=epsilon)
        assert bit == (word > 0)


def test_a_bound_scales_the_values():
    keys, values = clients(5, 50), np.linspace(-3, 3, 200).reshape(50, 4)
    wide = randomized_bits(values, keys, epsilon=2.0, bound=4.0)
    assert (wide == randomized_bits(values / 4, keys, epsilon=2.0)).all()


@pytest.mark.parametrize(
    "bad", [(0.0, 5, 1), (math.nan, 5, 1), (1.0, 5, 6), (1.0, 0, 1), (1.0, 2**31, 1)]
)
def test_nonsense_is_refused(bad):
    with pytest.raises(BadValue):
        SpreadBits(*bad)


def test_vectors_of_a_wrong_shape_are_refused():
    with pytest.raises(BadValue, match="needed is one vector of 4"):
        SpreadBits(1.0, 4, 2).privatize(np.zeros((3, 5)), clients(0, 3))
