"""One-bit reports: a few random coordinates of a vector, one randomised bit each.

A coordinate x in [-1, 1] becomes a bit in two steps: rounded to 0 or 1 without bias,
then flipped with chance 1 / (e^eps + 1). Together that is the usual

    Pr[1] = (x (e^eps - 1) + e^eps + 1) / (2 e^eps + 2)

and, unlike the formula, it never rounds the chance of a flip down to zero. The server
reads a bit as ±(d/k) (e^eps + 1) / (e^eps - 1): with k *distinct* coordinates of d, a
coordinate is reported with chance k/d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64, Int32, UInt8

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Keys

if TYPE_CHECKING:
    from dp_accounting import DpEvent

BEST_EPSILON = 2.1773  # a bit; least variance for a given total (smallest e coth²(e/2))
_STEP = 2.0**-53

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
        """What one report of `count` bits costs, at delta 0."""
        return self.count * self.epsilon

    @property
    def event(self) -> DpEvent:
        """What one report costs its sender."""
        from dp_accounting import SelfComposedDpEvent

        from tacit.accounting.events import pure_local

        return SelfComposedDpEvent(pure_local(self.epsilon), self.count)

    @property
    def scale(self) -> float:
        """What a bit of 1 counts for in the estimate; a 0 counts the negative."""
        return self.dimension / self.count / math.tanh(self.epsilon / 2)

    def variance(self, value: float = 0.0) -> float:
        """The variance of one client's contribution to a coordinate of this value."""
        second_moment = self.scale**2 * self.count / self.dimension
        return second_moment - value**2

    def privatize(
        self, values: Float[np.ndarray, "clients dimension"], keys: Keys
    ) -> Bits:
        """One report a client, from vectors that are there as a whole."""
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
    values: Values, keys: Keys, *, epsilon: float
) -> UInt8[np.ndarray, "clients count"]:
    """One bit for each value: rounded without bias, then flipped now and then."""
    clients, count = values.shape
    if clients != len(keys):
        raise BadValue(f"values of {clients} clients for {len(keys)} keys")
    known = np.nan_to_num(np.clip(values.astype(np.float64), -1.0, 1.0), nan=0.0)
    bits = keys.at("round").uniform(count) < (1.0 + known) / 2
    flip = max(1.0 / (math.exp(min(epsilon, 700.0)) + 1.0), _STEP)
    return (bits ^ (keys.at("flip").uniform(count) < flip)).astype(np.uint8)


def distinct(keys: Keys, count: int, *, below: int) -> Coordinates:
    """`count` different numbers in [0, below) a client; every set is equally likely.

    By Floyd's algorithm: memory for the answer only, count²/2 comparisons a client.
    """
    draws = np.ascontiguousarray(keys.uniform(count).T)
    chosen = np.empty((count, len(keys)), np.int32)
    for i in range(count):
        last = below - count + i
        drawn = (draws[i] * (last + 1)).astype(np.int32)
        taken = (chosen[:i] == drawn).any(axis=0)
        chosen[i] = np.where(taken, last, drawn)
    return np.ascontiguousarray(chosen.T)
