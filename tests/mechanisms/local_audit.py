"""What every local mechanism is asked: 200,000 draws for each extreme pair of inputs.

False alarms: each comparison is at four standard errors, 3e-5 one-sided, 6e-5 two-sided
if the seed were drawn anew. Seeds are fixed.
"""

from __future__ import annotations

import numpy as np

from tacit.audits.likelihood_ratios import DRAWS
from tacit.audits.lower_bounds import ERRORS, log_ratio
from tacit.keys import Key, Keys


def clients(seed: int, n: int = DRAWS) -> Keys:
    return Key.from_seed(seed).each(np.arange(n))


def assert_no_louder(one: np.ndarray, other: np.ndarray, epsilon: float) -> None:
    """An event is at most e^epsilon times as frequent for one input as for another."""
    assert one.size == other.size
    hits = (np.array([happened.sum()]) for happened in (one, other))
    [ratio], [error] = log_ratio(*hits, draws=one.size)
    how = "" if other.any() else f": {one.sum()} times, and never for the other"
    limit = epsilon + ERRORS * error
    assert ratio <= limit, f"log ratio {ratio:.4f} over {epsilon}{how}"


def assert_mean_and_variance(
    samples: np.ndarray, mean: np.ndarray, variance: float
) -> None:
    """Mean within four standard errors in each coordinate; variance within 3 %."""
    gap = np.abs(samples.mean(axis=0) - mean)
    error = np.sqrt(samples.var(axis=0) / len(samples))
    assert (gap <= 4 * error).all(), f"{(gap / error).max():.1f} standard errors off"
    measured = float(((samples - mean) ** 2).mean())
    assert abs(measured / variance - 1) < 0.03, f"variance {measured}, not {variance}"
