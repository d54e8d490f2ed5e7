"""What every local mechanism is asked: 200,000 draws for each extreme pair of inputs.

False alarms: each comparison is at four standard errors, 3e-5 one-sided, 6e-5 two-sided
if the seed were drawn anew. Seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.keys import Key, Keys

DRAWS = 200_000


def clients(seed: int, n: int = DRAWS) -> Keys:
    return Key.from_seed(seed).each(np.arange(n))


def log_ratio(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The log ratio of two event frequencies, and its standard error."""
    p, q = one.mean(), other.mean()
    error = np.sqrt((1 - p) / (p * len(one)) + (1 - q) / (q * len(other)))
    return float(np.log(p / q)), float(error)


def assert_no_louder(one: np.ndarray, other: np.ndarray, epsilon: float) -> None:
    """An event is at most e^epsilon times as frequent for one input as for another.

    Of an event that never happened in n draws, 10.4 / n bounds the chance just as
    surely: (1 - 10.4 / n)^n is 3e-5.
    """
    if not one.any():
        return
    if not other.any():
        bound = math.exp(epsilon) * 10.4 / len(other)
        assert one.mean() <= bound, f"{one.sum()} times, and never for the other"
        return
    ratio, error = log_ratio(one, other)
    assert ratio <= epsilon + 4 * error, f"log ratio {ratio:.4f} over {epsilon}"


def assert_mean_and_variance(
    samples: np.ndarray, mean: np.ndarray, variance: float
) -> None:
    """Mean within four standard errors in each coordinate; variance within 3 %."""
    gap = np.abs(samples.mean(axis=0) - mean)
    error = np.sqrt(samples.var(axis=0) / len(samples))
    assert (gap <= 4 * error).all(), f"{(gap / error).max():.1f} standard errors off"
    measured = float(((samples - mean) ** 2).mean())
    assert abs(measured / variance - 1) < 0.03, f"variance {measured}, not {variance}"
