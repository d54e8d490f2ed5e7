"""Judge a ranker: scores in, an `Evaluation` out."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.data.splits import Heldout
from tacit.errors import BadValue
from tacit.evaluation.activity import by_activity
from tacit.evaluation.coverage import coverage
from tacit.evaluation.metrics import COVERAGE, Measure, parse
from tacit.evaluation.protocols import FullRanking
from tacit.evaluation.ranking import Candidates, Scorer, rank
from tacit.results import Evaluation, Groups

METRICS = ("ndcg@100", "recall@20", "recall@50")
FULL_RANKING = FullRanking()


def evaluate(
    score: Scorer,
    heldout: Heldout,
    *,
    metrics: Sequence[str] = METRICS,
    protocol: Candidates = FULL_RANKING,
    groups: Groups | None = None,
) -> Evaluation:
    """Rank everybody's targets with `score` and measure.

    `score` gives a score for every item from histories alone; larger is better. Pass
    `ranking.Factors` where scores are inner products: it is much faster. Groups are
    tertiles of history length unless given.
    """
    measures = {name: parse(name) for name in metrics}
    of_catalog = {name: m for name, m in measures.items() if m.kind == COVERAGE}
    _refuse_sampled_coverage(of_catalog, protocol)
    ranks = rank(score, heldout, candidates=protocol)
    return Evaluation(
        protocol.name,
        heldout.users,
        {n: measure(ranks) for n, measure in measures.items() if n not in of_catalog},
        by_activity(heldout.history.lengths) if groups is None else groups,
        {n: coverage(score, heldout, k=m.k or 1) for n, m in of_catalog.items()},
    )


def _refuse_sampled_coverage(
    of_catalog: dict[str, Measure], protocol: Candidates
) -> None:
    if of_catalog and not isinstance(protocol, FullRanking):
        raise BadValue(
            f"metric '{next(iter(of_catalog))}' needs a full ranking, not "
            f"'{protocol.name}'; drop it or change the protocol"
        )
