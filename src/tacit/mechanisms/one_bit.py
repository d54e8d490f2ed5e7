"""One-bit reports: a few random coordinates of a vector, one randomised bit each.

A coordinate x in [-1, 1] becomes a bit with the usual

    Pr[1] = (x (e^eps - 1) + e^eps + 1) / (2 e^eps + 2)

kept within [f, 1 - f], f the least multiple of 2^-32 that is not below 1 / (e^eps + 1).
A draw is a multiple of 2^-32 too, so that neither bit is ever rarer than f, whatever
was rounded on the way: the ratio of two chances is at most e^eps. Which coordinates are
reported is drawn without looking at the vector; a bias of those draws is the same for
all vectors and cancels. The server reads a bit as ±(d/k) (e^eps + 1) / (e^eps - 1):
with k *distinct* coordinates of d, a coordinate is reported with chance k/d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64, UInt8

from tacit import check
from tacit.errors import BadValue
from tacit.kernels import dispatch
from tacit.keys import Keys
from tacit.mechanisms import integer_coins

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

# Per bit: least variance for a total, where e coth²(e/2) is least.
BEST_EPSILON = 2.1773
_STEP = 2.0**-32  # of a draw: half a word

Coordinates = Int32[np.ndarray, "clients count"]
Values = Float[np.ndarray, "clients count"]


@dataclass(frozen=True, eq=False)
class Bits:
    """Which coordinates were looked at, and what was said; a row is a client.

    A shuffler may cut rows into messages of one column each.
    """

    coordinates: Coordinates
    bits: UInt8[np.ndarray, "clients count"]

    def __len__(self) -> int:
        return len(self.coordinates)


@dataclass(frozen=True)
class OneBit:
    """Reports `count` random coordinates of a vector, one randomised bit each.

    Guarantee: `count * epsilon` pure local DP for the whole vector, in every view.
    Assumes: nothing of the vector; coordinates are clipped to [-1, 1], NaN counts as 0.
    Source: Nguyên et al. 2016; Minto et al. 2021, Algorithm 1, with distinct
        coordinates and the scale d/k that makes `count` bits unbiased.
    """

    epsilon: float  # for each bit
    dimension: int
    count: int

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.count(dimension=self.dimension, count=self.count)
        if self.count > self.dimension or self.dimension >= 2**31:
            raise BadValue(
                f"count={self.count} and dimension={self.dimension} must be "
                "count <= dimension < 2**31; coordinates of a report are distinct"
            )

    @property
    def total_epsilon(self) -> float:
        """The pure epsilon of one report of `count` bits."""
        return self.count * self.epsilon

    @property
    def event(self) -> DpEvent:
        """The event of one report: `count` randomised responses."""
        from tacit.accounting.dp_events import SelfComposedDpEvent
        from tacit.accounting.events import pure_local

        return SelfComposedDpEvent(pure_local(self.epsilon), self.count)

    @property
    def scale(self) -> float:
        """What a bit of 1 counts for in the estimate; a 0 counts the negative."""
        return self.dimension / self.count / math.tanh(self.epsilon / 2)

    def variance(self, value: float = 0.0) -> float:
        """The variance of one client's contribution to a coordinate of this value."""
        # ±scale with chance count / dimension, else 0
        second_moment = self.scale**2 * self.count / self.dimension
        return second_moment - value**2

    def privatize(
        self, values: Float[np.ndarray, "clients dimension"], keys: Keys
    ) -> Bits:
        """One report per client, from whole vectors."""
        if values.shape != (len(keys), self.dimension):
            raise BadValue(
                f"values of shape {values.shape}; needed is one vector of "
                f"{self.dimension} for each of {len(keys)} clients"
            )
        return self.privatize_from(lambda at: np.take_along_axis(values, at, 1), keys)

    def privatize_from(
        self, values_at: Callable[[Coordinates], Values], keys: Keys
    ) -> Bits:
        """As `privatize`, computing only the coordinates that are reported."""
        at = distinct(keys.at("coordinates"), self.count, below=self.dimension)
        return Bits(at, randomized_bits(values_at(at), keys, epsilon=self.epsilon))

    def total(self, reports: Bits) -> Float64[np.ndarray, "dimension"]:
        """The sum of the clients' vectors, unbiased; sums of batches may be added."""
        signs = reports.bits.ravel() * 2.0 - 1.0
        where = reports.coordinates.ravel()
        return self.scale * np.bincount(where, signs, minlength=self.dimension)

    def estimate(
        self, reports: Bits, *, clients: int | None = None
    ) -> Float64[np.ndarray, "dimension"]:
        """The mean vector, unbiased; give `clients` if reports were cut into bits."""
        n = len(reports) if clients is None else clients
        check.count(clients=n)
        return self.total(reports) / n


