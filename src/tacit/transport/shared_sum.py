"""A sum whose reports nobody sees: halves for two aggregators, and noise of both.

    q   a report in whole steps, Σ q² <= L   (`tacit.exact_sum`)
    d   how many numbers it has              r   steps per unit, a power of two
    s   the seed of a half, 32 bytes         σ   deviation of one aggregator's noise

    client       1  write the report as q
                 2  draw s; the halves are stream(s) and q - stream(s), modulo 2³²
                 3  send q - stream(s) to the leader and s to the helper
    aggregator   4  add up the halves, modulo 2³²
                 5  add round(σ g) to every number, and publish the result
    everyone     6  add both arrays, read them as signed numbers, divide by r

One half alone is uniform: it says nothing about q. Whoever holds one aggregator and all
other clients knows every half but one of the user's; what the other aggregator
publishes is then q + round(σ g) and known numbers: a Gaussian release of multiplier
σ / √L. The sum of both has the noise of both, of multiplier √2 σ / √L.

A sum that passes 2³¹ would wrap around: r is so small that it does not, for as many
reports as were planned. Wrapping would spoil the result and tell nobody anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64, UInt32

from tacit.cipher import key_stream
from tacit.errors import BadMessage, Refused
from tacit.exact_sum import Noise, Steps, encode, limit, steps_per_unit
from tacit.keys import Key
from tacit.mechanisms.clipping import SLACK
from tacit.mechanisms.sum_mechanism import Bounded, GaussianMechanism, SumMechanism
from tacit.transport.messages import Layout
from tacit.tree import Array, Tree

MOST_NUMBERS = 500_000  # of a report: two megabytes are sent
_SIGNED = 2**31  # sums stay below it, so that they can be read as signed numbers
_TAILS = 12 * 1.03  # deviations of the noise for which there is room, and √L over r S
_ULPS = 1e-12  # relative; more than double precision loses on the way to σ
_AT_ONCE = 2**20  # numbers of reports that are written out at a time
_PIECE = 2**14  # numbers of a stream that are drawn at a time: 64 KiB
_WORD = np.dtype("<u4")  # a number of a half, as it is sent
_NAMES_AND_SEALS = 176  # bytes of ids, keys, seed and tags around the leader's half

LEADER, HELPER = "leader", "helper"  # the two aggregators

Numbers = UInt32[np.ndarray, "numbers"]  # whole numbers modulo 2³²


# --- What a round has agreed on -------------------------------------------------------


@dataclass(frozen=True)
class SharedSum:
    """The whole numbers of one round: what clients write, what aggregators add."""

    leaf: str
    shape: tuple[int, ...]
    bound: float  # the largest norm of a report
    steps: float  # r
    limit: int  # L, of the sum of squares of a report in steps
    sigma: int  # the deviation of each aggregator's noise, in steps
    most_reports: int  # for which there is room below 2³¹
    has_smaller: bool = False  # some clients agreed to a smaller bound of their own

    @classmethod
    def of(
        cls, mechanism: SumMechanism | None, layout: Layout, *, most_reports: int
    ) -> SharedSum:
        """The sum of a round with this mechanism; refuses what cannot be shared."""
        name, part = _only_leaf(mechanism, layout)
        shape = layout.slots[name].shape
        steps = step_size(part.bound, part.deviation, most_reports=most_reports)
        most = _limit(part, math.prod(shape), steps)
        # The noise of the sum is that of both aggregators, and their variances add.
        each = part.deviation / part.bound / math.sqrt(2.0)
        sigma = math.ceil(each * math.sqrt(most) * (1 + _ULPS))
        return cls(
            name, shape, part.bound, steps, most, sigma, most_reports, part.has_smaller
        )

    @property
    def size(self) -> int:
        """The number of numbers of a report."""
        return math.prod(self.shape)

    def encoded(self, tree: Tree) -> Steps:
        """Line 1: the report of each client in whole steps, one row per client.

        What the clients send is bounded again in double precision: rounding of single
        precision would leave some reports too long, and those count as zero.
        """
        rows = tree.leaves[self.leaf].dense().values.astype(np.float64, copy=False)
        rows = rows.reshape(len(tree), self.size)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
            if not (norms <= self.bound).all():
                rows = rows * (self.bound / np.maximum(norms, self.bound))
        if not self.has_smaller:
            return encode(rows, self.bound, steps=self.steps)
        # Towards zero, so that nobody's report passes the bound of its own group.
        sound = np.where(np.isfinite(norms), rows, 0.0)
        return np.trunc(sound * self.steps).astype(np.int64)

    def total(self, trees: Iterable[Tree]) -> tuple[Numbers, int]:
        """The sum of all reports modulo 2³², and how many there were."""
        total, n = np.zeros(self.size, np.int64), 0
        for tree in trees:
            for some in self._in_blocks(tree):
                total += self.encoded(some).sum(axis=0)
            n += len(tree)
        if n > self.most_reports:
            raise Refused(
                f"{n:,} reports, and the steps were chosen for {self.most_reports:,} "
                "at most: the sum could wrap around; plan for as many as may report"
            )
        return modulo(total), n

    def _in_blocks(self, tree: Tree) -> Iterator[Tree]:
        step = max(1, _AT_ONCE // max(1, self.size))
        for start in range(0, len(tree), step):
            yield tree.select(slice(start, start + step))

    def decoded(self, published: Iterable[Numbers]) -> dict[str, Array]:
        """Line 6: what both aggregators published, added up, in units."""
        total = np.zeros(self.size, np.uint32)
        for array in published:
            total += array
        return {self.leaf: (signed(total) / self.steps).reshape(self.shape)}


def step_size(bound: float, deviation: float, *, most_reports: int) -> float:
    """r: the largest power of two for which a sum of so many reports stays below 2³¹.

    `deviation` is that of the noise on the sum. No more than `exact_sum.MOST_STEPS`
    steps make up the bound, whatever the number of reports.

    >>> [step_size(1.0, 1.0, most_reports=n) for n in (32_000, 50_000, 100_000, 10**6)]
    [65536.0, 32768.0, 16384.0, 2048.0]
    """
    largest = most_reports * bound + _TAILS * deviation
    # 2³¹ - 1, since no number may reach 2³¹ itself.
    return min(steps_per_unit(bound), steps_per_unit(largest, most=_SIGNED - 1))


def sealed_size(layout: Layout) -> int:
    """The bytes of a report with both halves sealed, whatever it says.

    >>> from tacit.transport.messages import Slot
    >>> sealed_size(Layout({"counts": Slot("float64", (3533,))}))
    14308
    """
    n = sum(math.prod(slot.shape) for slot in layout.slots.values())
    return _NAMES_AND_SEALS + n * _WORD.itemsize


def _only_leaf(mechanism: SumMechanism | None, layout: Layout) -> tuple[str, Bounded]:
    if mechanism is None:
        raise Refused(
            "two servers add Gaussian noise to a sum of bounded reports, and these "
            "have neither noise nor bound; use privacy.mechanism = 'central', or "
            "another channel"
        )
    if not isinstance(mechanism, GaussianMechanism):
        raise Refused(
            f"{type(mechanism).__name__} has no form in whole numbers, which two "
            "servers need; use Gaussian noise, or another channel"
        )
    if len(layout.slots) != 1:
        raise Refused(
            f"two servers add up one array per round, and a report has "
            f"{len(layout.slots)}: {', '.join(layout.slots)}; use channel = "
            "'secure_sum'"
        )
    [(name, slot)] = layout.slots.items()
    if math.prod(slot.shape) > MOST_NUMBERS:
        raise Refused(
            f"'{name}' has {math.prod(slot.shape):,} numbers, and over two servers a "
            f"report has {MOST_NUMBERS:,} at most, each of which is sent; use a "
            "smaller model, or channel = 'secure_sum'"
        )
    [part] = mechanism.bounded([name])
    return name, part


def _limit(part: Bounded, n: int, steps: float) -> int:
    if part.has_smaller:  # rounded towards zero: no report grows
        return math.floor((steps * part.bound * (1 + SLACK)) ** 2)
    return limit(part.bound, n, steps=steps)


# --- Halves ---------------------------------------------------------------------------


def stream(seed: bytes, n: int) -> Numbers:
    """Line 2, the helper's half: `n` numbers of AES-256 in counter mode under the seed.

    >>> stream(bytes(range(32)), 2).tolist()
    [3053490418, 3500099882]
    """
    return from_bytes(key_stream(seed)(n * _WORD.itemsize), n)


def add_stream(total: Numbers, seed: bytes) -> None:
    """Add the helper's half of a seed to a sum, in place.

    The same numbers as `stream`, piece by piece: a large half never leaves the cache.
    """
    draw = key_stream(seed)
    for start in range(0, len(total), _PIECE):
        some = total[start : start + _PIECE]
        some += from_bytes(draw(some.nbytes), len(some))


def explicit(report: Int64[np.ndarray, "numbers"], seed: bytes) -> Numbers:
    """Line 2, the leader's half: a report in whole steps without the seed's stream."""
    return modulo(report) - stream(seed, len(report))


def modulo(whole: Int64[np.ndarray, "numbers"]) -> Numbers:
    """Whole numbers modulo 2³²."""
    return whole.astype(np.uint32)  # C's conversion: exactly the remainder


def signed(numbers: Numbers) -> Int64[np.ndarray, "numbers"]:
    """The numbers from -2³¹ to 2³¹ - 1 that have these remainders.

    >>> signed(modulo(np.array([-7, 7]))).tolist()
    [-7, 7]
    """
    return numbers.view(np.int32).astype(np.int64)


def to_bytes(numbers: Numbers) -> bytes:
    """An array as it is sent: four bytes per number, the lowest first."""
    return numbers.astype(_WORD, copy=False).tobytes()


def from_bytes(sent: bytes, n: int) -> Numbers:
    """The array of `n` numbers that was sent, to be read; refuses another length."""
    if len(sent) != n * _WORD.itemsize:
        raise BadMessage(
            f"an array of {n:,} numbers has {n * _WORD.itemsize:,} bytes; "
            f"{len(sent):,} were sent"
        )
    return np.frombuffer(sent, _WORD).astype(np.uint32, copy=False)


# --- Aggregators ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One aggregator's round: the sum of its halves, and what it publishes of it."""

    halves: Numbers
    published: Numbers


def published(halves: Numbers, *, sigma: int, seed: bytes) -> Numbers:
    """Line 5: a sum of halves with one aggregator's noise, which the seed decides."""
    return halves + modulo(Noise(seed).draw(sigma**2, len(halves)))


def play(total: Numbers, shared: SharedSum, key: Key) -> tuple[Aggregate, Aggregate]:
    """Leader and helper in a simulated round, from the sum of all reports.

    The helper's sum of streams is as uniform as one stream, so one is drawn for all:
    both arrays have the law of those that real aggregators publish, and their sum has
    the same numbers.
    """
    helper = stream(key.at("halves").secret_of(), shared.size)
    leader = total - helper
    return (
        Aggregate(leader, _noisy(leader, shared, key, LEADER)),
        Aggregate(helper, _noisy(helper, shared, key, HELPER)),
    )


def _noisy(halves: Numbers, shared: SharedSum, key: Key, role: str) -> Numbers:
    return published(halves, sigma=shared.sigma, seed=key.at(role).secret_of())
