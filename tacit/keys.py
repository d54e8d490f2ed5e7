"""Where randomness comes from: counter-based streams, one for each client.

A key is 128 bits. `at("privatize")` or `at("round", 3)` derives another key; drawing reads
the key's own stream. A draw is a pure function of (key, position), so a client's numbers
never depend on who else is in the batch, and a resumed run needs no generator state.

    root = Key.from_seed(7)                        # simulation; devices use Key.from_os()
    keys = root.at("clients").each(client_numbers) # one stream a client
    keys.at("round", 3).at("privatize").normal(5)  # (clients, 5)

Two uses of one key are a bug: derive a key for each purpose.

The generator is Philox-4x64-10 (Salmon et al. 2011), vectorised over clients and tested
bit for bit against `numpy.random.Philox`. Draws use counters (block, 0, 0, 0); derivation
uses counters (number, 0, 0, 1), so no draw ever coincides with a derived key.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from jaxtyping import Float64, Int64, UInt64
from numpy.typing import ArrayLike
from scipy.special import ndtri

Words = UInt64[np.ndarray, "clients 2"]

_DRAW, _DERIVE = 0, 1
_MULTIPLY = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_BUMP = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_COMPILED_FROM = 200_000  # blocks; below this numpy is faster than loading numba


@dataclass(frozen=True)
class Key:
    """One stream: the server's, or the root that clients' keys are derived from."""

    words: UInt64[np.ndarray, "2"]

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """A reproducible key, for simulation only."""
        digest = hashlib.blake2b(f"tacit seed {seed}".encode(), digest_size=16)
        return cls(np.frombuffer(digest.digest(), np.uint64).copy())

    @classmethod
    def from_os(cls) -> Key:
        """A key from the operating system's entropy, for devices and real servers."""
        return cls(np.frombuffer(os.urandom(16), np.uint64).copy())

    def at(self, *path: str | int) -> Key:
        """The key for one purpose, such as `at("round", 3)`."""
        return Key(Keys(self.words[None]).at(*path).words[0])

    def each(self, numbers: ArrayLike) -> Keys:
        """One key for every client number."""
        n = np.asarray(numbers).astype(np.uint64)
        return Keys(np.broadcast_to(self.words, (len(n), 2))).at_each(n)

    def generator(self) -> np.random.Generator:
        """A fast sequential generator on this key, for draws no client owns."""
        return np.random.Generator(np.random.Philox(key=self.words))


