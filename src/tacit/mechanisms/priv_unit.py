"""PrivUnitG: a whole vector in one report of pure epsilon.

For a unit vector v in d dimensions the report is a Gaussian vector whose part along v
is more often large than chance has it:

    Y = A v + g              g ~ N(0, 1 - v v'), across v
    A ~ N(0, 1), conditioned on >= t with probability p, on < t otherwise
    q = Phi(t),  logit p + logit q = eps
    m = phi(t) (p / (1 - q) - (1 - p) / q)

Over N(0, 1) the density of Y is p / (1 - q) on the cap and (1 - p) / q off it, so two
inputs differ by a factor of e^eps at most. t is where the variance is least, and Y / m
is right on average.

What is sent is Y rounded to multiples of STEP, and computed in float64. A computed
coordinate j is off by eta_j at the most, so a report comes from a Y in a box whose
sides are longer or shorter than STEP by 2 eta_j. The Gaussian mass of the longer box
is at most e^c times that of the shorter, whatever v is: c is `rounding_loss`, and the
cap is that of eps - c. docs/privacy.md has the proof.

Shorter vectors are sent as v or -v, so that the mean is right; a zero vector is sent as
a fixed public direction with a fair coin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32, Float64
from scipy.special import log_ndtr

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms.integer_coins import growth, least_words
from tacit.mechanisms.true_normal import ERROR, half_masses, normal, quantile

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

STEP = 2.0**-10  # of what is sent, where noise has deviation 1
MOST_DIMENSIONS = 2**22  # beyond, the rounding loss would grow to a part of epsilon
_MOST_EPSILON = 500.0  # a cap of e^-700 would not be a float; beyond, less is said
_FAR = 12.0  # deviations; a normal draw is beyond with chance 4e-33
_NOTHING = 2**24  # of 2^64 words: as often as 2^-40 the report is zero for everyone
_BLOCK = 256  # products that are summed in a row: less rounding than all of them
_ULP = 2.0**-53

Vectors = Float[np.ndarray, "clients dimension"]
Directions = Float64[np.ndarray, "clients dimension"]
Each = Float64[np.ndarray, "clients"]


@dataclass(frozen=True)
class Cap:
    """Where the report is likelier to lie: t, p, q and m of the module's text.

    Exact are 1 - q, a float, and 1 - p, a number of words; the rest is rounded.
    """

    threshold: float
    above: float  # 1 - q
    off: int  # of 2^64 words, those for which the report lies off the cap
    gain: float  # m, the mean of A

    @property
    def below(self) -> float:
        """The chance q that a normal draw is below the threshold."""
        return 1.0 - self.above

    @property
    def inside(self) -> float:
        """The chance p that the report lies on the cap."""
        return (2**64 - self.off) / 2**64

    @property
    def outside(self) -> float:
        """The chance 1 - p that the report lies off the cap."""
        return self.off / 2**64


@dataclass(frozen=True)
class PrivUnit:
    """Reports a vector of norm at most `radius`, in all its coordinates.

    Guarantee: `epsilon` pure local DP for the whole vector, in every view, of the bytes
        that are sent.
    Assumes: nothing of the vector: longer ones are clipped, one that is not finite
        counts as zero. Words are random; sums and products are IEEE float64; normal
        quantiles are as exact as `true_normal` says.
    Source: Asi, Feldman and Talwar 2022 (PrivUnitG), after Bhowmick et al. 2018.
    """

    epsilon: float
    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, radius=self.radius)
        check.count(dimension=self.dimension)
        if self.dimension > MOST_DIMENSIONS or self._loss > self.epsilon / 2:
            raise BadValue(
                f"epsilon={self.epsilon} for a vector of {self.dimension} numbers is "
                "less than their rounding could tell; use fewer numbers or more epsilon"
            )

    @property
    def cap(self) -> Cap:
        """The cap with the least variance, for epsilon less the rounding loss."""
        most = min(float(self.epsilon), _MOST_EPSILON)
        return best_cap(most - self._loss, int(self.dimension))

    @property
    def event(self) -> DpEvent:
        """The event of one report: pure epsilon for the whole vector."""
        from tacit.accounting.events import pure_local

        return pure_local(self.epsilon)

    @property
    def most_norm(self) -> float:
        """The norm of the longest report that is ever sent.

        `privatize` sends zeros instead of a longer one, so this is no matter of chance.
        Single precision and the sum of squares round by less than a part in 10^6.
        """
        return (1 + 1e-6) * self.radius * self._farthest / self.cap.gain

    def variance(self, norm: float) -> float:
        """The variance of a report for this norm, on average over coordinates."""
        check.not_negative(norm=norm)
        length = min(norm, self.radius)
        square = self.radius**2 * _second_moment(self.cap, self.dimension)
        return (square - length**2) / self.dimension

    def privatize(
        self, vectors: Vectors, keys: Keys
    ) -> Float32[np.ndarray, "clients dimension"]:
        """One report per client, with as many numbers as its vector."""
        if vectors.shape != (len(keys), self.dimension):
            raise BadValue(
                f"vectors of shape {vectors.shape}; needed is one vector of "
                f"{self.dimension} for each of {len(keys)} clients"
            )
        direction, length = _polar(vectors.astype(np.float64), self.radius)
        # Any chance will do here: a mix of two reports of epsilon is one.
        forward = keys.at("sign").uniform(1)[:, 0] < (1.0 + length) / 2
        direction *= np.where(forward, 1.0, -1.0)[:, None]
        report, astray = drawn(direction, self.cap, keys)
        np.rint(report / STEP, out=report)
        spoken = keys.at("nothing").bits(1)[:, 0] >= _NOTHING
        spoken &= np.abs(astray) <= _FAR
        spoken &= _products(report, report) <= (self._farthest / STEP) ** 2
        report[~spoken] = 0.0
        report *= STEP * self.radius / self.cap.gain
        return report.astype(np.float32)

    def estimate(self, reports: Vectors) -> Float64[np.ndarray, "dimension"]:
        """The mean of the clients' vectors, unbiased."""
        check.count(reports=len(reports))
        return np.asarray(reports.mean(axis=0, dtype=np.float64))

    @property
    def _farthest(self) -> float:
        return farthest(self.epsilon, self.dimension)

    @property
    def _loss(self) -> float:
        return rounding_loss(self.dimension, self._farthest)


