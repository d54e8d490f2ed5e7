"""One-bit reports spread evenly: one random coordinate of each part of a vector.

The vector is cut into `count` parts of equal size, give or take one. Of each part one
coordinate is drawn and becomes a randomised bit (`one_bit`). The server reads a bit as
±size (e^eps + 1) / (e^eps - 1), size the number of coordinates in its part: d/k.

Coordinates are distinct, and unlike those of `OneBit` they are drawn independently of
each other. So the j-th bits of n users are n reports from one randomizer that looks at
nothing else, and the bits of different parts are independent given the vector: a
shuffler that mixes all bits mixes `count` independent batches of n, and each is
amplified as a batch of n. For coordinates drawn without replacement that is not known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64, Int64

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms.one_bit import (
    Bits,
    Coordinates,
    one_of_each,
    randomized_bits,
)

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True)
class SpreadBits:
    """Reports one random coordinate of each of `count` parts, one randomised bit each.

    Guarantee: `count * epsilon` pure local DP for the whole vector, in every view; each
        bit alone is `epsilon`, and bits are independent given the vector.
    Assumes: nothing of the vector; coordinates are clipped to [-1, 1], NaN counts as 0.
    Source: Minto et al. 2021, Algorithm 1, with parts in place of repeated draws.
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
                "count <= dimension < 2**31; every part has a coordinate"
            )

    @property
    def event(self) -> DpEvent:
        """The event of one report: `count` randomised responses."""
        from tacit.accounting.dp_events import SelfComposedDpEvent
        from tacit.accounting.events import pure_local

        return SelfComposedDpEvent(pure_local(self.epsilon), self.count)

    @property
    def bounds(self) -> Int64[np.ndarray, "count_and_one"]:
        """The first coordinate of each part, and the dimension at the end."""
        return np.arange(self.count + 1) * self.dimension // self.count

    @property
    def scales(self) -> Float64[np.ndarray, "dimension"]:
        """What a bit of 1 counts for at each coordinate; a 0 counts the negative."""
        sizes = np.diff(self.bounds)
        return np.repeat(sizes, sizes) / math.tanh(self.epsilon / 2)

    def variance(self, value: float = 0.0) -> float:
        """The variance of one client's contribution to a coordinate, on average."""
        sizes = np.diff(self.bounds)
        # In a part of s coordinates one is drawn: ±s coth(ε/2) with chance 1/s.
        spread = (sizes**2).sum() / self.dimension / math.tanh(self.epsilon / 2) ** 2
        return float(spread - value**2)

    def coordinates(self, keys: Keys) -> Coordinates:
        """Which coordinates clients report; no data is looked at."""
        starts, sizes = self.bounds[:-1], np.diff(self.bounds)
        return one_of_each(keys.at("coordinates"), starts, sizes)

    def privatize(
        self, values: Float[np.ndarray, "clients dimension"], keys: Keys
    ) -> Bits:
        """One report per client, from whole vectors."""
        if values.shape != (len(keys), self.dimension):
            raise BadValue(
                f"values of shape {values.shape}; needed is one vector of "
                f"{self.dimension} for each of {len(keys)} clients"
            )
        at = self.coordinates(keys)
        chosen = np.take_along_axis(values, at, 1)
        return Bits(at, randomized_bits(chosen, keys, epsilon=self.epsilon))

    def total(self, reports: Bits) -> Float64[np.ndarray, "dimension"]:
        """The sum of the clients' vectors, unbiased; sums of batches may be added."""
        signs = reports.bits.ravel() * 2.0 - 1.0
        where = reports.coordinates.ravel()
        return self.scales * np.bincount(where, signs, minlength=self.dimension)
