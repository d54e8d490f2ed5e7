"""News are evaluated impression by impression: only what was shown is ranked.

    auc, ndcg@k   as in `metrics.py`, the clicked candidates being the targets
    mrr_all       mean over the clicked of 1 / rank: what MIND calls MRR
    mrr, hr@k, …  as in `metrics.py`: `mrr` is 1 / rank of the first clicked one

An impression in which nothing or everything was clicked has no right order; it is left
out of every metric and counted. Means are over impressions. A user's impressions
resemble each other, so standard errors are clustered by user.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int32

from tacit.data.impressions import Impressions, Slates
from tacit.data.ragged import offsets_of
from tacit.errors import BadValue
from tacit.evaluation.metrics import COVERAGE, parse
from tacit.evaluation.ranking import Ranks
from tacit.evaluation.user_groups import by_activity
from tacit.results import Groups

METRICS = ("auc", "mrr_all", "ndcg@5", "ndcg@10")
PROTOCOL = "shown candidates"

_SCORED_AT_ONCE = 2**20  # candidates; a scorer may hold a vector for each

# Slates in, a score for each of `slates.shown.values` out; larger is better.
SlateScorer = Callable[[Slates], Float[np.ndarray, "candidates"]]
PerImpression = Float64[np.ndarray, "impressions"]


@dataclass(frozen=True)
class ImpressionMetric:
    """A mean over `n` impressions and its standard error, clustered by user."""

    mean: float
    se: float | None
    n: int
    n_users: int

    @classmethod
    def of(
        cls, values: PerImpression, users: Int32[np.ndarray, "impressions"]
    ) -> ImpressionMetric:
        """The mean of one value per impression; without a second user no error."""
        mean, n = float(values.mean()), len(values)
        _, cluster = np.unique(users, return_inverse=True)
        strays = np.bincount(cluster, weights=values - mean)  # one sum per user
        n_users = len(strays)
        if n_users < 2:
            return cls(mean, None, n, n_users)
        # The sandwich estimator of a mean with clusters, corrected for few of them.
        variance = float((strays**2).sum()) * n_users / (n_users - 1)
        return cls(mean, math.sqrt(variance) / n, n, n_users)

    def to_json(self) -> dict[str, Any]:
        """The mean, its standard error and both counts, as plain data."""
        return {"mean": self.mean, "se": self.se, "n": self.n, "n_users": self.n_users}


@dataclass(frozen=True, eq=False)
class ImpressionEvaluation:
    """One ranker evaluated on some impressions: one number each for every metric."""

    users: Int32[np.ndarray, "impressions"]
    values: Mapping[str, PerImpression]
    groups: Groups
    left_out: int  # impressions without a right order

    def metrics(self) -> dict[str, ImpressionMetric]:
        """The mean of every metric over all impressions."""
        return _means(self.values, self.users)

    def by_group(self) -> dict[str, dict[str, ImpressionMetric]]:
        """The same within each group that has impressions."""
        chosen = {
            label: self.groups.member_of == number
            for number, label in enumerate(self.groups.labels)
        }
        return {
            label: _means(
                {n: v[mine] for n, v in self.values.items()}, self.users[mine]
            )
            for label, mine in chosen.items()
            if mine.any()
        }

    def minus(self, other: ImpressionEvaluation) -> dict[str, ImpressionMetric]:
        """The mean differences to another evaluation of the same impressions."""
        same = np.array_equal(self.users, other.users)
        if not same or set(self.values) != set(other.values):
            raise BadValue(
                "the evaluations are of different impressions or metrics; evaluate "
                "both rankers alike"
            )
        differences = {name: v - other.values[name] for name, v in self.values.items()}
        return _means(differences, self.users)

    def to_json(self) -> dict[str, Any]:
        """Summaries in `metrics` and `groups`, and how many were left out."""
        return {
            "protocol": PROTOCOL,
            "metrics": _plain(self.metrics()),
            "groups": {label: _plain(m) for label, m in self.by_group().items()},
            "left_out": self.left_out,
        }


def evaluate_impressions(
    score: SlateScorer,
    impressions: Impressions,
    *,
    metrics: Sequence[str] = METRICS,
    groups: Groups | None = None,
) -> ImpressionEvaluation:
    """Rank the candidates of every impression with `score` and measure.

    `score` is handed slates, which do not tell the clicks, about a million candidates
    at a time. Groups are tertiles of history length unless given, one entry for each
    impression that is judged.
    """
    measures = {name: _measure(name) for name in metrics}
    is_judged = judged(impressions)
    if not is_judged.any():
        raise BadValue("no impression has both a clicked and an unclicked candidate")
    some = impressions.keep(is_judged)
    ranks = Ranks.concatenate([_rank(score, part) for part in _chunks(some)])
    lengths = some.slates.history_lengths
    return ImpressionEvaluation(
        some.users,
        {name: measure(ranks) for name, measure in measures.items()},
        by_activity(lengths) if groups is None else groups,
        len(impressions) - len(some),
    )


def judged(impressions: Impressions) -> Bool[np.ndarray, "impressions"]:
    """Which impressions have both a clicked and an unclicked candidate."""
    n_clicked = impressions.n_clicked
    return (n_clicked > 0) & (n_clicked < impressions.slates.shown.lengths)


def mrr_all(ranks: Ranks) -> PerImpression:
    """The mean over targets of one over the rank, as in MIND's own evaluation."""
    most = int((ranks.above + ranks.tied).max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, most + 1))])
    # The mean of 1 / rank over the ranks that a block of ties covers.
    each = (harmonic[ranks.above + ranks.tied] - harmonic[ranks.above]) / ranks.tied
    return np.add.reduceat(each, ranks.offsets[:-1]) / ranks.n_targets


