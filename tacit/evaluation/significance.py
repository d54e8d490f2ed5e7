"""Is one ranker better than another? A paired bootstrap over people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.results import Evaluation

_DRAWN_AT_ONCE = 2**22


@dataclass(frozen=True)
class Difference:
    """The mean of (a - b) over people, its interval, and how surprising it would be.

    `p_value` is two-sided: how often a resample strays from the mean at least as far as
    the mean strays from zero. It speaks of other people, not of other training runs.
    """

    mean: float
    low: float
    high: float
    p_value: float
    n: int


def paired_bootstrap(
    a: Evaluation,
    b: Evaluation,
    *,
    key: Key,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> dict[str, Difference]:
    """For every metric, a minus b on the same people, with a percentile interval."""
    check.at_least(100, resamples=resamples)
    check.fraction(confidence=confidence)
    _refuse_unpaired(a, b)
    names = list(a.values)
    differences = np.stack([a.values[n] - b.values[n] for n in names], axis=1)
    means = _resampled_means(differences, resamples, key)
    return {
        name: _difference(differences[:, i], means[:, i], confidence)
        for i, name in enumerate(names)
    }


def _resampled_means(
    values: Float64[np.ndarray, "people metrics"], resamples: int, key: Key
) -> Float64[np.ndarray, "resamples metrics"]:
    """Means over people drawn with replacement."""
    n = len(values)
    generator = key.generator()
    step = max(1, _DRAWN_AT_ONCE // n)
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    draws = (generator.integers(n, size=(size, n), dtype=np.int32) for size in sizes)
    return np.concatenate(
        [np.stack([v[drawn].mean(axis=1) for v in values.T], 1) for drawn in draws]
    )


def _difference(
    values: Float64[np.ndarray, "people"],
    means: Float64[np.ndarray, "resamples"],
    confidence: float,
) -> Difference:
    mean = float(values.mean())
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    # The slack keeps rounding from telling two equal numbers apart.
    as_far = np.abs(means - mean) >= abs(mean) * (1 - 1e-9)
    p_value = (1 + int(as_far.sum())) / (1 + len(means))
    return Difference(mean, float(low), float(high), p_value, len(values))


def _refuse_unpaired(a: Evaluation, b: Evaluation) -> None:
    if not np.array_equal(a.users, b.users):
        raise BadValue(
            f"the evaluations are of different people ({len(a)} and {len(b)}); "
            "evaluate both rankers on the same held-out people"
        )
    if a.protocol != b.protocol:
        raise BadValue(f"the protocols differ: '{a.protocol}' and '{b.protocol}'")
    if set(a.values) != set(b.values):
        odd = ", ".join(sorted(set(a.values) ^ set(b.values)))
        raise BadValue(f"only one of the evaluations has {odd}; measure both alike")
