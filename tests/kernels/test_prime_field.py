"""Every kernel of `tacit.kernels.prime_field` against its form in whole numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from proof_circuits import FIELDS, uniform

from tacit.kernels import prime_field as kernels
from tacit.proofs.field import FIELD40


@pytest.fixture(params=FIELDS.values(), ids=FIELDS)
def field(request):
    return request.param


# --- Slow forms -----------------------------------------------------------------------


def inverse(a, p):
    return pow(a, p - 2, p)


def interpolated(values, root, t, p):
    """The polynomial through (root^k, values[k]) at t, by Lagrange's formula."""
    places = [pow(root, k, p) for k in range(len(values))]
    total = 0
    for k, value in enumerate(values):
        for j, place in enumerate(places):
            if j != k:
                value = value * (t - place) * inverse(places[k] - place, p) % p
        total += value
    return total % p


def polynomial(coefficients, t, p):
    return sum(int(c) * pow(t, i, p) for i, c in enumerate(coefficients)) % p


def gadget(inputs, is_square):
    numbers = [int(a) for a in inputs]
    if is_square:
        return sum(a * a for a in numbers)
    return sum(a * b for a, b in zip(numbers[::2], numbers[1::2], strict=True))


# --- Arithmetic -----------------------------------------------------------------------


def test_products_are_exact_for_all_extremes(field):
    p = field.modulus
    numbers = [0, 1, 2, p // 3, p // 2, p // 2 + 1, p - 2, p - 1, *uniform(field, 40)]
    for a, b in itertools.product(numbers, repeat=2):
        out = np.empty(2, np.int64)
        kernels.root_pairs(np.array([b]), 0, a, out, p)
        assert out[1] == (int(b) - int(a)) % p
        assert kernels.dot(np.array([a]), np.array([b]), p) == int(a) * int(b) % p
        assert kernels.value_at(np.array([0, a]), b, p) == int(a) * int(b) % p


def test_all_products_of_a_small_field_are_exact():
    a, b = np.divmod(np.arange(97 * 97), 97)
    found = [
        kernels.value_at(np.array([0, x]), y, 97) for x, y in zip(a, b, strict=True)
    ]
    assert found == (a * b % 97).tolist()


@pytest.mark.parametrize("exponent", [0, 1, 2, 95, 2**20, 2**39 + 12345])
def test_powers_are_those_of_python(field, exponent):
    for a in (0, 1, 2, field.modulus - 1, 12345 % field.modulus):
        expected = pow(a, exponent, field.modulus)
        assert kernels.power(a, exponent, field.modulus) == expected


def test_a_transform_gives_the_values_at_all_powers_of_the_root(field):
    p, n = field.modulus, 16
    columns = uniform(field, n, 3)
    root, values = field.root(n), columns.copy()
    kernels.transform(values, root, p)
    for k, c in itertools.product(range(n), range(3)):
        assert values[k, c] == polynomial(columns[:, c], pow(root, k, p), p)


@pytest.mark.parametrize("is_square", [True, False])
@pytest.mark.parametrize("points", [2, 4, 16])
def test_a_gadget_polynomial_is_the_gadget_of_the_interpolated_wires(
    field, points, is_square
):
    p, wires = field.modulus, uniform(field, points, 6)
    root = field.root(2 * points)
    coefficients = kernels.gadget_polynomial(wires, is_square, root, p)
    assert len(coefficients) == 2 * points - 1
    square = root * root % p
    for t in (0, 1, 7, root, square, p - 3):
        inputs = [interpolated(column.tolist(), square, t, p) for column in wires.T]
        assert polynomial(coefficients, t, p) == gadget(inputs, is_square) % p
    outputs = kernels.values_at_roots(coefficients, points, square, p)
    assert outputs.tolist() == [gadget(row, is_square) % p for row in wires]


def test_wires_at_a_point_are_interpolated(field):
    p, wires, root = field.modulus, uniform(field, 8, 5), field.root(8)
    for t in (0, 3, 5, p - 2):
        assert not field.is_root(t, 8)
        expected = [interpolated(column.tolist(), root, t, p) for column in wires.T]
        assert kernels.wires_at(wires, t, root, p).tolist() == expected


@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_ternary_products_read_two_bits_a_number(field, n):
    p, x = field.modulus, uniform(field, n)
    codes = np.random.default_rng(n).integers(0, 256, (30, -(-n // 4)), np.uint8)
    found = kernels.ternary_products(x, codes, p)
    for row, result in zip(codes.tolist(), found, strict=True):
        pairs = [row[i // 4] >> 2 * (i % 4) & 3 for i in range(n)]
        signs = [(pair & 1) + (pair >> 1) - 1 for pair in pairs]
        assert result == sum(s * int(a) for s, a in zip(signs, x, strict=True)) % p


def test_long_dot_products_do_not_overflow():
    """2²² products of the largest numbers: as many as the kernel may add up."""
    x = np.full(2**22, FIELD40.modulus - 1)
    assert kernels.dot(x, x, FIELD40.modulus) == 2**22


@pytest.mark.parametrize("n", [1, 2, 7])
def test_forms_are_sums_of_weighted_products(field, n):
    p = field.modulus
    rho = uniform(field, 3, n, seed=1)
    upper = uniform(field, n * (n + 1) // 2, seed=2)
    places = list(itertools.combinations_with_replacement(range(n), 2))
    for weights, form in zip(rho, kernels.quadratic_forms(upper, rho, p), strict=True):
        terms = (
            (1 if i == j else 2) * int(weights[i]) * int(weights[j]) * int(x)
            for (i, j), x in zip(places, upper, strict=True)
        )
        assert form == sum(terms) % p
    tau, matrix = uniform(field, 3, 4, seed=3), uniform(field, n * 4, seed=4)
    forms = kernels.bilinear_forms(matrix, rho, tau, p)
    for left, right, form in zip(rho, tau, forms, strict=True):
        both = itertools.product(left.tolist(), right.tolist())
        terms = (a * b * int(x) for (a, b), x in zip(both, matrix, strict=True))
        assert form == sum(terms) % p


@pytest.mark.parametrize("longest", [3, 2**20, 2**31 - 1])
def test_upper_products_are_remainders_for_any_size(field, longest):
    z = np.random.default_rng(0).integers(-longest, longest, 6, endpoint=True)
    z[:2] = longest, -longest
    out = np.empty(21, np.int64)
    kernels.upper_products(z, out, field.modulus)
    pairs = itertools.combinations_with_replacement(z.tolist(), 2)
    assert out.tolist() == [a * b % field.modulus for a, b in pairs]


def test_binary_values_take_shares_of_bits(field):
    p, bits = field.modulus, uniform(field, 4, 9)
    expected = [polynomial(row, 2, p) for row in bits]
    assert kernels.binary_values(bits, p).tolist() == expected


def claim_pairs_are_weighted_by_powers(field):
    p, x, marks = field.modulus, uniform(field, 9), uniform(field, 9, seed=1)
    r, s = 5, p - 2
    out = np.empty(18, np.int64)
    kernels.root_pairs(x, r, s, out, p)
    weighted = [int(a) * pow(r, i, p) % p for i, a in enumerate(x)]
    assert out[::2].tolist() == weighted
    assert out[1::2].tolist() == [(int(a) - s) % p for a in x]
    kernels.claim_pairs(x, marks, r, out, p)
    assert out[::2].tolist() == weighted
    assert out[1::2].tolist() == marks.tolist()
