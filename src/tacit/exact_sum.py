"""Whole numbers instead of floats: reports, their limit, and the noise on their sum.

    v   a report, no longer than its bound      r   steps per unit, a power of two
    c   r times the bound                       d   how many numbers v has
    L   the limit: a whole number               σ²  the variance of the noise, in steps

    limit    L = ⌊c² + d/4 + c + √d/2⌋
    encode   q = rint(r v), ties to even; if Σ q² > L: q = trunc(r v)
    noise    k = round(σ g), g standard normal

Truncation never lengthens, so Σ q² ≤ L for every v, exactly. Sums of whole numbers are
exact in any order, and for whole x

    x + round(σ g) = round(x + σ g)

is post-processing of the Gaussian mechanism: an event of multiplier σ / √L, with no
floating-point sum before the noise (Mironov 2012).

The draws come from AES-256 in counter mode under a seed of 32 bytes, one block each: a
sign and the first 127 binary digits of u in (0, ½), and k = round(-σ Φ⁻¹(u)). Double
precision decides almost every draw. Where it could round to the wrong side, and in the
tail, the exact comparison of u with Φ decides, and where the digits so far do not
decide it, u has more of them:

    draw i   block i of the stream, then blocks i + 2⁶⁴, i + 2·2⁶⁴, … as needed

So of random blocks k has the law of round(σ g) itself: no tail ends, no number is
missing, and no probability is rounded (docs/release.md has the proof).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, UInt64
from scipy.special import ndtri, ndtri_exp

from tacit.cipher import key_stream
from tacit.errors import BadValue, Refused

MOST_STEPS = 2**16  # r times the bound, where reports are written out
TOO_LONG = 1 + 1e-9  # times the bound; what is longer counts as zero
_DRAW_BYTES = 16  # a sign and 127 digits: one block
_AT_ONCE = 2**18  # draws: 4 MiB of cipher text
_NEAR = 1e-6  # of a half: there the exact comparison decides, and
_ROUNDING = 1e-12  # so does it within this share of a draw; ndtri is good to 1e-15
_OF_U = 2.0**-50  # and within this share of σ: u is a double, good to 2^-53 near ½
_LOUDEST = 2**48  # the least σ that is refused: a double hardly tells its draws apart
_DEEP = 2**31  # first words below it are in the tail, where u has few digits left
_LEAST_DIGITS = 64  # of u behind its leading zeros, before it tells where the draw is
_GUARD = 64  # binary digits of the exact comparison beyond those of u

Steps = Int64[np.ndarray, "clients numbers"]


def steps_per_unit(bound: float, *, most: float = MOST_STEPS) -> float:
    """r: the largest power of two with r times the bound no more than `most`.

    >>> steps_per_unit(1.0), steps_per_unit(0.7), steps_per_unit(3.0)
    (65536.0, 65536.0, 16384.0)
    """
    return 2.0 ** math.floor(math.log2(most / bound))


def limit(bound: float, n: int, *, steps: float) -> int:
    """L: what the sum of squares of `n` encoded numbers never passes.

    >>> limit(1.0, 3533, steps=65536)
    4295033744
    """
    c = steps * bound
    found = math.floor(c * c + n / 4 + c + math.sqrt(n) / 2)
    if math.sqrt(found) > 1.01 * c:
        times = math.sqrt(found) / c
        raise Refused(
            f"{n:,} numbers in steps of 1/{steps:g} would need {times:.3f} times the "
            "noise, and 1.01 times is the most; use a smaller model"
        )
    return found


def encode(
    vectors: Float64[np.ndarray, "clients numbers"], bound: float, *, steps: float
) -> Steps:
    """The whole numbers q of each client; zeros for vectors not finite or too long."""
    most = limit(bound, vectors.shape[1], steps=steps)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(vectors, axis=1)
    is_sound = norms <= bound * TOO_LONG  # false for what is not finite
    scaled = np.where(is_sound[:, None], vectors, 0.0) * steps
    nearest = np.rint(scaled).astype(np.int64)
    is_long = squares(nearest) > most
    nearest[is_long] = np.trunc(scaled[is_long]).astype(np.int64)
    return nearest


def squares(numbers: Steps) -> Int64[np.ndarray, "clients"]:
    """The exact sum of squares of each client's numbers."""
    return np.asarray(np.einsum("ij,ij->i", numbers, numbers))


