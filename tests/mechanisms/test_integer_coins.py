"""Coins of whole numbers against e^epsilon with 120 digits, from tiny to huge."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.mechanisms import integer_coins

SPREAD = [5e-324, 1e-300, 1e-30, 1e-19, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 2.5, 8.0]
LARGE = [20.0, 22.2, 43.0, 44.4, 60.0, 88.0, 199.9, 200.0, 700.0, 5000.0, 1e300]
epsilons = st.one_of(st.sampled_from(SPREAD + LARGE), st.floats(1e-9, 100))
ALL = 2**64


def is_within(ratio: Fraction, epsilon: float) -> bool:
    """Whether a ratio of chances is at most e^epsilon, in exact numbers."""
    with mpmath.workdps(500):
        grown = mpmath.exp(mpmath.mpf(min(epsilon, 1000.0)))
        return mpmath.mpf(ratio.numerator) <= grown * ratio.denominator


@given(epsilons)
def test_growth_is_just_below_the_real_number(epsilon):
    found = integer_coins.growth(epsilon)
    assert found >= 1
    assert is_within(found, epsilon)
    if 1e-9 < epsilon < 200:
        assert not is_within(found * (1 + Fraction(1, 10**55)), epsilon)


@given(epsilons, st.sampled_from([32, 64]))
def test_flips_are_the_fewest_that_epsilon_allows(epsilon, bits):
    words = integer_coins.flips(epsilon, bits=bits)
    assert 1 <= words <= 2 ** (bits - 1)
    assert is_within(Fraction(2**bits - words, words), epsilon)
    if words > 1 and epsilon > 1e-30:
        fewer = Fraction(2**bits - words + 1, words - 1)
        assert not is_within(fewer, epsilon)


def rates(choices: int) -> list[int]:
    """How many of 2^64 words `Keys.integers` turns into each value."""
    ends = [-(-r * ALL // choices) for r in range(choices + 1)]
    return [b - a for a, b in pairwise(ends)]


def likelihoods(epsilon: float, choices: int) -> list[list[int]]:
    """The chance of every report for every value, in units of 2^-128."""
    lie, drawn = integer_coins.lies(epsilon, choices), rates(choices)
    return [
        [(ALL - lie) * ALL * (r == x) + lie * drawn[r] for r in range(choices)]
        for x in range(choices)
    ]


@given(epsilons, st.integers(1, 9))
def test_a_response_is_within_epsilon_for_all_neighbours(epsilon, choices):
    table = likelihoods(epsilon, choices)
    assert all(sum(row) == ALL**2 for row in table)
    for report in range(choices):
        column = [row[report] for row in table]
        assert is_within(Fraction(max(column), min(column)), epsilon)


@pytest.mark.parametrize("choices", [2, 3, 3706, 2**31 - 1, 2**62 + 1])
@given(epsilon=epsilons)
def test_so_it_is_for_a_large_catalog(choices, epsilon):
    """The least likely value, as the truth and as a lie."""
    lie, least = integer_coins.lies(epsilon, choices), ALL // choices
    assert 1 <= lie <= ALL
    truth = (ALL - lie) * ALL + lie * least
    assert is_within(Fraction(truth, lie * least), epsilon)


@given(st.floats(1e-6, 30), st.integers(2, 9), st.floats(0, 1))
def test_the_exact_response_is_an_account_of_this_one(epsilon, choices, place):
    """At every factor up to e^epsilon no more is beyond it than for the exact one."""
    factor = 1 + Fraction(place) * (integer_coins.growth(epsilon) - 1)
    grown = integer_coins.growth(epsilon)
    exact = (grown - factor) / (grown + choices - 1)
    table = likelihoods(epsilon, choices)
    for x in range(choices):
        y = (x + 1) % choices
        both = zip(table[x], table[y], strict=True)
        beyond = sum(max(one - factor * other, 0) for one, other in both)
        assert beyond / ALL**2 <= exact


def test_comparing_floats_is_caught():
    """What stood here before: `uniform < 1 / (e^eps + 1)`, in steps of 2^-53."""

    def in_floats(epsilon: float) -> Fraction:
        return Fraction(math.ceil(2**53 / (math.exp(epsilon) + 1)), 2**53)

    draws = np.random.default_rng(0).uniform(0.01, 1, 400)
    flip = [in_floats(float(e)) for e in draws]
    over = [not is_within((1 - q) / q, e) for q, e in zip(flip, draws, strict=True)]
    assert sum(over) > 20
