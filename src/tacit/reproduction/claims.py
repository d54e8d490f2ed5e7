"""Claims that one contender is above another, or close to it, on the same users.

Two contenders that learnt nothing are close to each other, and one of them is above the
other by chance. So every claim about ranking has a `chance`, and holds only if the side
that it speaks well of is above the best of some random lists (see `chance`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import stdtrit

from tacit import check
from tacit.evaluation.significance import Difference, paired_bootstrap
from tacit.keys import Key
from tacit.reproduction.tables import Claim
from tacit.results import Evaluation, Groups

_RESAMPLES = 2_000
LISTS = 20  # random lists, of which the best is the bar

Judged = Evaluation | Sequence[Evaluation]  # several: one a seed
Chance = Mapping[str, float]  # metric -> its mean for the best of the random lists


def difference(more: Judged, less: Judged, metric: str) -> Difference:
    """A metric of the first less that of the second, with a 95 % interval."""
    key = Key.from_seed(0).at("bootstrap")
    return paired_bootstrap(more, less, key=key, resamples=_RESAMPLES)[metric]


def is_above(
    text: str,
    more: Judged,
    less: Judged,
    *,
    metric: str,
    chance: Chance,
    name: str | None = None,
) -> Claim:
    """Holds if the whole interval is above zero; `name` is what the paper calls it."""
    found = difference(more, less, metric)
    claim = Claim(text, found.low > 0, evidence(found, name or metric))
    return is_learnt(claim, _mean(more, metric), chance[metric])


def is_learnt(claim: Claim, mean: float, best: float) -> Claim:
    """The claim, if the mean it speaks of is above the best of the random lists."""
    where = "above" if mean > best else "not above"
    bar = f"{mean:.3g} is {where} the best of {LISTS} random lists, {best:.3g}"
    return Claim(claim.text, claim.ok and mean > best, f"{claim.evidence}; {bar}")


def is_above_for_seeds(
    text: str,
    more: Sequence[Evaluation],
    less: Sequence[Evaluation],
    *,
    metric: str,
    chance: Chance,
    name: str | None = None,
) -> Claim:
    """Holds if the interval over users and the one over seeds are both above zero.

    For seeds that rank the same users. The interval over users takes the trainings as
    they are; the one over seeds speaks of other trainings. A single seed has none.
    """
    over_users = is_above(text, more, less, metric=metric, chance=chance, name=name)
    if len(more) == 1:
        return over_users
    low, high = over_seeds(more, less, metric)
    shown = f"{over_users.evidence}; {low:+.3f} to {high:+.3f} over {len(more)} seeds"
    return Claim(text, over_users.ok and low > 0, shown)


def over_seeds(
    more: Sequence[Evaluation], less: Sequence[Evaluation], metric: str
) -> tuple[float, float]:
    """Student's 95 % interval of a metric's difference, of which each seed has one."""
    check.at_least(2, seeds=len(more))
    found = [
        float(np.mean(a.values[metric] - b.values[metric]))
        for a, b in zip(more, less, strict=True)
    ]
    quantile = float(stdtrit(len(found) - 1, 0.975))
    reach = quantile * float(np.std(found, ddof=1)) / math.sqrt(len(found))
    middle = float(np.mean(found))
    return middle - reach, middle + reach


def is_close(
    text: str,
    one: Judged,
    other: Judged,
    *,
    metric: str,
    within: float,
    chance: Chance,
    name: str | None = None,
) -> Claim:
    """Holds if the whole interval of one less the other is above `-within`."""
    found = difference(one, other, metric)
    claim = Claim(text, found.low >= -within, evidence(found, name or metric))
    return is_learnt(claim, _mean(one, metric), chance[metric])


def _mean(judged: Judged, metric: str) -> float:
    """The mean over users and seeds."""
    every = [judged] if isinstance(judged, Evaluation) else judged
    return float(np.mean([one.values[metric].mean() for one in every]))


def on_shared_users(
    one: Sequence[Evaluation], other: Sequence[Evaluation]
) -> tuple[list[Evaluation], list[Evaluation]]:
    """Both with the users whom both were judged on, seed by seed.

    For cells of different sizes: `data.subset` gives a user the same number in each.
    """
    pairs = [_both(a, b) for a, b in zip(one, other, strict=True)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _both(a: Evaluation, b: Evaluation) -> tuple[Evaluation, Evaluation]:
    users = np.intersect1d(a.users, b.users)
    return _only(a, users), _only(b, users)


def _only(evaluation: Evaluation, users: np.ndarray) -> Evaluation:
    order = np.argsort(evaluation.users, kind="stable")
    rows = order[np.searchsorted(evaluation.users, users, sorter=order)]
    values = {name: value[rows] for name, value in evaluation.values.items()}
    return Evaluation(evaluation.protocol, users, values, Groups.everyone(len(users)))


def evidence(found: Difference, name: str) -> str:
    """A difference in words."""
    return (
        f"{name} {found.mean:+.3f}, 95 % interval {found.low:+.3f} to "
        f"{found.high:+.3f}, {found.n:,} users"
    )