class Noise:
    """The rounded normal draws of one seed, one after another."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._stream = key_stream(seed)
        self._drawn = 0

    def draw(self, variance: int, n: int) -> Int64[np.ndarray, "n"]:
        """The next `n`: round(σ g), with a variance σ² in whole steps.

        >>> Noise(bytes(range(32))).draw(1000**2, 4).tolist()
        [-482, -261, -705, 896]
        """
        if variance < 1:
            raise BadValue(f"variance={variance} must be >= 1, in steps")
        if variance >= _LOUDEST**2:
            raise BadValue(
                f"variance={variance} must be < 2^96, in steps: double precision "
                "cannot tell louder draws apart; use fewer steps per unit, or less "
                "noise"
            )
        numbers = np.empty(n, np.int64)
        for start in range(0, n, _AT_ONCE):
            some = numbers[start : start + _AT_ONCE]
            raw = self._stream(len(some) * _DRAW_BYTES)
            words = np.frombuffer(raw, "<u8").reshape(-1, 2).astype(np.uint64)
            some[:] = self._rounded(words[:, 0], words[:, 1], variance)
            self._drawn += len(some)
        return numbers

    def _rounded(
        self,
        first: UInt64[np.ndarray, "n"],
        second: UInt64[np.ndarray, "n"],
        variance: int,
    ) -> Int64[np.ndarray, "n"]:
        sigma = math.sqrt(variance)
        high = first & np.uint64(2**63 - 1)
        # Halves of 2**-64 would be lost beside a large `high`, and matter beside a
        # small one.
        u = (
            high.astype(np.float64) + (second.astype(np.float64) + 0.5) * 2.0**-64
        ) * 2**-64
        x = -sigma * ndtri(u)
        numbers, below = np.rint(x).astype(np.int64), np.floor(x)
        # More than the error of x, which comes from ndtri, σ and the rounding of u.
        error = _NEAR + _ROUNDING * x + _OF_U * sigma
        is_near = np.abs(x - below - 0.5) < error
        is_vague = (high < _DEEP) | (error >= 0.5)  # x may be off by a whole number
        for i in np.flatnonzero(is_near | is_vague):
            so_far = int(high[i]) * 2**64 + int(second[i])
            digits = _Digits(self._seed, self._drawn + int(i), so_far)
            numbers[i] = (
                digits.rounded(variance)
                if is_vague[i]
                else below[i] + digits.is_above_half(int(below[i]), variance)
            )
        return np.where(first >> np.uint64(63) == 1, -numbers, numbers)


class _Digits:
    """The binary digits of u in one draw: those of its block, and more as needed."""

    def __init__(self, seed: bytes, draw: int, so_far: int) -> None:
        self._seed, self._draw = seed, draw
        self._whole = so_far  # u is in [whole, whole + 1) / 2^digits
        self._digits = 128  # behind the point; the first is 0
        self._continued = 0

    def rounded(self, variance: int) -> int:
        """round(-σ Φ⁻¹(u)) by comparisons with Φ alone, however small u is."""
        while self._whole.bit_length() < _LEAST_DIGITS:
            self._continue()
        log_u = math.log(self._whole + 0.5) - self._digits * math.log(2.0)
        number = math.floor(-math.sqrt(variance) * float(ndtri_exp(log_u)))  # about
        while self.is_above_half(number, variance):
            number += 1
        while not self.is_above_half(number - 1, variance):
            number -= 1
        return number

    def is_above_half(self, number: int, variance: int) -> bool:
        """Whether -σ Φ⁻¹(u) is above number + ½, that is u below the tail there."""
        while True:
            # In units of 2^-(digits + guard), and less than one of them off.
            tail = _tail(number, variance, self._digits + _GUARD)
            if (self._whole + 1) << _GUARD < tail:
                return True
            if self._whole << _GUARD > tail:
                return False
            self._continue()

    def _continue(self) -> None:
        """The next 128 digits: the draw's block of the next 2⁶⁴ blocks."""
        self._continued += 1
        block = self._draw + (self._continued << 64)
        first, second = np.frombuffer(key_stream(self._seed, block)(16), "<u8").tolist()
        self._whole = (self._whole << 128) + (first << 64) + second
        self._digits += 128


def _tail(number: int, variance: int, digits: int) -> int:
    """The mass of the normal beyond (number + ½) / σ, over 2^-digits; nearly whole."""
    mpmath = _mpmath()
    with mpmath.workprec(digits + _GUARD):
        half = mpmath.mpf(2 * number + 1) / 2
        mass = mpmath.erfc(half / mpmath.sqrt(2 * mpmath.mpf(variance))) / 2
        return int(mpmath.floor(mpmath.ldexp(mass, digits)))


@cache
def _mpmath() -> Any:
    import mpmath  # 40 ms to load

    return mpmath
