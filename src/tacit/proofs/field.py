"""Prime fields: numbers that fit into five bytes, and roots of unity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from tacit.errors import BadMessage, BadValue
from tacit.kernels import prime_field as kernels

Numbers = Int64[np.ndarray, "numbers"]  # from 0 to p - 1


@dataclass(frozen=True)
class Field:
    """The whole numbers modulo a prime p below 2⁴⁰.

    >>> FIELD40.signed(FIELD40.remainders(np.array([-7, 7]))).tolist()
    [-7, 7]
    """

    modulus: int
    size: int  # bytes of a number, the lowest first
    generator: int  # of the subgroup of this order:
    order: int  # a power of two

    def __post_init__(self) -> None:
        if self.modulus >= 2**40 or self.size > 5:
            raise BadValue(
                f"modulus={self.modulus} must be below 2^40 and take five bytes at "
                "most: the kernels cut numbers into halves of 20 bits"
            )
        if pow(self.generator, self.order // 2, self.modulus) != self.modulus - 1:
            raise BadValue(
                f"generator={self.generator} does not have the order {self.order} "
                f"modulo {self.modulus}"
            )

    def root(self, n: int) -> int:
        """A root of unity of order n, a power of two."""
        if n > self.order or self.order % n:
            raise BadValue(
                f"no root of order {n:,} modulo {self.modulus}: {self.order:,} is the "
                "largest; use larger chunks"
            )
        return pow(self.generator, self.order // n, self.modulus)

    def is_root(self, t: int, n: int) -> bool:
        """Whether t is an n-th root of unity."""
        return pow(t, n, self.modulus) == 1

    def remainders(self, whole: Int64[np.ndarray, "numbers"]) -> Numbers:
        """Whole numbers modulo p."""
        return np.remainder(whole, self.modulus)

    def signed(self, numbers: Numbers) -> Int64[np.ndarray, "numbers"]:
        """The numbers nearest to zero that have these remainders."""
        return np.where(numbers > self.modulus // 2, numbers - self.modulus, numbers)

    def add(self, x: Numbers, y: Numbers) -> Numbers:
        """Number by number, modulo p."""
        out = np.empty_like(x)
        kernels.add_modulo(x, y, out, self.modulus)
        return out

    def subtract(self, x: Numbers, y: Numbers) -> Numbers:
        """Number by number, modulo p."""
        out = np.empty_like(x)
        kernels.subtract_modulo(x, y, out, self.modulus)
        return out

    def to_bytes(self, numbers: Numbers) -> bytes:
        """An array as it is sent."""
        out = np.empty(len(numbers) * self.size, np.uint8)
        kernels.pack(numbers, self.size, out)
        return out.tobytes()

    def from_bytes(self, sent: bytes | memoryview, n: int) -> Numbers:
        """The array that was sent; refuses another length, and numbers from p on."""
        if len(sent) != n * self.size:
            raise BadMessage(
                f"{n:,} numbers have {n * self.size:,} bytes; {len(sent):,} were sent"
            )
        numbers = self.below(sent, mask=-1)
        if len(numbers) < n:
            raise BadMessage(
                f"{n - len(numbers):,} of {n:,} numbers are not below {self.modulus}"
            )
        return numbers

    def below(self, raw: bytes | memoryview, *, mask: int | None = None) -> Numbers:
        """The numbers below p among those in the bytes, cut to the bits of p."""
        out = np.empty(len(raw) // self.size, np.int64)
        bits = (1 << self.modulus.bit_length()) - 1 if mask is None else mask
        array = np.frombuffer(raw, np.uint8)
        count = kernels.unpack(array, self.size, bits, out, self.modulus)
        return out[:count]


FIELD32 = Field(4293918721, 4, 3925978153, 2**20)
FIELD40 = Field(2**20 * 1048555 + 1, 5, pow(7, 1048555, 2**20 * 1048555 + 1), 2**20)
