from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanisms.local_audit import clients

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms import integer_coins
from tacit.mechanisms.flipped_bits import FlippedBits, packed_size
from tacit.privacy.local_flips import LocalFlips
from tacit.testing.statistics import assert_frequencies, assert_mean


def unpacked(rows: np.ndarray, n: int) -> np.ndarray:
    return np.unpackbits(rows, axis=1, count=n)


@given(st.floats(1e-3, 30))
def test_the_likelihood_ratio_of_a_bit_is_e_to_the_epsilon(each):
    flip = FlippedBits(each, 8).flip
    assert math.log((1 - flip) / flip) == pytest.approx(each, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("each", [700.0, 1e4])
def test_a_flip_never_becomes_impossible(each):
    assert FlippedBits(each, 8).flip == 2.0**-64


@given(st.one_of(st.floats(1e-12, 100), st.sampled_from([5e-324, 1e-300, 1e300])))
def test_exactly_so_many_words_flip(each):
    """The words below the number that test_chances.py checks, and no other."""
    words = integer_coins.flips(each)
    for word, flipped in ((0, 255), (words - 1, 255), (words, 0), (2**64 - 1, 0)):
        with pytest.MonkeyPatch.context() as patch:
            draw = np.full((1, 8), word, np.uint64)
            patch.setattr("tacit.keys.Keys.bits", lambda self, n, draw=draw: draw)
            row = FlippedBits(each, 8).privatize(np.zeros((1, 1), np.uint8), ONE)
            assert row == flipped


ONE = clients(0)[:1]


@given(st.floats(1e-6, 1e3), st.integers(1, 10**6))
def test_all_bits_of_a_row_together_are_within_epsilon(total, n_items):
    """In exact numbers: what is divided and multiplied again is not rounded up."""
    each = LocalFlips(total).bits(n_items).epsilon
    assert Fraction(each) * n_items <= Fraction(total)


@pytest.mark.parametrize("bit", [0, 1])
def test_bits_are_flipped_as_often_as_stated(bit):
    """False alarm below 2e-9; sees the flips of an epsilon 2 % off."""
    mechanism, users = FlippedBits(1.0, 8), 60_000
    rows = np.full((users, 1), 255 * bit, np.uint8)
    said = unpacked(mechanism.privatize(rows, clients(bit)[:users]), 8)
    flipped = int((said != bit).sum())
    counts = [flipped, said.size - flipped]
    assert_frequencies(counts, [mechanism.flip, 1 - mechanism.flip], false_alarm=1e-9)


def test_estimates_of_counts_and_pairs_are_unbiased():
    """Hoeffding, false alarm 1e-9 each; sees a bias of 0.06 rows of 5."""
    mechanism, repeats = FlippedBits(1.2, 3), 40_000
    truth = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 1]], np.uint8)
    packed = np.packbits(np.tile(truth, (repeats, 1)), axis=1)
    keys = Key.from_seed(2).each(np.arange(len(packed)))
    said = unpacked(mechanism.privatize(packed, keys), 3).reshape(repeats, 5, 3)
    ones, q = said.sum(axis=1), mechanism.flip
    widest = 5 / (1 - 2 * q) ** 2
    for i in range(3):
        found = np.array([mechanism.counts(row, rows=5)[i] for row in ones[:2000]])
        bounds = (-widest, 2 * widest)
        assert_mean(found, truth[:, i].sum(), bounds=bounds, false_alarm=1e-9)
    both = (said[:, :, 0] * said[:, :, 1]).sum(axis=1)
    found = (both - q * (ones[:, 0] + ones[:, 1]) + 5 * q**2) / (1 - 2 * q) ** 2
    assert_mean(found, 3.0, bounds=(-widest, 2 * widest), false_alarm=1e-9)
    one = mechanism.pairs(both[:1, None], one=ones[0, :1], other=ones[0, 1:2], rows=5)
    assert one[0, 0] == pytest.approx(found[0])


def test_the_deviation_of_a_pair_nobody_has():
    """Measured within 3 %; the deviation of 40,000 draws is within 2 % at 5 sigma."""
    mechanism, q = FlippedBits(1.0, 2), FlippedBits(1.0, 2).flip
    packed = np.zeros((40_000, 1), np.uint8)
    said = unpacked(mechanism.privatize(packed, clients(3)[:40_000]), 2) - q
    product = said[:, 0] * said[:, 1] / (1 - 2 * q) ** 2
    assert product.std() == pytest.approx(mechanism.pair_deviation(1), rel=0.03)


def test_a_client_never_notices_the_others_nor_the_blocks(monkeypatch):
    mechanism, keys = FlippedBits(1.0, 20), Key.from_seed(1).each(np.arange(7))
    rows = np.packbits(np.eye(7, 20, dtype=np.uint8), axis=1)
    together = mechanism.privatize(rows, keys)
    monkeypatch.setattr("tacit.mechanisms.flipped_bits._DRAWS_AT_ONCE", 40)
    np.testing.assert_array_equal(mechanism.privatize(rows, keys), together)
    alone = [mechanism.privatize(rows[[i]], keys[[i]]) for i in range(7)]
    np.testing.assert_array_equal(np.concatenate(alone), together)


def test_what_pads_a_row_stays_zero():
    mechanism = FlippedBits(0.01, 5)
    rows = mechanism.privatize(np.zeros((500, 1), np.uint8), clients(4)[:500])
    assert not (rows & 0b111).any()
    assert packed_size(5) == packed_size(8) == 1
    assert packed_size(9) == 2


def test_a_row_costs_all_its_bits():
    mechanism = FlippedBits(2.5, 1000)
    assert mechanism.total_epsilon == 2500
    found = epsilon(mechanism.event, delta=0.0, adjacency="replace_one").value
    assert found == pytest.approx(2500)


def test_refusals():
    with pytest.raises(BadValue, match="epsilon=0"):
        FlippedBits(0.0, 3)
    with pytest.raises(BadValue, match="2 bytes for each of 3"):
        FlippedBits(1.0, 9).privatize(np.zeros((3, 1), np.uint8), clients(0)[:3])
