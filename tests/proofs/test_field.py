"""Numbers modulo a prime: bytes, sums, roots of unity."""

from __future__ import annotations

import numpy as np
import pytest
from proof_circuits import FIELDS, uniform

from tacit.errors import BadMessage, BadValue
from tacit.proofs.field import Field


@pytest.fixture(params=FIELDS.values(), ids=FIELDS)
def field(request):
    return request.param


def test_numbers_survive_their_bytes(field):
    numbers = uniform(field, 1000)
    sent = field.to_bytes(numbers)
    assert sent == b"".join(int(a).to_bytes(field.size, "little") for a in numbers)
    assert (field.from_bytes(sent, 1000) == numbers).all()


def test_bytes_of_another_length_or_from_p_on_are_refused(field):
    sent = field.to_bytes(uniform(field, 3))
    with pytest.raises(BadMessage, match="were sent"):
        field.from_bytes(sent, 4)
    for number in (field.modulus, field.modulus + 1, 256**field.size - 1):
        wrong = sent + number.to_bytes(field.size, "little")
        with pytest.raises(BadMessage, match="1 of 4 numbers"):
            field.from_bytes(wrong, 4)


def test_streams_are_cut_to_the_bits_of_p_and_what_is_too_large_is_left_out(field):
    raw = np.random.default_rng(0).bytes(field.size * 20_000)
    mask = (1 << field.modulus.bit_length()) - 1
    cut = (
        int.from_bytes(raw[i : i + field.size], "little") & mask
        for i in range(0, len(raw), field.size)
    )
    expected = [number for number in cut if number < field.modulus]
    assert field.below(raw).tolist() == expected
    edge = (field.modulus - 1).to_bytes(field.size, "little")
    assert field.below(edge).tolist() == [field.modulus - 1]
    above = field.modulus.to_bytes(field.size, "little")
    assert field.below(above).tolist() == []


def test_sums_and_differences_are_remainders(field):
    x, y = uniform(field, 100), uniform(field, 100, seed=1)[::-1].copy()
    assert (field.add(x, y) == (x + y) % field.modulus).all()
    assert (field.subtract(x, y) == (x - y) % field.modulus).all()


def test_signed_numbers_are_the_nearest_to_zero(field):
    half = (field.modulus - 1) // 2
    whole = np.array([-half, -1, 0, 1, half])
    assert (field.signed(field.remainders(whole)) == whole).all()


def test_roots_have_their_order(field):
    n = field.order
    while n > 1:
        assert pow(field.root(n), n // 2, field.modulus) == field.modulus - 1
        n //= 2
    with pytest.raises(BadValue, match="no root of order"):
        field.root(2 * field.order)


def test_a_field_beyond_the_kernels_is_refused():
    with pytest.raises(BadValue, match="below 2\\^40"):
        Field(2**61 - 1, 8, 37, 2)
    with pytest.raises(BadValue, match="does not have the order"):
        Field(97, 1, 5, 32)
