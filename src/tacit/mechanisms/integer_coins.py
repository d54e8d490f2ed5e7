"""Coins that a client tosses, as whole numbers: never surer than epsilon allows.

A 64-bit word is below n with chance n / 2^64 exactly. What hides the truth gets the
least n for which the odds of the truth stay within a limit, and the limit is a rational
number that is not above the real one. So rounding says less, never more: not at a tiny
epsilon, and not at a huge one, where n is still 1.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

_EXACT = Context(prec=60)  # of these digits `exp` is correctly rounded
_MOST = 200.0  # e^200 > 2^128: the least chance of two words is reached before


@cache
def growth(epsilon: float) -> Fraction:
    """A rational number just below e^`epsilon`, and at least 1."""
    rounded = Decimal(min(epsilon, _MOST)).exp(_EXACT)
    return max(Fraction(rounded.next_minus(_EXACT)), Fraction(1))


def least_words(odds: Fraction, *, bits: int = 64) -> int:
    """The least n for which 2^bits - n words are at most `odds` times n words."""
    return -(-(2**bits) // (1 + odds))


@cache
def flips(epsilon: float, *, bits: int = 64) -> int:
    """How many words flip a bit: 2^bits / (e^eps + 1), rounded up."""
    return least_words(growth(epsilon), bits=bits)


@cache
def lies(epsilon: float, choices: int) -> int:
    """How many of 2^64 words replace the truth by any of `choices` values, it included.

    The rarest value is drawn by floor(2^64 / choices) words, see `Keys.integers`.
    """
    rarest = Fraction(2**64 // choices, 2**64)
    return least_words((growth(epsilon) - 1) * rarest)