@dataclass(frozen=True)
class Keys:
    """One stream a client; axis 0 of every draw is the client."""

    words: Words

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: ArrayLike | slice) -> Keys:
        index = rows if isinstance(rows, slice) else np.asarray(rows)
        return Keys(self.words[index])

    def at(self, *path: str | int) -> Keys:
        """The same clients' keys for one purpose."""
        keys = self
        for step in path:
            number = np.full(len(self), _number(step), np.uint64)
            keys = keys.at_each(number)
        return keys

    def at_each(self, numbers: UInt64[np.ndarray, "clients"]) -> Keys:
        """Derive with a number of its own for every client."""
        blocks = _philox(self.words[:, 0], self.words[:, 1], numbers, _DERIVE)
        return Keys(np.ascontiguousarray(blocks[:, :2]))

    def bits(self, n: int) -> UInt64[np.ndarray, "clients n"]:
        """64 random bits, `n` times a client."""
        per_client = -(-n // 4)
        k0 = np.repeat(self.words[:, 0], per_client)
        k1 = np.repeat(self.words[:, 1], per_client)
        block = np.tile(np.arange(per_client, dtype=np.uint64), len(self))
        return _philox(k0, k1, block, _DRAW).reshape(len(self), -1)[:, :n]

    def bits_ragged(self, counts: ArrayLike) -> UInt64[np.ndarray, "total"]:
        """As `bits`, with `counts[i]` draws for client i, end to end."""
        n = np.asarray(counts, np.int64)
        per_client = -(-n // 4)
        block = _positions(per_client).astype(np.uint64)
        k0 = np.repeat(self.words[:, 0], per_client)
        k1 = np.repeat(self.words[:, 1], per_client)
        words = _philox(k0, k1, block, _DRAW).reshape(-1)
        starts = np.cumsum(per_client * 4) - per_client * 4
        return words[np.repeat(starts, n) + _positions(n)]

    def uniform(self, n: int) -> Float64[np.ndarray, "clients n"]:
        """Uniform on [0, 1)."""
        return _unit(self.bits(n))

    def uniform_ragged(self, counts: ArrayLike) -> Float64[np.ndarray, "total"]:
        """Uniform on [0, 1), `counts[i]` draws for client i, end to end."""
        return _unit(self.bits_ragged(counts))

    def normal(self, n: int) -> Float64[np.ndarray, "clients n"]:
        """Standard normal, by inversion, so one draw is one word."""
        open_unit = ((self.bits(n) >> np.uint64(12)) + 0.5) * 2.0**-52
        return np.asarray(ndtri(open_unit))

    def integers(self, n: int, *, below: ArrayLike) -> Int64[np.ndarray, "clients n"]:
        """Integers in [0, below); `below` is one number or one a client.

        The bias of the multiply-shift method is at most below / 2**64.
        """
        limit = np.asarray(below, np.uint64).reshape(-1, 1)
        return _high_product(self.bits(n), limit).astype(np.int64)


def _number(step: str | int) -> int:
    if isinstance(step, str):
        digest = hashlib.blake2b(step.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little")
    return step


def _unit(words: UInt64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    return (words >> np.uint64(11)) * 2.0**-53


def _positions(counts: Int64[np.ndarray, "clients"]) -> Int64[np.ndarray, "total"]:
    """0, 1, … within each run: [2, 3] gives 0 1 0 1 2."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) - np.repeat(ends - counts, counts)


class _Philox(Protocol):
    def __call__(
        self,
        k0: UInt64[np.ndarray, "n"],
        k1: UInt64[np.ndarray, "n"],
        c0: UInt64[np.ndarray, "n"],
        c3: int,
        /,
    ) -> UInt64[np.ndarray, "n 4"]: ...


def _philox(
    k0: UInt64[np.ndarray, "n"],
    k1: UInt64[np.ndarray, "n"],
    c0: UInt64[np.ndarray, "n"],
    c3: int,
) -> UInt64[np.ndarray, "n 4"]:
    """A block of four words for each (key, counter), by whichever twin is faster."""
    run = _philox_compiled() if len(c0) >= _COMPILED_FROM else _philox_plain
    return run(k0, k1, c0, c3)


def _philox_plain(
    k0: UInt64[np.ndarray, "n"],
    k1: UInt64[np.ndarray, "n"],
    c0: UInt64[np.ndarray, "n"],
    c3: int,
) -> UInt64[np.ndarray, "n 4"]:
    a, b = c0, np.zeros_like(c0)
    c, d = np.zeros_like(c0), np.full_like(c0, c3)
    m0, m1 = (np.array([m], np.uint64) for m in _MULTIPLY)
    w0, w1 = (np.array([w], np.uint64) for w in _BUMP)
    for _ in range(10):
        hi0, lo0 = _high_product(a, m0), a * m0
        hi1, lo1 = _high_product(c, m1), c * m1
        a, b, c, d = hi1 ^ b ^ k0, lo1, hi0 ^ d ^ k1, lo0
        k0, k1 = k0 + w0, k1 + w1
    return np.stack([a, b, c, d], axis=-1)


def _high_product(
    x: UInt64[np.ndarray, "*any"], y: UInt64[np.ndarray, "..."]
) -> UInt64[np.ndarray, "*any"]:
    """The upper 64 bits of the 128-bit product, from 32-bit halves."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    xl, xh, yl, yh = x & mask, x >> half, y & mask, y >> half
    middle = xh * yl + (xl * yl >> half)
    other = xl * yh + (middle & mask)
    return xh * yh + (middle >> half) + (other >> half)


@cache
def _philox_compiled() -> _Philox:
    """The numba twin of `_philox_plain`; equal bit for bit."""
    from tacit.kernels.philox import philox  # loads numba

    return philox
