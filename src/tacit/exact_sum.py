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

The draws come from AES-256 in counter mode under a seed of 32 bytes, 16 bytes each: a
sign and u in (0, ½) of 127 bits, and k = round(-σ Φ⁻¹(u)). Where double precision could
round to the wrong side, the exact comparison of u with Φ decides. The distance to the
ideal law is below (26 σ + 1) 2⁻¹²⁷ per number.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, UInt64
from scipy.special import ndtri

from tacit.cipher import key_stream
from tacit.errors import BadValue, Refused

MOST_STEPS = 2**16  # r times the bound, where reports are written out
TOO_LONG = 1 + 1e-9  # times the bound; what is longer counts as zero
_DRAW_BYTES = 16  # a sign and 127 bits
_AT_ONCE = 2**18  # draws: 4 MiB of cipher text
_NEAR = 1e-6  # of a half: there the exact comparison decides, and
_ROUNDING = 1e-12  # so does it within this share of a draw; ndtri is good to 1e-15
_DIGITS = 60  # of the exact comparison; u itself has 39

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
        self._stream = key_stream(seed)

    def draw(self, variance: int, n: int) -> Int64[np.ndarray, "n"]:
        """The next `n`: round(σ g), with a variance σ² in whole steps.

        >>> Noise(bytes(range(32))).draw(1000**2, 4).tolist()
        [-482, -261, -705, 896]
        """
        if variance < 1:
            raise BadValue(f"variance={variance} must be >= 1, in steps")
        found = np.empty(n, np.int64)
        for start in range(0, n, _AT_ONCE):
            some = found[start : start + _AT_ONCE]
            raw = self._stream(len(some) * _DRAW_BYTES)
            words = np.frombuffer(raw, "<u8").reshape(-1, 2).astype(np.uint64)
            some[:] = _rounded(words[:, 0], words[:, 1], variance)
        return found


def _rounded(
    first: UInt64[np.ndarray, "n"], second: UInt64[np.ndarray, "n"], variance: int
) -> Int64[np.ndarray, "n"]:
    sigma = math.sqrt(variance)
    high = first & np.uint64(2**63 - 1)
    # Halves of 2**-64 would be lost beside a large `high`, and matter beside a small.
    u = (
        high.astype(np.float64) + (second.astype(np.float64) + 0.5) * 2.0**-64
    ) * 2**-64
    x = -sigma * ndtri(u)
    k = np.rint(x).astype(np.int64)
    below = np.floor(x)
    is_near = np.abs(x - below - 0.5) < _NEAR + _ROUNDING * x
    for i in np.flatnonzero(is_near):
        whole = int(below[i])
        exact = 2 * (int(high[i]) * 2**64 + int(second[i])) + 1  # u times 2¹²⁹
        k[i] = whole + _is_above_half(exact, whole, variance)
    return np.where(first >> np.uint64(63) == 1, -k, k)


def _is_above_half(exact: int, whole: int, variance: int) -> bool:
    """Whether -σ Φ⁻¹(exact / 2¹²⁹) is above whole + ½, decided with 60 digits."""
    mpmath = _mpmath()
    with mpmath.workdps(_DIGITS):
        half = mpmath.mpf(2 * whole + 1) / 2
        tail = mpmath.erfc(half / mpmath.sqrt(2 * mpmath.mpf(variance))) / 2
        return bool(mpmath.mpf(exact) / mpmath.mpf(2) ** 129 < tail)


@cache
def _mpmath() -> Any:
    import mpmath  # 40 ms to load

    return mpmath
