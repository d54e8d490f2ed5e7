"""Evaluates a ranker: scores in, an `Evaluation` out."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.data.impressions import Impressions
from tacit.data.splits import Heldout, HeldoutPart
from tacit.errors import BadValue
from tacit.evaluation.candidate_sets import (
    EachTargetAlone,
    FullRanking,
    ShownCandidates,
)
from tacit.evaluation.coverage import coverage
from tacit.evaluation.impressions import evaluate_impressions
from tacit.evaluation.metrics import COVERAGE, Measure, parse
from tacit.evaluation.ranking import Candidates, Progress, Scorer, rank
from tacit.evaluation.slate_scores import slate_scorer
from tacit.evaluation.user_groups import by_activity
from tacit.results import Evaluation, Groups

METRICS = ("ndcg@100", "recall@20", "recall@50")  # those of Liang et al. 2018
Protocol = Candidates | ShownCandidates

_NEEDS_ALONE = "evaluate with the protocol EachTargetAlone"


def evaluate(
    score: Scorer,
    heldout: HeldoutPart,
    *,
    metrics: Sequence[str] = METRICS,
    protocol: Protocol | None = None,
    groups: Groups | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Rank everybody's targets with `score` and measure.

    `score` gives a score for every item from histories alone; larger is better. Pass
    `ranking.Factors` where scores are inner products: it is much faster. Groups are
    tertiles of history length unless given. `EachTargetAlone` goes with the metrics
    that end in `_each`, and they with no other protocol. Users are ranked among all
    items unless another protocol is given; impressions among what was shown, and with
    no other protocol. `progress` is told how many of them have been ranked.
    """
    if isinstance(heldout, Impressions):
        _refuse_other_than_shown(protocol)
        scored = slate_scorer(score)
        return evaluate_impressions(
            scored, heldout, metrics=metrics, groups=groups, progress=progress
        )
    grouped = groups or _by_history(heldout)
    among = _of_users(protocol)
    return _evaluate_users(score, heldout, metrics, among, grouped, progress)


def _evaluate_users(
    score: Scorer,
    heldout: Heldout,
    metrics: Sequence[str],
    protocol: Candidates,
    groups: Groups,
    progress: Progress | None,
) -> Evaluation:
    measures = {name: parse(name) for name in metrics}
    of_catalog = {name: m for name, m in measures.items() if m.kind == COVERAGE}
    _refuse_partial_coverage(of_catalog, protocol)
    _refuse_mixed(measures, protocol)
    # Once, for all metrics.
    ranks = rank(score, heldout, candidates=protocol, progress=progress)
    return Evaluation(
        protocol.name,
        heldout.users,
        {n: measure(ranks) for n, measure in measures.items() if n not in of_catalog},
        groups,
        {n: coverage(score, heldout, k=m.k or 1) for n, m in of_catalog.items()},
    )


def _by_history(heldout: Heldout) -> Groups:
    return by_activity(heldout.history.lengths)


def _of_users(protocol: Protocol | None) -> Candidates:
    if isinstance(protocol, ShownCandidates):
        raise BadValue(
            f"'{protocol.name}' goes with impressions, and users are held out here; "
            "divide the data by time or by part"
        )
    return FullRanking() if protocol is None else protocol


def _refuse_other_than_shown(protocol: Protocol | None) -> None:
    if protocol is not None and not isinstance(protocol, ShownCandidates):
        raise BadValue(
            f"'{protocol.name}' goes with held-out users; impressions are ranked among "
            f"'{ShownCandidates().name}'"
        )


def _refuse_partial_coverage(
    of_catalog: dict[str, Measure], protocol: Candidates
) -> None:
    if of_catalog and not isinstance(protocol, FullRanking):
        raise BadValue(
            f"metric '{next(iter(of_catalog))}' needs a full ranking, not "
            f"'{protocol.name}'; drop it or change the protocol"
        )


def _refuse_mixed(measures: dict[str, Measure], protocol: Candidates) -> None:
    """Refuses metrics of a target alone with targets among others, and the reverse."""
    is_alone = isinstance(protocol, EachTargetAlone)
    wrong = [name for name, m in measures.items() if m.is_each != is_alone]
    if wrong:
        remedy = "write 'hr_each@k' or 'ndcg_each@k'" if is_alone else _NEEDS_ALONE
        raise BadValue(
            f"metric '{wrong[0]}' does not go with '{protocol.name}'; {remedy}"
        )