def randomized_bits(
    values: Values, keys: Keys, *, epsilon: float, bound: float = 1.0
) -> UInt8[np.ndarray, "clients count"]:
    """One bit for each value, clipped to ±`bound`; NaN counts as 0."""
    if len(values) != len(keys):
        raise BadValue(f"values of {len(values)} clients for {len(keys)} keys")
    own, exact = keys.at("bit"), np.ascontiguousarray(values, np.float64)
    least = integer_coins.flips(epsilon, bits=32) * _STEP
    is_large = dispatch.pays("one_bit.bits", exact.size)
    if keys.secret is not None or not is_large:  # compiled is Philox
        return _bits_plain(own, exact, bound, least)
    from tacit.kernels.one_bit import bits  # loads numba

    out = np.empty(exact.shape, np.uint8)
    bits(np.ascontiguousarray(own.words), exact, float(bound), least, out)
    return out


def _bits_plain(
    keys: Keys, values: Values, bound: float, least: float
) -> UInt8[np.ndarray, "clients count"]:
    """The twin of the compiled one; equal bit for bit."""
    with np.errstate(invalid="ignore", over="ignore"):  # no slope, or a steep one
        none = 0.5 - values * ((0.5 - least) / bound)
    none = np.clip(np.where(np.isnan(none), 0.5, none), least, 1.0 - least)
    return (_units(keys, values.shape[1]) >= none).astype(np.uint8)


def one_of_each(
    keys: Keys,
    starts: Int64[np.ndarray, "count"],
    sizes: Int64[np.ndarray, "count"],
) -> Coordinates:
    """For each client, one of `sizes[j]` numbers from `starts[j]` on, for every j.

    A number's chance is off by less than 2**-32.
    """
    is_large = dispatch.pays("one_bit.places", len(keys) * len(sizes))
    if keys.secret is not None or not is_large:
        return _places_plain(keys, starts, sizes)
    from tacit.kernels.one_bit import places  # loads numba

    out = np.empty((len(keys), len(sizes)), np.int32)
    places(np.ascontiguousarray(keys.words), starts, sizes, out)
    return out


def _places_plain(
    keys: Keys,
    starts: Int64[np.ndarray, "count"],
    sizes: Int64[np.ndarray, "count"],
) -> Coordinates:
    """The twin of the compiled one; equal number for number."""
    drawn = (_units(keys, len(sizes)) * sizes).astype(np.int64)
    return (starts + drawn).astype(np.int32)


def _units(keys: Keys, n: int) -> Float64[np.ndarray, "clients n"]:
    """Uniform on [0, 1) in steps of 2**-32, two per word, the lower half first."""
    words = keys.bits(-(-n // 2))
    halves = words & np.uint64(2**32 - 1), words >> np.uint64(32)
    return np.stack(halves, axis=2).reshape(len(keys), -1)[:, :n] * _STEP


def distinct(keys: Keys, count: int, *, below: int) -> Coordinates:
    """`count` different numbers in [0, below) per client, every set equally likely.

    By Floyd's algorithm: memory for the answer only, count²/2 comparisons per client.
    A draw's chances are off by less than 2**-53.
    """
    draws = np.ascontiguousarray(keys.uniform(count).T)
    chosen = np.empty((count, len(keys)), np.int32)
    for i in range(count):
        last = below - count + i
        drawn = (draws[i] * (last + 1)).astype(np.int32)
        taken = (chosen[:i] == drawn).any(axis=0)
        chosen[i] = np.where(taken, last, drawn)
    return np.ascontiguousarray(chosen.T)
