"""Lower bounds from what was seen, each with its chance of a false alarm.

Two hypotheses, one score: how well can somebody tell whether a canary took part, or
which of two inputs a report came from? What a test achieved, with confidence, bounds
the privacy from below: mu of Gaussian privacy (Dong, Roth and Su 2022, Theorem 2.7), or
the log-likelihood ratio of pure privacy.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64, Int64
from scipy.special import ndtri
from scipy.stats import beta, chi2, kstest

from tacit import check
from tacit.accounting.calibration import gaussian_epsilon

ALARM = 1e-3  # of one lower bound, or of one two-sided test of a variance
ERRORS = 4.0  # standard errors that a log ratio may lie above its claim
_NEVER = 10.4  # (1 - 10.4 / n)**n is 3e-5, the chance of four standard errors

Samples = Float64[np.ndarray, "n"]
Counts = Int64[np.ndarray, "events"]
Each = Float64[np.ndarray, "events"]


def upper_rate(hits: Counts, n: int, *, alarm: float) -> Each:
    """The largest rate that `hits` in `n` trials allow (Clopper and Pearson 1934).

    >>> upper_rate(np.array([0, 10]), 10, alarm=0.05).round(4).tolist()
    [0.2589, 1.0]
    """
    check.count(n=n)
    check.fraction(alarm=alarm)
    missed = np.maximum(n - hits, 1)  # all hits allow any rate
    return np.where(hits < n, beta.ppf(1 - alarm, hits + 1, missed), 1.0)


def mu_lower_bound(
    present: Float64[np.ndarray, "present"],
    absent: Float64[np.ndarray, "absent"],
    thresholds: Float64[np.ndarray, "thresholds"],
    *,
    alarm: float = ALARM,
) -> float:
    """How far apart the two kinds of scores are at least, as two normals of scale 1.

    `thresholds` must not depend on the scores: `alarm` is shared out over them and the
    two error rates of each. Zero if nothing can be told.
    """
    each = alarm / (2 * len(thresholds))  # a union bound
    above = (absent >= thresholds[:, None]).sum(axis=1)
    below = (present < thresholds[:, None]).sum(axis=1)
    false_alarms = upper_rate(above, len(absent), alarm=each)
    misses = upper_rate(below, len(present), alarm=each)
    return max(0.0, float((ndtri(1 - false_alarms) - ndtri(misses)).max()))


def epsilon_of(mu: float, *, delta: float) -> float:
    """The epsilon of Gaussian privacy `mu`; zero if `delta` alone covers it."""
    if mu < 1e-6:
        return 0.0
    return max(0.0, gaussian_epsilon(1 / mu, delta=delta))


def log_ratio(one: Counts, other: Counts, *, draws: int) -> tuple[Each, Each]:
    """The log ratio of how often events happened in `draws` each, and its error.

    Of an event that never happened, 10.4 / n bounds the chance as surely as four
    standard errors do: then that is its frequency, without an error of its own.

    >>> ratio, error = log_ratio(np.array([500]), np.array([250]), draws=1000)
    >>> ratio.round(3).tolist(), error.round(3).tolist()
    ([0.693], [0.063])
    """
    p, q = one / draws, np.where(other > 0, other, _NEVER) / draws
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(one > 0, (1 - p) / (p * draws), 0.0)
        error = own + np.where(other > 0, (1 - q) / (q * draws), 0.0)
        return np.log(p / q), np.sqrt(error)


def variance_interval(n: int, *, alarm: float = ALARM) -> tuple[float, float]:
    """Where the mean square of `n` standard normals lies, two-sided and exact."""
    return (
        float(chi2.ppf(alarm / 2, n)) / n,
        float(chi2.isf(alarm / 2, n)) / n,
    )


def normal_p_value(samples: Samples) -> float:
    """How surprising the samples would be if they were standard normal (KS)."""
    return float(kstest(samples, "norm").pvalue)


def correlation_errors(one: Samples, other: Samples) -> float:
    """The correlation without its sign, in the standard errors of independent pairs.

    Zero if there is nothing to compare; infinite if one of them does not vary.
    """
    if len(one) < 2:
        return 0.0
    if not one.std() or not other.std():
        return math.inf
    return abs(float(np.corrcoef(one, other)[0, 1])) * math.sqrt(len(one))


def largest_log_ratio(likelihoods: Float64[np.ndarray, "values reports"]) -> float:
    """The exact loss of a discrete mechanism: over all pairs of values, all reports."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(likelihoods)
        gaps = logs.max(axis=0) - logs.min(axis=0)  # nan: a report that nobody gives
    return float(np.nanmax(gaps))
