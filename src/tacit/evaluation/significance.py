"""Is one ranker better than another? Paired differences over users.

`paired_differences` is what every page, table and file of Tacit shows of a pair;
`paired_bootstrap` is what the reproductions of papers judge claims by.

With several seeds a user may be held out more than once. What is drawn is the user,
with all of that user's differences: seeds do not turn one user into many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32, Int64
from scipy.special import stdtr, stdtrit  # scipy.stats has it too, and a second to load

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.results import Evaluation, Metric

POWER = 0.8  # the chance to tell a difference that is there, by which users are counted
# Times the test users: of a difference that more than these would tell, nothing says
# that it is there at all.
MOST_TIMES = 1000
_STEPS = 8  # of a fixed point that two or three steps come close to
_DRAWN_AT_ONCE = 2**22  # users over all resamples of a batch: 16 MiB of int32


@dataclass(frozen=True)
class Difference:
    """By how much a is better than b: the mean of (a - b) over users.

    `low` to `high` is its interval. `p_value` is two-sided: how surprising a mean so
    far from zero would be if both were equal. It speaks of other users, not of other
    training runs. `is_told_apart`: zero is outside the interval, and the difference has
    the same sign in every seed. Seeds differ in their noise, of which users alone say
    nothing. `users_to_tell`: where zero is inside, how many users would tell; None
    where `MOST_TIMES` as many would not.
    """

    mean: float
    low: float
    high: float
    p_value: float
    n: int
    is_told_apart: bool = False
    users_to_tell: int | None = None


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


def paired_differences(
    a: Evaluation | Sequence[Evaluation],
    b: Evaluation | Sequence[Evaluation],
    *,
    pairs: int = 1,
    confidence: float = 0.95,
) -> dict[str, Difference]:
    """For every metric, a minus b on the same users, with Student's interval.

    The intervals of so many `pairs` hold together with this confidence: each of them
    has 1 - (1 - confidence) / pairs (Bonferroni), and its p-value is multiplied by
    their number. The best of many is then not found better by chance. The users of
    several seeds are clusters, as in `paired_bootstrap`.
    """
    check.fraction(confidence=confidence)
    check.at_least(1, pairs=pairs)
    ours, others = _listed(a), _listed(b)
    _refuse_unpaired(ours, others)
    return {
        name: _students(
            [
                x.values[name] - y.values[name]
                for x, y in zip(ours, others, strict=True)
            ],
            np.concatenate([one.users for one in ours]),
            pairs=pairs,
            confidence=confidence,
        )
        for name in ours[0].values
    }


def users_to_tell(
    mean: float,
    *,
    deviation: float,
    alarm: float,
    power: float = POWER,
    most: float = math.inf,
) -> int | None:
    """The users with whom a difference like this one would be told apart from zero.

    `deviation` is that between users, `alarm` the chance of an interval without the
    true mean, `power` the chance of an interval without zero if the true mean is this
    one. None if no number up to `most` would do.

    >>> users_to_tell(0.1, deviation=1.0, alarm=0.05), users_to_tell(
    ...     0.0, deviation=1.0, alarm=0.05
    ... )
    (787, None)
    """
    if mean == 0 or not math.isfinite(deviation):
        return None
    n = math.inf
    for _ in range(_STEPS):  # the quantiles depend on the number itself, but hardly
        freedom = max(n - 1, 1.0)
        far = stdtrit(freedom, 1 - alarm / 2) + stdtrit(freedom, power)
        n = max(2.0, (float(far) * deviation / mean) ** 2)
    return math.ceil(n) if n <= most and math.isfinite(n) else None


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
    is_told = bool(low > 0 or high < 0)
    return Difference(
        mean, float(low), float(high), p_value, len(users.counts), is_told
    )


def _students(
    by_seed: Sequence[Float64[np.ndarray, "values"]],
    users: Int64[np.ndarray, "all_values"],
    *,
    pairs: int,
    confidence: float,
) -> Difference:
    found = Metric.clustered(np.concatenate(by_seed), users)
    mean, se, n = found.mean, found.se, found.n_users or 0
    if se is None:  # one user: anything is possible
        return Difference(mean, -math.inf, math.inf, 1.0, n)
    alarm = (1 - confidence) / pairs
    far = float(stdtrit(n - 1, 1 - alarm / 2)) * se
    low, high = mean - far, mean + far
    is_outside = low > 0 or high < 0
    has_one_sign = len({float(np.sign(one.mean())) for one in by_seed}) == 1
    return Difference(
        mean,
        low,
        high,
        _p_value(mean, se, n, pairs),
        n,
        is_outside and has_one_sign,
        # Where only the seeds disagree, more users would not help.
        None
        if is_outside
        else users_to_tell(
            mean, deviation=se * math.sqrt(n), alarm=alarm, most=MOST_TIMES * n
        ),
    )


def _p_value(mean: float, se: float, n: int, pairs: int) -> float:
    """Of Student's test, times the number of pairs: below 0.05 as the interval says."""
    if se == 0:
        return 1.0 if mean == 0 else 0.0
    return min(1.0, pairs * 2 * float(stdtr(n - 1, -abs(mean) / se)))


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
