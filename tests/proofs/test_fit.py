"""The conditions of a field, each at its edge, and the steps that follow from them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from proof_circuits import FULL, SMALL, TOY

from tacit.errors import Refused
from tacit.exact_sum import limit
from tacit.proofs import Ball, Flat, Outer, TwoFactors
from tacit.proofs.field import FIELD32, FIELD40
from tacit.proofs.fit import check_fit, fitting_steps, outer_limit

P = FIELD40.modulus


@pytest.mark.parametrize("circuit", [*SMALL.values(), *FULL.values()])
def test_what_the_tests_use_fits(circuit):
    check_fit(circuit, reports=1000, deviation=1e6)


def test_a_field_without_room_for_a_proof_names_every_reason():
    circuit = Ball(2, (40,), chunk=1, norm_chunk=1, tests=1, proofs=1, field=TOY)
    with pytest.raises(Refused) as refusal:
        check_fit(circuit, reports=1, deviation=0.0)
    problems = str(refusal.value).split("; ")
    assert [problem.split(" ")[0] for problem in problems] == ["3", "2600", "1", "21"]


def test_three_bounds_and_two_have_to_be_below_p():
    largest = (P - 2) // 3
    flat = Flat(1, (largest,), least_items=1)
    check_fit(flat, reports=0, deviation=0.0)
    with pytest.raises(Refused, match=f"^3 L \\+ 2 = {3 * largest + 5} must be"):
        check_fit(replace(flat, limits=(largest + 1,)), reports=0, deviation=0.0)


def test_the_reach_of_tests_is_bounded_by_the_field():
    """W may be 2²⁸ in Field40, where L ends first, and 2²⁰ in Field32."""
    check_fit(Ball(4, (2**37,)), reports=1, deviation=0.0)
    assert Ball(4, (2**37,)).reach == 2**22
    small = Ball(4, (2**29,), proofs=5, field=FIELD32)
    check_fit(small, reports=1, deviation=0.0)
    with pytest.raises(Refused, match=r"2600 W = .* must be <= p"):
        check_fit(replace(small, limits=(2**36,)), reports=1, deviation=0.0)
    huge = replace(small, limits=(2**38,))
    with pytest.raises(Refused, match=r"W² = .* must be <= 4000 p"):
        check_fit(huge, reports=1, deviation=0.0)


@pytest.mark.parametrize(("steps", "most"), [(2**16, 5_100), (2**14, 81_000)])
def test_a_flat_history_has_room_for_as_many_items_as_the_design_says(steps, most):
    check_fit(Flat(most, (steps**2,), proofs=5), reports=1, deviation=0.0)
    first = next(n for n in range(most, 2 * most) if (steps**2 // 20) * n >= P)
    with pytest.raises(Refused, match="m² n"):
        check_fit(Flat(first + 100, (steps**2,)), reports=1, deviation=0.0)


def test_a_sum_has_room_up_to_half_of_p():
    circuit = FULL["ball"]
    room, largest = (P - 1) // 2, math.isqrt(circuit.limits[0])
    most = room // largest
    check_fit(circuit, reports=most, deviation=0.0)
    with pytest.raises(Refused, match="use fewer steps"):
        check_fit(circuit, reports=most + 1, deviation=0.0)
    with pytest.raises(Refused, match="use fewer steps"):
        check_fit(circuit, reports=most, deviation=circuit.largest)


def test_joint_randomness_that_a_client_could_find_needs_more_proofs():
    """Four suffice for a flat history of 10,000 items, five for one of 50,000."""
    check_fit(Flat(10_000, (2**30,)), reports=1, deviation=0.0)
    many = Flat(50_000, (2**28,))
    with pytest.raises(Refused, match="use more proofs"):
        check_fit(many, reports=1, deviation=0.0)
    check_fit(replace(many, proofs=5), reports=1, deviation=0.0)
    narrow = Ball(405_450, (2**28,), field=FIELD32)
    with pytest.raises(Refused, match="use more proofs"):
        check_fit(narrow, reports=1, deviation=0.0)
    check_fit(replace(narrow, proofs=5), reports=1, deviation=0.0)


def test_too_many_calls_for_the_roots_of_the_field_are_refused():
    circuit = Ball(2**20, (2**32,), norm_chunk=1)
    with pytest.raises(Refused, match="roots of unity of order 4,194,304"):
        check_fit(circuit, reports=1, deviation=0.0)


def ball(steps):
    return Ball(3533, (limit(1.0, 3533, steps=steps),))


def outer(steps):
    return Outer(900, (outer_limit(1.0, 900, steps=steps),))


def factors(steps):
    return TwoFactors(1230, (outer_limit(2**0.5, 1230, steps=steps),), split=1200)


@pytest.mark.parametrize(
    ("circuit_of", "most", "reports", "steps"),
    [
        (ball, 2**16, 8_000_000, 2**16),
        (ball, 2**16, 9_000_000, 2**15),
        (outer, 2**12, 32_000, 2**12),
        (outer, 2**12, 33_000, 2**11),
        (outer, 2**12, 523_000, 2**10),
        (outer, 2**12, 530_000, 2**9),
        (factors, 2**12, 32_000, 2**12),
    ],
)
def test_steps_are_the_largest_that_fit(circuit_of, most, reports, steps):
    largest = fitting_steps(
        circuit_of, most=most, reports=reports, deviation_of=lambda _: 1e5
    )
    assert largest == steps


def test_steps_that_would_need_more_noise_are_refused():
    assert outer_limit(1.0, 900, steps=1024) / 1024**2 == pytest.approx(
        1.0012, abs=1e-4
    )
    with pytest.raises(Refused, match="times the noise"):
        outer_limit(1.0, 900, steps=64)
    with pytest.raises(Refused, match="times the noise"):
        fitting_steps(outer, most=2**12, reports=10**9, deviation_of=lambda _: 0.0)
