"""A whole user vector with noise on every number: PrivateRec's vanilla embedding.

A vector is cut to length theta and made noisy:

    c = x / max(1, |x|₂ / theta),   c + noise

Two cut vectors of d numbers can point opposite ways, so they are apart by up to

    Δ2 = 2 theta        Δ1 = 2 theta sqrt(d)

Both bounds hold for any two histories: the guarantees are for a whole user, under
replace_one. The noise grows with d, which is why the paper leaves it behind.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms.gaussian import least_multiplier, normals
from tacit.mechanisms.private_attention import laplace

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

Vectors = Float[np.ndarray, "clients numbers"]


@dataclass(frozen=True)
class PrivateVector:
    """A vector of `width` numbers with noise: Gaussian, or Laplace if `delta` is 0.

    Guarantee: (`epsilon`, `delta`) local DP for the whole history, for one release.
    Assumes: whatever made the vector is public but for the history. A number that is
        not finite counts as 0. A release is cached and reused; a fresh one is a new
        event. Noise is float64, so its low bits are not covered (Mironov 2012).
    Source: Balle and Wang 2018, Dwork et al. 2006 for the noise; Liu et al. 2022,
        section 3.2.1.
    """

    epsilon: float
    width: int
    _: KW_ONLY
    theta: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, theta=self.theta)
        check.count(width=self.width)
        check.not_negative(delta=self.delta)
        if self.delta:
            check.fraction(delta=self.delta)

    @property
    def scale(self) -> float:
        """The deviation of Gaussian noise, or the mean size of Laplace noise."""
        if self.delta:
            return 2.0 * self.theta * least_multiplier(self.epsilon, self.delta)
        return 2.0 * self.theta * math.sqrt(self.width) / self.epsilon

    @property
    def variance(self) -> float:
        """The variance of the noise on each number."""
        return self.scale**2 * (1.0 if self.delta else 2.0)

    @property
    def event(self) -> DpEvent:
        """The event of one release, under replace_one."""
        from tacit.accounting.events import local_gaussian, pure_local

        if self.delta:
            return local_gaussian(self.scale, diameter=2.0 * self.theta)
        return pure_local(self.epsilon)

    def noisy(
        self, vectors: Vectors, keys: Keys
    ) -> Float64[np.ndarray, "clients numbers"]:
        """Each client's vector, cut and made noisy."""
        if vectors.shape != (len(keys), self.width):
            raise BadValue(
                f"vectors of shape {vectors.shape}; needed is "
                f"{(len(keys), self.width)}: {self.width} numbers for each client"
            )
        key = keys.at("noise")
        draw = normals if self.delta else laplace
        return cut(vectors, theta=self.theta) + self.scale * draw(key, self.width)


def cut(vectors: Vectors, *, theta: float) -> Float64[np.ndarray, "clients numbers"]:
    """Vectors cut to a length of at most `theta`; what is not finite counts as 0."""
    known = np.where(np.isfinite(vectors), vectors, 0.0).astype(np.float64)
    largest = np.abs(known).max(axis=1, keepdims=True, initial=0.0)
    # Over the largest number first: squares of huge ones would overflow, and so would
    # their norm.
    unit = known / np.where(largest > 0, largest, 1.0)
    most = theta / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1.0)
    return np.where(largest <= most, known, unit * most)
