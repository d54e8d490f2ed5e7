"""A baseline fitted on a split, and read by evaluation as inner products if it can."""

from __future__ import annotations

from tacit.baselines.ranker import CatalogRanker, FactorFitted, Fitted, Ranker
from tacit.data.splits import Split
from tacit.evaluation.ranking import Factors, Scorer
from tacit.keys import Key


def fit(ranker: Ranker, split: Split, *, key: Key) -> Fitted:
    """The ranker fitted on the training clients, with the catalog if it reads it."""
    if isinstance(ranker, CatalogRanker):
        ranker = ranker.reading(split.catalog)
    return ranker.fit(split.train, key=key)


def scorer(fitted: Fitted) -> Scorer:
    """The factors of a baseline whose scores are inner products, else its scores."""
    if not isinstance(fitted, FactorFitted):
        return fitted.score
    return Factors(lambda _users, history: fitted.represent(history), fitted.items)
