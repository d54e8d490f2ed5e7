"""Where randomness comes from: counter-based streams, one for each client.

A key is 128 bits. `at("privatize")` or `at("round", 3)` derives another key; drawing
reads the key's own stream. A draw is a pure function of (key, position), so a client's
numbers never depend on who else is in the batch, and a resumed run needs no generator
state.

    root = Key.from_seed(7)                         # simulation
    root = Key.from_os()                            # clients, releases
    keys = root.at("clients").each(client_numbers)  # one stream per client
    keys.at("round", 3).at("privatize").normal(5)   # (clients, 5)

Two uses of one key are a bug: derive a key for each purpose.

Of a seed the generator is Philox-4x64-10 (Salmon et al. 2011), vectorised over clients
and tested bit for bit against `numpy.random.Philox`. Draws use counters (block, 0, 0,
0); derivation uses counters (number, 0, 0, 1), so no draw ever coincides with a derived
key. Philox passes every statistical test but is no cipher: nobody has shown that its
key cannot be found from its output.

Of the operating system's secret it is AES-256. Every key below one root shares the
secret; a block is AES(AES(key) xor (counter, domain)), the CBC-MAC of two blocks, which
is a pseudorandom function of key and counter (Bellare, Kilian and Rogaway 2000).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from jaxtyping import Float64, Int64, Shaped, UInt64
from numpy.typing import ArrayLike
from scipy.special import ndtri

from tacit import arrays, cipher
from tacit.errors import BadValue
from tacit.kernels import dispatch

Words = UInt64[np.ndarray, "clients 2"]
Counters = UInt64[np.ndarray, "clients"]
Blocks = UInt64[np.ndarray, "clients blocks 4"]

_DRAW, _DERIVE = 0, 1  # domains: a draw never equals a derived key
# Salmon et al. 2011, as in Random123 and numpy.
_MULTIPLY = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_BUMP = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_blocks_so_far = 0  # asked for so far; both twins make the same


@dataclass(frozen=True, eq=False)
class Key:
    """One stream: the server's, or the root that clients' keys are derived from."""

    words: UInt64[np.ndarray, "2"] = field(repr=False)  # a secret; logs are not
    secret: bytes | None = field(default=None, repr=False)  # of AES; None: Philox

    def __post_init__(self) -> None:
        _check_words(self.words, (2,))
        if self.secret is not None:
            cipher.check_secret(self.secret)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Key) or self.secret != other.secret:
            return False
        return np.array_equal(self.words, other.words)

    def __hash__(self) -> int:
        return hash((self.words.tobytes(), self.secret))

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """A reproducible key, for simulation only."""
        number = arrays.integer(seed, "seed", least=-(2**63), below=2**64)
        # Hashed, so that seeds 1, 2, 3 … do not give related keys.
        text = f"tacit seed {number}".encode()
        raw = hashlib.blake2b(text, digest_size=16).digest()
        return cls(np.frombuffer(raw, "<u8").astype(np.uint64))

    @classmethod
    def from_os(cls) -> Key:
        """A key from the operating system's entropy, for clients and releases."""
        return cls.from_secret(os.urandom(cipher.SECRET_BYTES))

    @classmethod
    def from_secret(cls, secret: bytes) -> Key:
        """A key whose draws are a cipher's, from 32 bytes that nobody else has."""
        return cls(np.zeros(2, np.uint64), secret)

    def at(self, *path: str | int) -> Key:
        """The key for one purpose, such as `at("round", 3)`."""
        return Key(self.alone().at(*path).words[0], self.secret)

    def each(self, numbers: ArrayLike) -> Keys:
        """One key for every client number; client 7's is `at(7)`."""
        n = arrays.integers(numbers, "client numbers", below=2**64)
        return Keys(np.broadcast_to(self.words, (len(n), 2)), self.secret).at_each(n)

    def permutation(self, n: int) -> Int64[np.ndarray, "n"]:
        """A random order of 0 … n - 1: that of one draw for each."""
        return np.argsort(self.alone().bits(n)[0], kind="stable")

    def generator(self) -> np.random.Generator:
        """A fast sequential generator on this key, for draws that hide nothing."""
        words = self.words if self.secret is None else self.alone().bits(2)[0]
        return np.random.Generator(np.random.Philox(key=words))

    def secret_of(self) -> bytes:
        """32 bytes that follow from this key: a secret for one purpose."""
        return self.alone().bits(4).astype("<u8").tobytes()

    def alone(self) -> Keys:
        """The same key as that of a single client."""
        return Keys(self.words[None], self.secret)


