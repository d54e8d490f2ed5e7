"""The draws of a noise stream, decided anew from blocks of AES.

    block i      AES-256 of the number i, under the secret of the stream
    draw i       a sign and the binary digits of u in (0, ½): block i, then as needed
                 blocks i + 2⁶⁴, i + 2·2⁶⁴, …
    k            the whole number with |k| - ½ < -σ Φ⁻¹(u) < |k| + ½, and the sign

It shares no code with `tacit.exact_sum`, whose draws are compared with these. Every
draw is held against double precision, and some are decided by mpmath with as many
digits of u as that takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt64
from scipy.special import ndtri

_BYTES = 16  # of a block
_DIGITS = 128  # of u in a block; the first is the sign, and 0 as a digit
_AT_ONCE = 2**18  # draws: 4 MiB of blocks
_DECIDED = 100  # draws of each kind that mpmath decides: spread out, and most in doubt
_DOUBT = 1e-6  # of a step: what double precision may lose, and
_ROUNDING = 1e-12  # this share of a draw
_GUARD = 80  # binary digits beyond those of u

Whole = Int64[np.ndarray, "draws"]
Words = UInt64[np.ndarray, "blocks 2"]


@dataclass(frozen=True)
class Segment:
    """Draws of one variance that follow each other in the stream."""

    numbers: Whole
    variance: int


def foreign_draws(secret: bytes, segments: Sequence[Segment], *, first: int = 0) -> int:
    """The numbers that are not the stream's, from draw `first` on."""
    wrong = 0
    for segment in segments:
        for start in range(0, len(segment.numbers), _AT_ONCE):
            some = segment.numbers[start : start + _AT_ONCE]
            wrong += _foreign(secret, some, segment.variance, first + start)
        first += len(segment.numbers)
    return wrong


def blocks(secret: bytes, first: int, n: int = 1) -> Words:
    """The blocks from number `first` on, each as two words, the lower bytes first."""
    from cryptography.hazmat.primitives.ciphers import (  # 10 ms to load
        Cipher,
        algorithms,
        modes,
    )

    inputs = b"".join(
        number.to_bytes(_BYTES, "big") for number in range(first, first + n)
    )
    encryptor = Cipher(algorithms.AES(secret), modes.ECB()).encryptor()
    outputs = encryptor.update(inputs) + encryptor.finalize()
    return np.frombuffer(outputs, "<u8").reshape(-1, 2).astype(np.uint64)


def _foreign(secret: bytes, numbers: Whole, variance: int, first: int) -> int:
    words = blocks(secret, first, len(numbers))
    is_negative = words[:, 0] >> np.uint64(63) == 1
    words[:, 0] &= np.uint64(2**63 - 1)
    u = (words[:, 0] * 2.0**-64) + (words[:, 1] + 0.5) * 2.0**-128
    x = -np.sqrt(float(variance)) * ndtri(u)
    distances = np.abs(numbers - np.where(is_negative, -x, x))
    is_wrong = distances > 0.5 + _DOUBT + _ROUNDING * x
    spread = np.linspace(0, len(numbers) - 1, min(len(numbers), _DECIDED))
    doubted = np.argsort(-distances, kind="stable")[:_DECIDED]
    for i in {*spread.astype(int).tolist(), *doubted.tolist()}:
        number, high, low = int(numbers[i]), int(words[i, 0]), int(words[i, 1])
        draw = Draw(secret, first + i, (high << 64) + low)
        has_sign = number == 0 or (number < 0) == is_negative[i]
        is_wrong[i] = not (has_sign and draw.rounds_to(abs(number), variance))
    return int(is_wrong.sum())


class Draw:
    """The u of one draw, known to the digits read so far."""

    def __init__(self, secret: bytes, number: int, whole: int) -> None:
        self._secret, self._number = secret, number
        self._whole = whole  # u is in [whole, whole + 1) / 2^digits
        self._digits = _DIGITS

    def rounds_to(self, number: int, variance: int) -> bool:
        """Whether -σ Φ⁻¹(u) is nearest to this whole number, which is not negative."""
        is_enough = number == 0 or self._is_beyond(2 * number - 1, variance)
        return is_enough and not self._is_beyond(2 * number + 1, variance)

    def _is_beyond(self, halves: int, variance: int) -> bool:
        """Whether -σ Φ⁻¹(u) is beyond so many half steps: u below the mass there."""
        import mpmath  # 40 ms to load

        while True:
            with mpmath.workprec(self._digits + _GUARD):
                mass: Any = mpmath.ncdf(-halves / mpmath.sqrt(4 * mpmath.mpf(variance)))
                mass = mpmath.ldexp(mass, self._digits)
                slack = mpmath.ldexp(1, -_GUARD // 2)
                if self._whole + 1 < mass - slack:
                    return True
                if self._whole > mass + slack:
                    return False
            self._read_on()

    def _read_on(self) -> None:
        """Read the next digits: the draw's block of the next 2⁶⁴ blocks."""
        block = self._number + (self._digits // _DIGITS << 64)
        [[high, low]] = blocks(self._secret, block).tolist()
        self._whole = (self._whole << _DIGITS) + (high << 64) + low
        self._digits += _DIGITS