def _measure(name: str) -> Callable[[Ranks], PerImpression]:
    if name == "mrr_all":
        return mrr_all
    measure = parse(name)
    if measure.kind == COVERAGE:
        raise BadValue(f"metric '{name}' is of a whole catalog, not of impressions")
    return measure


def _chunks(impressions: Impressions) -> Iterator[Impressions]:
    """Runs of impressions with a bounded number of candidates, at least one each."""
    part = impressions.slates.shown.offsets[:-1] // _SCORED_AT_ONCE
    for number in np.unique(part):
        yield impressions.keep(part == number)


def _rank(score: SlateScorer, impressions: Impressions) -> Ranks:
    """The rank of every clicked candidate in its impression, ties counted."""
    slates, clicked = impressions.slates, impressions.clicked
    owners = slates.shown.owners
    scores = _scores(score, slates)
    order = np.lexsort((-scores, owners))
    ordered, group = scores[order], owners[order]
    starts = np.ones(len(order), bool)
    starts[1:] = (np.diff(group) != 0) | (ordered[1:] != ordered[:-1])
    first = np.flatnonzero(starts)  # of each block of ties
    block = np.cumsum(starts) - 1
    above, tied = np.empty_like(order), np.empty_like(order)
    above[order] = first[block] - slates.shown.offsets[group]
    tied[order] = np.diff(first, append=len(order))[block]
    offsets = offsets_of(impressions.n_clicked)
    return Ranks(offsets, above[clicked], tied[clicked], slates.shown.lengths)


def _scores(score: SlateScorer, slates: Slates) -> Float64[np.ndarray, "candidates"]:
    scores = np.asarray(score(slates), np.float64)
    expected = (len(slates.shown.values),)
    if scores.shape != expected:
        raise BadValue(f"scores have shape {scores.shape}, expected {expected}")
    if np.isnan(scores).any():
        row = slates.shown.owners[np.isnan(scores)][0]
        raise BadValue(f"user {slates.users[row]} has a NaN score")
    return scores


def _means(
    values: Mapping[str, PerImpression], users: Int32[np.ndarray, "impressions"]
) -> dict[str, ImpressionMetric]:
    return {name: ImpressionMetric.of(v, users) for name, v in values.items()}


def _plain(metrics: Mapping[str, ImpressionMetric]) -> dict[str, dict[str, Any]]:
    return {name: metric.to_json() for name, metric in metrics.items()}
