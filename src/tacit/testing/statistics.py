"""Statistical assertions whose chance of a false alarm is stated and true.

Every bound holds at any sample size: Dvoretzky-Kiefer-Wolfowitz with Massart's constant
(1990), the exact binomial, Hoeffding (1963). None is an approximation that needs "large
n", so `false_alarm=1e-9` means one honest run in a billion, and one fixed seed that
fails is a bug.

Power: a distribution, frequency or mean that is more than twice the bound away from
what is claimed passes with probability at most `false_alarm`. `samples_to_see` gives
the size of sample for that.

    n = samples_to_see(0.007, false_alarm=1e-9)    # a normal whose scale is 3 % off
    assert_distribution(keys.normal(n), norm.cdf, false_alarm=1e-9)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike
from scipy.stats import binom, norm

from tacit import check
from tacit.errors import BadValue

Samples = Float64[np.ndarray, "n"]


def samples_to_see(gap: float, *, false_alarm: float) -> int:
    """How many samples reveal a gap, and miss it with probability `false_alarm`.

    A gap is the largest distance between two distribution functions for
    `assert_distribution`, the distance of means over the width of the bounds for
    `assert_mean`. Normals whose scales differ by a small fraction s are 0.24 s apart.
    """
    check.positive(gap=gap)
    return math.ceil(4 * _dkw_exponent(false_alarm) / gap**2)


def assert_distribution(
    samples: ArrayLike,
    cdf: Callable[[Samples], ArrayLike],
    *,
    false_alarm: float,
) -> None:
    """Samples of any shape follow a continuous distribution function, independently.

    The bound is the DKW inequality. For values with atoms use `assert_frequencies`.
    """
    x = np.sort(_finite(samples).ravel())
    n = len(x)
    expected = np.asarray(cdf(x), np.float64)
    if expected.shape != x.shape or not ((expected >= 0) & (expected <= 1)).all():
        raise BadValue("cdf must give a probability for every sample")
    # The empirical function jumps at each sample: compare both sides of the jump.
    above = (np.arange(1, n + 1) / n - expected).max()
    below = (expected - np.arange(n) / n).max()
    distance = float(max(above, below))
    bound = math.sqrt(_dkw_exponent(false_alarm) / n)
    _verdict("distance to the cdf", distance, bound, n, false_alarm)


def assert_frequencies(
    counts: ArrayLike, probabilities: ArrayLike, *, false_alarm: float
) -> None:
    """Each cell was hit about as often as its probability says.

    It is the exact binomial test of every cell (its Clopper-Pearson interval contains
    the probability), with `false_alarm` divided among the cells.
    """
    check.fraction(false_alarm=false_alarm)
    seen, p = _counts(counts), _probabilities(probabilities)
    if seen.shape != p.shape:
        raise BadValue(f"{seen.shape} counts for {p.shape} probabilities")
    n, tail = int(seen.sum()), false_alarm / (2 * len(p))
    chance = np.minimum(binom.cdf(seen, n, p), binom.sf(seen - 1, n, p))
    worst = int(np.argmin(chance))
    if chance[worst] < tail:
        least, most = binom.ppf(tail, n, p[worst]), binom.isf(tail, n, p[worst])
        raise AssertionError(
            f"cell {worst}: count {seen[worst]} outside [{least:.0f}, {most:.0f}] for "
            f"probability {p[worst]:.6g}; n={n}, {len(p)} cells, "
            f"false_alarm={false_alarm:g}"
        )


def assert_mean(
    samples: ArrayLike,
    expected: ArrayLike,
    *,
    bounds: tuple[float, float] | None = None,
    sd: float | None = None,
    false_alarm: float,
) -> None:
    """Independent samples along axis 0 have this mean, in every coordinate.

    Give `bounds` for samples that cannot leave [low, high] (Hoeffding), or `sd` for
    normal samples of known standard deviation (exact). Coordinates share `false_alarm`.
    """
    check.fraction(false_alarm=false_alarm)
    x = _finite(samples)
    share = false_alarm / x[0].size  # a union bound over the coordinates
    if bounds is not None and sd is None:
        bound = _hoeffding(x, bounds, share)
    elif sd is not None and bounds is None:
        check.positive(sd=sd)
        bound = sd / math.sqrt(len(x)) * float(norm.isf(share / 2))
    else:
        raise BadValue("give either bounds or sd, and not both")
    gaps = np.abs(x.mean(axis=0) - np.broadcast_to(expected, x.shape[1:]))
    _verdict("distance to the mean", float(gaps.max()), bound, len(x), false_alarm)


def assert_independent(x: ArrayLike, y: ArrayLike, *, false_alarm: float) -> None:
    """Pairs (x[i], y[i]), drawn independently of one another, are uncorrelated.

    Differences of neighbouring pairs make their products symmetric around zero if x and
    y are independent, whatever their distributions; Hoeffding's inequality for signs
    then bounds the estimated correlation. Twice that bound is seen where the tails are
    about normal. It sees correlation only; pass `abs(x)` or the like to see more.
    """
    check.fraction(false_alarm=false_alarm)
    a, b = _finite(x).ravel(), _finite(y).ravel()
    if len(a) != len(b) or len(a) < 2:
        raise BadValue(f"{len(a)} and {len(b)} samples; give pairs, at least two")
    n = len(a) // 2 * 2  # an odd last pair has no neighbour
    products = (a[0:n:2] - a[1:n:2]) * (b[0:n:2] - b[1:n:2])
    size = math.sqrt(float((products**2).sum()) * (n // 2))
    correlation = abs(float(products.sum())) / size if size else 0.0
    # P(|Σ s_i p_i| > t) <= 2 exp(-t² / 2 Σ p_i²) for random signs s_i.
    bound = math.sqrt(4 * _dkw_exponent(false_alarm) / (n // 2))
    _verdict("correlation", correlation, bound, n, false_alarm)


def _dkw_exponent(false_alarm: float) -> float:
    """The x for which 2 exp(-2 x) is `false_alarm`."""
    check.fraction(false_alarm=false_alarm)
    return math.log(2 / false_alarm) / 2


def _hoeffding(
    x: Float64[np.ndarray, "n ..."], bounds: tuple[float, float], false_alarm: float
) -> float:
    low, high = bounds
    check.positive(width=high - low)
    if x.min() < low or x.max() > high:
        raise AssertionError(
            f"samples from {x.min():.6g} to {x.max():.6g} leave [{low}, {high}]; "
            f"n={len(x)}"
        )
    return (high - low) * math.sqrt(_dkw_exponent(false_alarm) / len(x))


def _finite(samples: ArrayLike) -> Float64[np.ndarray, "n ..."]:
    x = np.asarray(samples, np.float64)
    if x.ndim == 0 or x.size == 0:
        raise BadValue("there are no samples to judge")
    if not np.isfinite(x).all():
        raise AssertionError(f"{np.sum(~np.isfinite(x))} of {x.size} are not finite")
    return x


def _counts(counts: ArrayLike) -> Int64[np.ndarray, "cells"]:
    seen = np.asarray(counts)
    if seen.ndim != 1 or seen.dtype.kind not in "iu" or seen.min(initial=0) < 0:
        raise BadValue("counts must be a list of whole numbers from 0")
    if not seen.sum():
        raise BadValue("there are no samples to judge")
    return seen.astype(np.int64)


def _probabilities(probabilities: ArrayLike) -> Float64[np.ndarray, "cells"]:
    p = np.asarray(probabilities, np.float64)
    if not ((p >= 0) & (p <= 1)).all() or abs(p.sum() - 1) > 1e-9:
        raise BadValue(f"probabilities sum to {p.sum()}; they must be in [0, 1], sum 1")
    return p


def _verdict(
    what: str, statistic: float, bound: float, n: int, false_alarm: float
) -> None:
    if statistic > bound:
        raise AssertionError(
            f"{what} is {statistic:.6g}, bound {bound:.6g}; n={n}, "
            f"false_alarm={false_alarm:g}"
        )
