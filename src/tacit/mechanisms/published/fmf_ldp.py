"""FMF-LDP (Minto et al. 2021): one-bit reports, as printed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64

from tacit import check
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
class PublishedBits:
    """FMF-LDP's reports: `count` coordinates with replacement, each scaled by d.

    Guarantee: `count * epsilon` pure local DP per report, as `OneBit`; that of a run is
    `epochs` times as much. The estimate is `count` times the mean vector.
    Source: Minto et al. 2021, Algorithms 1 and 2, Equation 9.
    """

    epsilon: float
    dimension: int
    count: int

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.count(dimension=self.dimension, count=self.count)

    @property
    def event(self) -> DpEvent:
        """The event of one report: `count` randomised responses."""
        from tacit.accounting.dp_events import SelfComposedDpEvent
        from tacit.accounting.events import pure_local

        return SelfComposedDpEvent(pure_local(self.epsilon), self.count)

    def total_epsilon(self, *, epochs: int = 1) -> float:
        """What a run of `epochs` reports costs, at delta 0."""
        check.count(epochs=epochs)
        return self.epsilon * self.count * epochs

    @property
    def scale(self) -> float:
        """B of Equation 8: what a bit of 1 counts for."""
        return self.dimension / math.tanh(self.epsilon / 2)  # d (e^ε + 1) / (e^ε - 1)

    @property
    def scales(self) -> Float64[np.ndarray, "dimension"]:
        """The scale at each coordinate, which is the same everywhere."""
        return np.full(self.dimension, self.scale)

    def coordinates(self, keys: Keys) -> Coordinates:
        """Which coordinates clients report, with replacement."""
        sizes = np.full(self.count, self.dimension)
        return one_of_each(keys.at("coordinates"), np.zeros_like(sizes), sizes)

    def privatize(
        self, values: Float[np.ndarray, "clients dimension"], keys: Keys
    ) -> Bits:
        """One report per client: coordinates and their randomised bits."""
        at = self.coordinates(keys)
        chosen = np.take_along_axis(values, at, 1)
        return Bits(at, randomized_bits(chosen, keys, epsilon=self.epsilon))

    def estimate(self, reports: Bits) -> Float64[np.ndarray, "dimension"]:
        """Equation 9: the sum of all bits over the number of users."""
        signs = reports.bits.ravel() * 2.0 - 1.0
        where = reports.coordinates.ravel()
        summed = np.bincount(where, signs, minlength=self.dimension)
        # Each user sent `count` bits, so this is `count` times the mean.
        return self.scale * summed / len(reports)
