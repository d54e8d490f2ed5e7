"""News are evaluated impression by impression: only what was shown is ranked.

Metrics are those of `metrics.py`, and the clicked candidates are the targets: `mrr_all`
is what MIND calls MRR, `mrr` is 1 / rank of the first clicked one.

An impression in which nothing or everything was clicked has no right order; it is left
out of every metric and counted. Means are over impressions. A user's impressions
resemble each other, so standard errors are clustered by user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Float64

from tacit.data.impressions import Impressions, Slates
from tacit.data.ragged import offsets_of
from tacit.errors import BadValue, Diverged
from tacit.evaluation.candidate_sets import ShownCandidates
from tacit.evaluation.metrics import COVERAGE, Measure, parse
from tacit.evaluation.ranking import Progress, Ranks
from tacit.evaluation.user_groups import by_activity
from tacit.results import Evaluation, Groups

METRICS = ("auc", "mrr_all", "ndcg@5", "ndcg@10")
PROTOCOL = ShownCandidates().name

_SCORED_AT_ONCE = 2**20  # candidates; a scorer may hold a vector for each

# Slates in, a score for each of `slates.shown.values` out; larger is better.
SlateScorer = Callable[[Slates], Float[np.ndarray, "candidates"]]


def evaluate_impressions(
    score: SlateScorer,
    impressions: Impressions,
    *,
    metrics: Sequence[str] = METRICS,
    groups: Groups | None = None,
    progress: Progress | None = None,
) -> Evaluation:
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
    parts, done = [], 0
    for chunk in _chunks(some):
        parts.append(_rank(score, chunk))
        done += len(chunk)
        if progress is not None:
            progress(done, len(some))
    ranks = Ranks.concatenate(parts)
    lengths = some.slates.history_lengths
    return Evaluation(
        PROTOCOL,
        some.users.astype(np.int64),
        {name: measure(ranks) for name, measure in measures.items()},
        by_activity(lengths) if groups is None else groups,
        per="impression",
        left_out=len(impressions) - len(some),
    )


def judged(impressions: Impressions) -> Bool[np.ndarray, "impressions"]:
    """Which impressions have both a clicked and an unclicked candidate."""
    n_clicked = impressions.n_clicked
    return (n_clicked > 0) & (n_clicked < impressions.slates.shown.lengths)


def _measure(name: str) -> Measure:
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
        raise Diverged(f"user {slates.users[row]} has a NaN score")
    return scores
