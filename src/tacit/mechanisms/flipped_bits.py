"""Flipped bits: every bit of a row is reported, each flipped with a known chance.

    q = 1 / (e^eps + 1)                        the chance that a bit is flipped
    s, S                                       how often a 1, and two of them, are said
    c = (s - n q) / (1 - 2q)                   how many of n rows have the bit
    C = (S - q s - q sᵀ + n q²) / (1 - 2q)²    how many have both of two bits

Rows travel packed, eight bits per byte. Both estimates are unbiased: bits of a row are
flipped independently. q is rounded up to what a random word can have (`integer_coins`):
the odds (1 - q) / q are at most e^eps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64, Num, UInt8

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms import integer_coins

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

_DRAWS_AT_ONCE = 2**22  # random words: 32 MiB

Packed = UInt8[np.ndarray, "clients bytes"]


@dataclass(frozen=True)
class FlippedBits:
    """Reports every bit of a row of `dimension`, each by randomised response.

    Guarantee: `epsilon` pure local DP for one bit; `dimension * epsilon` for the row,
    which is what a user's whole history is.
    Assumes: nothing of the row.
    Source: Warner 1965; Gao et al. 2020 for histories.
    """

    epsilon: float  # of one bit
    dimension: int

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.count(dimension=self.dimension)

    @property
    def total_epsilon(self) -> float:
        """The pure epsilon of one whole row."""
        return self.dimension * self.epsilon

    @property
    def event(self) -> DpEvent:
        """The event of one row: `dimension` randomised responses."""
        from tacit.accounting.dp_events import SelfComposedDpEvent
        from tacit.accounting.events import pure_local

        return SelfComposedDpEvent(pure_local(self.epsilon), self.dimension)

    @property
    def flip(self) -> float:
        """The chance q that a bit is flipped, a multiple of 2^-64."""
        return integer_coins.flips(self.epsilon) / 2**64

    def privatize(self, rows: Packed, keys: Keys) -> Packed:
        """One flipped row per client; draws do not depend on who else is there."""
        if rows.shape != (len(keys), packed_size(self.dimension)):
            raise BadValue(
                f"rows of shape {rows.shape}; needed are {packed_size(self.dimension)} "
                f"bytes for each of {len(keys)} clients"
            )
        out, flipping = (
            np.empty_like(rows),
            np.uint64(integer_coins.flips(self.epsilon)),
        )
        step = max(1, _DRAWS_AT_ONCE // self.dimension)
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            # One word per bit: its chance is exact, whatever epsilon is.
            flips = keys[some].bits(self.dimension) < flipping
            out[some] = rows[some] ^ np.packbits(flips, axis=1)
        return out

    def counts(
        self, said: Num[np.ndarray, "dimension"], *, rows: float
    ) -> Float64[np.ndarray, "dimension"]:
        """How many of `rows` rows have each bit: unbiased, may be negative."""
        return (said - rows * self.flip) / (1 - 2 * self.flip)

    def pairs(
        self,
        said: Num[np.ndarray, "some dimension"],
        *,
        one: Num[np.ndarray, "some"],
        other: Num[np.ndarray, "dimension"],
        rows: float,
    ) -> Float[np.ndarray, "some dimension"]:
        """How many rows have both of two different bits: unbiased, may be negative.

        `said` is how often both were reported, `one` and `other` how often each was.
        """
        q = self.flip
        both = said - q * np.add.outer(one, other) + rows * q**2
        both /= (1 - 2 * q) ** 2
        return both

    def pair_deviation(self, rows: float) -> float:
        """The standard deviation of `pairs` where no row has both bits."""
        q = self.flip
        return math.sqrt(rows) * q * (1 - q) / (1 - 2 * q) ** 2


def packed_size(dimension: int) -> int:
    """The number of bytes that hold a row of `dimension` bits."""
    return -(-dimension // 8)
