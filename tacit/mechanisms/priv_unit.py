"""PrivUnitG: a whole vector in one report of pure epsilon.

For a unit vector v in d dimensions the report is a Gaussian vector whose part along v
is more often large than chance has it:

    V = (A v + g) / m        g ~ N(0, (1 - v v') / d), across v
    A sqrt(d) ~ N(0, 1), conditioned on >= t with probability p, on < t otherwise
    q = Phi(t),  logit p + logit q = eps
    m sqrt(d) = phi(t) (p / (1 - q) - (1 - p) / q)

Over N(0, 1/d) the density of A v + g is p / (1 - q) on the cap and (1 - p) / q off it,
so two inputs differ by a factor of e^eps at most. t is where the variance is least.

Shorter vectors are sent as v or -v, so that the mean is right; a zero vector is sent as
a fixed public direction with a fair coin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32, Float64
from scipy.special import expit, log_ndtr, ndtri

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Keys

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

Vectors = Float[np.ndarray, "clients dimension"]
Directions = Float64[np.ndarray, "clients dimension"]
Each = Float64[np.ndarray, "clients"]


@dataclass(frozen=True)
class Cap:
    """Where the report is likelier to lie: t, p, q and m sqrt(d) of the module's text.

    The tails 1 - p and 1 - q stand beside p and q, where rounding would lose them.
    """

    threshold: float
    inside: float  # p
    outside: float  # 1 - p
    below: float  # q
    above: float  # 1 - q
    gain: float  # m sqrt(d), the mean of A sqrt(d)


@dataclass(frozen=True)
class PrivUnit:
    """Reports a vector of norm at most `radius`, in all its coordinates.

    Guarantee: `epsilon` pure local DP for the whole vector, in every view.
    Assumes: nothing of the vector: longer ones are clipped, one that is not finite
        counts as zero. Draws are float64: low bits are not covered (Mironov 2012).
    Source: Asi, Feldman and Talwar 2022 (PrivUnitG), after Bhowmick et al. 2018.
    """

    epsilon: float
    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, radius=self.radius)
        check.count(dimension=self.dimension)

    @property
    def cap(self) -> Cap:
        """The parameters that make the variance least."""
        return _best_cap(float(self.epsilon), int(self.dimension))

    @property
    def event(self) -> DpEvent:
        """What one report costs its sender."""
        from tacit.accounting.events import pure_local

        return pure_local(self.epsilon)

    def variance(self, norm: float) -> float:
        """The variance of a report for this norm, on average over coordinates."""
        check.not_negative(norm=norm)
        length = min(norm, self.radius)
        square = self.radius**2 * _second_moment(self.cap, self.dimension)
        return (square - length**2) / self.dimension

    def privatize(
        self, vectors: Vectors, keys: Keys
    ) -> Float32[np.ndarray, "clients dimension"]:
        """One report a client, as long as its vector."""
        if vectors.shape != (len(keys), self.dimension):
            raise BadValue(
                f"vectors of shape {vectors.shape}; needed is one vector of "
                f"{self.dimension} for each of {len(keys)} clients"
            )
        direction, length = _polar(vectors.astype(np.float64), self.radius)
        forward = keys.at("sign").uniform(1)[:, 0] < (1.0 + length) / 2
        direction *= np.where(forward, 1.0, -1.0)[:, None]
        report = keys.at("across").normal(self.dimension)
        astray = np.einsum("cd,cd->c", report, direction)
        along = _along(self.cap, keys.at("along"))
        report += (along - astray)[:, None] * direction
        report *= self.radius / self.cap.gain
        return report.astype(np.float32)

    def estimate(self, reports: Vectors) -> Float64[np.ndarray, "dimension"]:
        """The mean vector, unbiased."""
        check.count(reports=len(reports))
        return np.asarray(reports.mean(axis=0, dtype=np.float64))


def cap_at(threshold: float, *, epsilon: float) -> Cap:
    """The cap of pure `epsilon` that begins at this threshold."""
    below, above = float(log_ndtr(threshold)), float(log_ndtr(-threshold))
    logit = epsilon - (below - above)
    inside, outside = float(expit(logit)), float(expit(-logit))
    density = -(threshold**2 + math.log(2 * math.pi)) / 2
    gain = inside * math.exp(density - above) - outside * math.exp(density - below)
    return Cap(threshold, inside, outside, math.exp(below), math.exp(above), gain)


@cache
def _best_cap(epsilon: float, dimension: int) -> Cap:
    def spread(threshold: float) -> float:
        return math.log(_second_moment(cap_at(threshold, epsilon=epsilon), dimension))

    reach = math.sqrt(2 * epsilon) + 2  # beyond, the cap is too rare to be hit
    from scipy.optimize import minimize_scalar  # a third of a second to load

    best = minimize_scalar(
        spread, bounds=(0.0, reach), method="bounded", options={"xatol": 1e-10}
    )
    return cap_at(float(best.x), epsilon=epsilon)


def _second_moment(cap: Cap, dimension: int) -> float:
    """The mean square norm of a report, for radius 1."""
    return (dimension + cap.threshold * cap.gain) / cap.gain**2


def _along(cap: Cap, keys: Keys) -> Each:
    """A sqrt(d), by inversion."""
    draws = keys.uniform(2)
    off = draws[:, 0] < cap.outside  # rounds up, towards less said
    part = 1.0 - draws[:, 1]  # in (0, 1]
    low = np.minimum(ndtri(cap.below * part), cap.threshold)
    return np.where(off, low, -ndtri(cap.above * part))


def _polar(vectors: Directions, radius: float) -> tuple[Directions, Each]:
    """Unit directions, and lengths as a share of the radius, 1 at the most."""
    peak = np.abs(vectors).max(axis=1)
    known = np.isfinite(peak) & (peak > 0)
    public = np.zeros(vectors.shape[1])
    public[0] = 1.0
    direction = np.where(known[:, None], vectors, public)
    direction /= np.where(known, peak, 1.0)[:, None]  # squares neither over- nor under-
    norm = np.linalg.norm(direction, axis=1)
    direction /= norm[:, None]
    share = np.minimum(np.where(known, peak, 0.0), radius) / radius  # norm is >= 1
    return direction, np.minimum(share * norm, 1.0)
