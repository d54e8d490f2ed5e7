"""A fitted baseline as evaluation reads it: by inner products where possible."""

from __future__ import annotations

from tacit.baselines.ranker import FactorFitted, Fitted
from tacit.evaluation.ranking import Factors, Scorer


def scorer(fitted: Fitted) -> Scorer:
    """The factors of a baseline whose scores are inner products, else its scores."""
    if not isinstance(fitted, FactorFitted):
        return fitted.score
    return Factors(lambda _users, history: fitted.represent(history), fitted.items)
