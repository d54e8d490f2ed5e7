"""A fitted baseline as evaluation wants it: by inner products where it can."""

from __future__ import annotations

from tacit.baselines.ranker import FactorFitted, Fitted
from tacit.evaluation.ranking import Factors, Scorer


def scorer(fitted: Fitted) -> Scorer:
    """Its factors if its scores are inner products, else its scores."""
    if not isinstance(fitted, FactorFitted):
        return fitted.score
    return Factors(lambda _users, history: fitted.represent(history), fitted.items)
