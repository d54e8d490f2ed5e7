"""Measurements: their sizes, what a client writes, and what it refuses to write."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proof_circuits import FULL, SMALL, honest

from tacit.errors import BadValue
from tacit.exact_sum import limit
from tacit.proofs import Ball, Flat, Outer, TwoFactors
from tacit.proofs.circuits import NormCircuit, to_bits
from tacit.proofs.proof import leader_bytes, message_bytes

SIZES = {  # measured with an independent implementation: leader's share, answers
    "ball": (34_529, 2_369),
    "outer": (2_053_000, 2_250),
    "factors": (200_000, 2_300),
    "flat": (23_267, 2_600),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_full_report_has_the_size_of_the_design(name):
    share, answers = SIZES[name]
    assert leader_bytes(FULL[name]) == pytest.approx(share, rel=0.01)
    assert message_bytes(FULL[name]) - 64 == pytest.approx(answers, rel=0.03)


def test_the_tests_reach_to_eight_point_seven_norms():
    for exponent in range(8, 38):
        circuit = Ball(4, (2**exponent + 3,))
        least = math.ceil(8.7 * math.sqrt(2**exponent + 3)) + 1
        assert least <= circuit.reach < 4 * least
        assert circuit.reach.bit_count() == 1


@given(st.lists(st.integers(-400, 400), min_size=12, max_size=12))
def test_a_measurement_has_the_numbers_and_two_bounds_in_bits(numbers):
    report = np.array(numbers)
    circuit = Ball(12, (10**6,))
    v = int(report @ report)
    if v > 10**6:
        with pytest.raises(BadValue, match="sum of squares"):
            circuit.encode(report)
        return
    head = circuit.encode(report)
    assert (circuit.field.signed(head[:12]) == report).all()
    assert head[12:].tolist() == to_bits(v, 20) + to_bits(10**6 - v, 20)


@pytest.mark.parametrize("name", SMALL)
def test_the_first_numbers_of_a_measurement_are_added_up(name):
    circuit = SMALL[name]
    report = honest(circuit, np.random.default_rng(1))
    head = circuit.encode(report, group=len(circuit.limits) - 1)
    assert len(head) == circuit.head
    if isinstance(circuit, Outer):
        sums = np.outer(report, report)[np.triu_indices(circuit.n)]
    elif isinstance(circuit, TwoFactors):
        sums = np.outer(report[: circuit.split], report[circuit.split :]).ravel()
    else:
        sums = report
    assert (circuit.field.signed(head[: circuit.n_sums]) == sums).all()
    assert np.abs(sums).max() <= circuit.largest


@pytest.mark.parametrize("circuit", SMALL.values(), ids=SMALL)
def test_a_report_that_is_too_long_is_refused_for_its_own_group(circuit):
    for group, most in enumerate(circuit.limits):
        x = np.zeros(circuit.n, np.int64)
        if isinstance(circuit, Flat):
            x[: circuit.least_items] = math.isqrt(most // circuit.least_items) + 1
        else:
            x[0] = math.isqrt(most) + 1
        with pytest.raises(BadValue, match="must be"):
            circuit.encode(x, group=group)


def test_numbers_whose_squares_overflow_are_refused():
    x = np.full(12, 2**32)
    with pytest.raises(BadValue, match="sum of squares"):
        SMALL["ball"].encode(x)


@pytest.mark.parametrize("circuit", SMALL.values(), ids=SMALL)
def test_another_shape_or_group_is_refused(circuit):
    with pytest.raises(BadValue, match="shape"):
        circuit.encode(np.zeros(circuit.n + 1, np.int64))
    for group in (-1, len(circuit.limits)):
        with pytest.raises(BadValue, match="group"):
            circuit.encode(np.zeros(circuit.n, np.int64), group=group)


def test_a_flat_report_has_one_height():
    circuit = SMALL["flat"]
    for numbers in ([3, 4], [3, -3], [-3]):
        x = np.zeros(12, np.int64)
        x[: len(numbers)] = numbers
        with pytest.raises(BadValue, match="one height"):
            circuit.encode(x)
    with pytest.raises(BadValue, match="sum of squares"):
        circuit.encode(np.full(12, circuit.highest[0]))


@given(st.integers(0, 3533), st.integers(1, 100))
def test_a_height_is_the_largest_that_keeps_both_bounds(items, least):
    circuit = Flat(3533, (2**32,), least_items=least)
    s = circuit.height(items)
    assert s <= circuit.highest[0]
    assert s**2 * max(items, least) <= 2**32 < (s + 1) ** 2 * max(items, least)


def test_an_item_weighs_at_most_what_one_of_twenty_does():
    assert FULL["flat"].largest / 2**16 == pytest.approx(0.2236, abs=1e-4)


def test_the_bound_on_products_is_half_of_that_on_both_factors():
    circuit, rng = SMALL["factors"], np.random.default_rng(0)
    for _ in range(50):
        x = honest(circuit, rng)
        length = np.linalg.norm(np.outer(x[:4], x[4:]))
        assert length <= circuit.limits[0] / 2


@pytest.mark.parametrize("circuit", FULL.values(), ids=FULL)
def test_bits_are_counted_as_in_the_design(circuit):
    if isinstance(circuit, NormCircuit) and circuit.limits == (
        limit(1.0, 3533, steps=2**16),
    ):
        assert circuit.length - circuit.tested.stop == 2266
    assert circuit.length >= circuit.head >= circuit.n_sums