def farthest(epsilon: float, dimension: int) -> float:
    """The norm of the longest Y that is sent; others are as rare as 1e-28."""
    return math.sqrt(dimension) + _reach(min(epsilon, _MOST_EPSILON)) + 2 * _FAR


def rounding_loss(dimension: int, most: float) -> float:
    """c: what the arithmetic may add to epsilon, for reports of norm `most` or less.

    The terms are those of the proof in docs/privacy.md.
    """
    root, size = math.sqrt(dimension), most + _FAR + 2  # of what is drawn, at the most
    summing = (_BLOCK + math.log2(dimension) + 2) * _ULP
    unit = summing + 4 * _ULP
    drawn = ERROR * (dimension + root * size)
    astray = (summing + unit) * size + ERROR * (root + size)
    along = ERROR * (1 + size) + size * (unit + 3 * _ULP)
    off = 1.01 * (drawn + root * (astray + along) + _ULP * root * size)  # sum of eta_j
    return 4.1 * off / STEP * math.exp(1.01 * (most + 1) * STEP) + 2.0**-50


def cap_at(threshold: float, *, epsilon: float) -> Cap:
    """The cap of pure `epsilon` that begins at this threshold, or a rounding away."""
    log_above = float(log_ndtr(-threshold))
    above = math.exp(log_above)
    share = Fraction(above)
    off = least_words(growth(epsilon) * share / (1 - share))
    outside = off / 2**64
    density = -(threshold**2 + math.log(2 * math.pi)) / 2
    on = (1.0 - outside) * math.exp(density - log_above)
    return Cap(threshold, above, off, on - outside * math.exp(density) / (1.0 - above))


def _reach(epsilon: float) -> float:
    return math.sqrt(2 * epsilon) + 2  # beyond, the cap is too rare to be hit


@cache
def best_cap(epsilon: float, dimension: int) -> Cap:
    """The cap of pure `epsilon` whose reports have the least variance."""

    def spread(threshold: float) -> float:
        return math.log(_second_moment(cap_at(threshold, epsilon=epsilon), dimension))

    from scipy.optimize import minimize_scalar  # a third of a second to load

    best = minimize_scalar(
        spread,
        bounds=(0.0, _reach(epsilon)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return cap_at(float(best.x), epsilon=epsilon)


def _second_moment(cap: Cap, dimension: int) -> float:
    """The mean square norm of a report, for radius 1."""
    return (dimension + cap.threshold * cap.gain) / cap.gain**2


def drawn(direction: Directions, cap: Cap, keys: Keys) -> tuple[Directions, Each]:
    """Y for unit vectors, and the part along them that was taken out of the noise."""
    report = normal(keys.at("across"), direction.shape[1])
    astray = _products(report, direction)
    report += (_along(cap, keys.at("along")) - astray)[:, None] * direction
    return report, astray


def _along(cap: Cap, keys: Keys) -> Each:
    """The part A along the direction, by inversion of the nearer tail's mass."""
    words = keys.bits(2)
    mass, log_mass = half_masses(keys, words[:, 1].view(np.int64))
    is_low = words[:, 1] >= 2**63  # of two halves; the mass is that beyond A in its own
    shares = np.where(is_low, np.log1p(-mass), log_mass)
    on = -quantile(math.log(cap.above) + shares)
    low = quantile(math.log1p(-cap.above) + log_mass)
    high = -quantile(np.log(mass + cap.above * (1.0 - mass)))
    is_off = words[:, 0] <= cap.off - 1
    return np.where(is_off, np.where(is_low, low, high), on)


def _polar(vectors: Directions, radius: float) -> tuple[Directions, Each]:
    """Unit directions, and lengths as a share of the radius, 1 at the most."""
    peak = np.abs(vectors).max(axis=1)
    known = np.isfinite(peak) & (peak > 0)
    public = np.zeros(vectors.shape[1])
    public[0] = 1.0
    direction = np.where(known[:, None], vectors, public)
    direction /= np.where(known, peak, 1.0)[:, None]  # squares neither over- nor under-
    norm = np.sqrt(_products(direction, direction))
    direction /= norm[:, None]
    share = np.minimum(np.where(known, peak, 0.0), radius) / radius  # norm is >= 1
    return direction, np.minimum(share * norm, 1.0)


def _products(one: Directions, other: Directions) -> Each:
    """Inner products, the sums of halves of halves: d / 256 terms would round more."""
    half = one.shape[1] // 2
    if half < _BLOCK // 2:
        return np.asarray(np.einsum("cd,cd->c", one, other))
    first, second = (slice(None, half), slice(half, None))
    return _products(one[:, first], other[:, first]) + _products(
        one[:, second], other[:, second]
    )