@dataclass(frozen=True, eq=False)
class Keys:
    """One stream per client; axis 0 of every draw is the client."""

    words: Words = field(repr=False)
    secret: bytes | None = field(default=None, repr=False)  # of AES; None: Philox

    def __post_init__(self) -> None:
        _check_words(self.words, (len(self.words), 2))

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: ArrayLike | slice) -> Keys:
        index = rows if isinstance(rows, slice) else arrays.rows(rows, len(self))
        return Keys(self.words[index], self.secret)

    def at(self, *path: str | int) -> Keys:
        """The same clients' keys for one purpose."""
        keys = self
        for step in path:
            keys = keys.at_each(np.full(len(self), _number(step), np.uint64))
        return keys

    def at_each(self, numbers: ArrayLike) -> Keys:
        """Derive with a number of its own for every client."""
        n = _one_each(arrays.integers(numbers, "numbers", below=2**64), len(self))
        blocks = self._blocks(n.astype(np.uint64), 1, _DERIVE)
        return Keys(np.ascontiguousarray(blocks[:, 0, :2]), self.secret)

    def bits(self, n: int) -> UInt64[np.ndarray, "clients n"]:
        """Words of 64 random bits, `n` per client."""
        n = arrays.integer(n, "n", below=2**40)
        blocks = -(-n // 4)
        made = self._blocks(np.zeros(len(self), np.uint64), blocks, _DRAW)
        return made.reshape(len(self), blocks * 4)[:, :n]

    def bits_ragged(self, counts: ArrayLike) -> UInt64[np.ndarray, "total"]:
        """As `bits`, with `counts[i]` draws for client i, end to end."""
        n = _one_each(arrays.integers(counts, "counts", below=2**40), len(self))
        n = n.astype(np.int64)
        blocks = -(-n // 4)
        keys = Keys(np.repeat(self.words, blocks, axis=0), self.secret)
        words = keys._blocks(_positions(blocks).astype(np.uint64), 1, _DRAW).ravel()
        starts = np.cumsum(blocks * 4) - blocks * 4
        return words[np.repeat(starts, n) + _positions(n)]

    def uniform(self, n: int) -> Float64[np.ndarray, "clients n"]:
        """Uniform on [0, 1), in steps of 2**-53."""
        return _unit(self.bits(n))

    def uniform_ragged(self, counts: ArrayLike) -> Float64[np.ndarray, "total"]:
        """Uniform on [0, 1), `counts[i]` draws for client i, end to end."""
        return _unit(self.bits_ragged(counts))

    def normal(self, n: int) -> Float64[np.ndarray, "clients n"]:
        """Standard normal, by inversion, so one draw is one word.

        Nothing lies beyond ±8.21, where the normal has 2**-52 of its mass.
        """
        # Centers of 2**52 cells: never 0 or 1, whose quantiles are infinite.
        open_unit = ((self.bits(n) >> np.uint64(12)) + 0.5) * 2.0**-52
        return np.asarray(ndtri(open_unit))

    def integers(
        self, n: int, *, below: int | ArrayLike
    ) -> Int64[np.ndarray, "clients n"]:
        """Integers in [0, below); `below` is one number or one per client.

        By multiply-shift: a value's probability is off by less than 2**-64.
        """
        limit = arrays.integers(
            np.atleast_1d(below), "below", least=1, below=2**63 + 1
        ).astype(np.uint64)
        limit = limit if np.ndim(below) == 0 else _one_each(limit, len(self))
        return _high_product(self.bits(n), limit[:, None]).astype(np.int64)

    def _blocks(self, first: Counters, n: int, domain: int) -> Blocks:
        """Blocks at counters `first` and the `n` - 1 after, for each key."""
        if self.secret is None:
            return _philox(self.words, first, n, domain)
        return _aes(self.words, first, n, domain, secret=self.secret)


def _check_words(words: UInt64[np.ndarray, "..."], shape: tuple[int, ...]) -> None:
    if words.dtype != np.uint64 or words.shape != shape:
        raise BadValue(
            f"key words are {words.dtype} of shape {words.shape}; "
            f"needed is uint64 of shape {shape}"
        )


def _one_each(
    numbers: Shaped[np.ndarray, "n"], clients: int
) -> Shaped[np.ndarray, "n"]:
    if len(numbers) != clients:
        raise BadValue(f"{len(numbers)} numbers for {clients} clients; give one each")
    return numbers


def _number(step: str | int) -> int:
    if isinstance(step, str):
        digest = hashlib.blake2b(step.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little")
    return arrays.integer(step, "step", below=2**64)


def _unit(words: UInt64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    return (words >> np.uint64(11)) * 2.0**-53  # as many bits as a float64 has


def _positions(counts: Int64[np.ndarray, "clients"]) -> Int64[np.ndarray, "total"]:
    """0, 1, … within each run: [2, 3] gives 0 1 0 1 2."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) - np.repeat(ends - counts, counts)


def _philox(words: Words, first: Counters, n: int, domain: int) -> Blocks:
    """Blocks at counters (first, 0, 0, domain) and the `n` - 1 after, for each key."""
    if _is_compiled_worth(len(words) * n):
        return _philox_compiled()(np.ascontiguousarray(words), first, n, domain)
    return _philox_plain(words, first, n, domain)


def _is_compiled_worth(blocks: int) -> bool:
    """Whether loading numba pays: it is loaded already, or many blocks were made."""
    global _blocks_so_far
    _blocks_so_far += blocks
    return dispatch.pays("philox.philox", _blocks_so_far)


def _aes(
    words: Words, first: Counters, n: int, domain: int, *, secret: bytes
) -> Blocks:
    """As `_philox`: four words are two blocks of the cipher."""
    inputs = np.empty((len(words), n, 2, 2), np.uint64)
    inputs[..., 0] = (first[:, None] + np.arange(n, dtype=np.uint64))[:, :, None]
    inputs[..., 1] = np.array([2 * domain, 2 * domain + 1], np.uint64)
    inputs ^= cipher.blocks(secret, words)[:, None, None, :]
    return cipher.blocks(secret, inputs.reshape(-1, 2)).reshape(len(words), n, 4)


def _philox_plain(words: Words, first: Counters, n: int, domain: int) -> Blocks:
    a = first[:, None] + np.arange(n, dtype=np.uint64)
    b, c, d = np.zeros_like(a), np.zeros_like(a), np.full_like(a, domain)
    k0, k1 = words[:, :1], words[:, 1:]
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
def _philox_compiled() -> Callable[[Words, Counters, int, int], Blocks]:
    """The numba twin of `_philox_plain`; equal bit for bit."""
    from tacit.kernels.philox import philox  # loads numba

    return philox
