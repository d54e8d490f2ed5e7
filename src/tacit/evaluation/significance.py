"""Is one ranker better than another? A paired bootstrap over users.

With several seeds a user may be held out more than once. What is drawn is the user,
with all of that user's differences: seeds do not turn one user into many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32, Int64
from scipy.special import stdtrit  # scipy.stats has it too, and a second to load

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.results import Evaluation, Metric

_DRAWN_AT_ONCE = 2**22  # users over all resamples of a batch: 16 MiB of int32


@dataclass(frozen=True)
class Difference:
    """The mean of (a - b) over users, its interval, and how surprising it would be.

    `p_value` is two-sided: how often a resample strays from the mean at least as far as
    the mean strays from zero. It speaks of other users, not of other training runs.
    """

    mean: float
    low: float
    high: float
    p_value: float
    n: int


def paired_bootstrap(
    a: Evaluation | Sequence[Evaluation],
    b: Evaluation | Sequence[Evaluation],
    *,
    key: Key,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> dict[str, Difference]:
    """For every metric, a minus b on the same users, with a percentile interval.

    Sequences have one evaluation per seed, in the same order.
    """
    check.at_least(100, resamples=resamples)
    check.fraction(confidence=confidence)
    ours, others = _listed(a), _listed(b)
    _refuse_unpaired(ours, others)
    users = _Users.of(ours, others)
    means = users.resampled_means(resamples, key)
    return {
        name: _difference(users, means[:, i], i, confidence)
        for i, name in enumerate(ours[0].values)
    }


@dataclass(frozen=True)
class Interval:
    """The mean of (a - b) over users with an interval, and over how many seeds it held.

    `is_told_apart`: zero is outside the interval, and the difference has the same sign
    in every seed. Seeds differ in their noise, of which users alone say nothing.
    """

    mean: float
    low: float
    high: float
    is_told_apart: bool


def paired_interval(
    a: Sequence[Evaluation], b: Sequence[Evaluation], metric: str, *, confidence: float
) -> Interval:
    """One metric, a minus b on the same users, with Student's interval.

    Several intervals hold together with 95 % if each has the confidence 1 - 0.05 / m,
    m being how many there could be (Bonferroni): the best of many is then not found
    better by chance. The users of several seeds are clusters, as in `paired_bootstrap`.
    """
    check.fraction(confidence=confidence)
    _refuse_unpaired(a, b)
    by_seed = [x.values[metric] - y.values[metric] for x, y in zip(a, b, strict=True)]
    users = np.concatenate([one.users for one in a])
    found = Metric.clustered(np.concatenate(by_seed), users)
    if found.se is None or found.n_users is None:  # one user: anything is possible
        return Interval(found.mean, -math.inf, math.inf, is_told_apart=False)
    far = stdtrit(found.n_users - 1, (1 + confidence) / 2) * found.se
    low, high = found.mean - float(far), found.mean + float(far)
    signs = {float(np.sign(one.mean())) for one in by_seed}
    return Interval(found.mean, low, high, (low > 0 or high < 0) and len(signs) == 1)


@dataclass(frozen=True, eq=False)
class _Users:
    """The differences of each user, added up over the seeds that held them out."""

    sums: Float64[np.ndarray, "users metrics"]
    counts: Int64[np.ndarray, "users"]

    @classmethod
    def of(cls, ours: Sequence[Evaluation], others: Sequence[Evaluation]) -> _Users:
        names = list(ours[0].values)
        differences = np.concatenate(
            [
                np.stack([a.values[n] - b.values[n] for n in names], axis=1)
                for a, b in zip(ours, others, strict=True)
            ]
        )
        users = np.concatenate([a.users for a in ours])
        _, which, counts = np.unique(users, return_inverse=True, return_counts=True)
        sums = np.zeros((len(counts), len(names)))
        np.add.at(sums, which, differences)
        return cls(sums, counts)

    @property
    def means(self) -> Float64[np.ndarray, "metrics"]:
        """The mean of each metric over all differences."""
        found: Float64[np.ndarray, "metrics"] = self.sums.sum(0) / self.counts.sum()
        return found

    def resampled_means(
        self, resamples: int, key: Key
    ) -> Float64[np.ndarray, "resamples metrics"]:
        """Means over users drawn with replacement, one row per resample."""
        n, generator = len(self.counts), key.generator()
        step = max(1, _DRAWN_AT_ONCE // n)
        sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
        draws = (generator.integers(n, size=(s, n), dtype=np.int32) for s in sizes)
        return np.concatenate([self._means_of(drawn) for drawn in draws])

    def _means_of(
        self, drawn: Int32[np.ndarray, "resamples users"]
    ) -> Float64[np.ndarray, "resamples metrics"]:
        totals = np.stack([v[drawn].sum(axis=1) for v in self.sums.T], axis=1)
        found: Float64[np.ndarray, "resamples metrics"] = (
            totals / self.counts[drawn].sum(axis=1)[:, None]
        )
        return found


def _difference(
    users: _Users,
    means: Float64[np.ndarray, "resamples"],
    metric: int,
    confidence: float,
) -> Difference:
    mean = float(users.means[metric])
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    # The slack keeps rounding from telling two equal numbers apart.
    as_far = np.abs(means - mean) >= abs(mean) * (1 - 1e-9)
    # The data themselves count as one resample, so that p is never 0.
    p_value = (1 + int(as_far.sum())) / (1 + len(means))
    return Difference(mean, float(low), float(high), p_value, len(users.counts))


def _listed(evaluations: Evaluation | Sequence[Evaluation]) -> Sequence[Evaluation]:
    return [evaluations] if isinstance(evaluations, Evaluation) else evaluations


def _refuse_unpaired(ours: Sequence[Evaluation], others: Sequence[Evaluation]) -> None:
    if len(ours) != len(others) or not ours:
        raise BadValue(
            f"{len(ours)} evaluations against {len(others)}; there must be one "
            "per seed of both, and at least one"
        )
    for a, b in zip(ours, others, strict=True):
        if not np.array_equal(a.users, b.users):
            raise BadValue(
                f"the evaluations are of different users ({len(a)} and {len(b)}); "
                "evaluate both rankers on the same held-out users"
            )
        _refuse_measured_otherwise(a, b)
        _refuse_measured_otherwise(a, ours[0])


def _refuse_measured_otherwise(a: Evaluation, b: Evaluation) -> None:
    if a.protocol != b.protocol:
        raise BadValue(f"the protocols differ: '{a.protocol}' and '{b.protocol}'")
    if set(a.values) != set(b.values):
        odd = ", ".join(sorted(set(a.values) ^ set(b.values)))
        raise BadValue(f"only one of the evaluations has {odd}; measure both alike")
