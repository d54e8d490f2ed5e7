"""Catalog coverage: which share of the items anybody is shown."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from tacit.data.ragged import Ragged
from tacit.data.splits import Heldout
from tacit.evaluation.candidate_sets import FullRanking
from tacit.evaluation.heldout_users import chunks
from tacit.evaluation.ranking import Scorer, Scores, score_matrix


def coverage(score: Scorer, heldout: Heldout, *, k: int) -> float:
    """The expected share of the catalog in at least one user's first k.

    Where the k-th rank is tied, each user's list is one of the possible ones at
    random, independently of the others'. Scores everybody once more.
    """
    n_items = heldout.history.n_items
    missed = np.ones(n_items)
    for chunk in chunks(heldout, width=n_items):
        scores = score_matrix(score, chunk)
        chance = chance_of_first(scores, FullRanking().excluded(chunk), k)
        missed *= np.prod(1.0 - chance, axis=0)  # users break ties independently
    return float(1.0 - missed.mean())


def chance_of_first(
    scores: Scores, excluded: Ragged, k: int
) -> Float64[np.ndarray, "users items"]:
    """The probability that an item is among a user's first k candidates."""
    is_candidate = np.ones(scores.shape, bool)
    is_candidate[excluded.owners, excluded.values] = False
    ranked = np.where(is_candidate, scores, -np.inf)
    rank = max(0, scores.shape[1] - k)
    # A partition finds the k-th largest score without sorting the row.
    last = np.partition(ranked, rank, axis=1)[:, rank, None]
    is_above, is_tied = is_candidate & (ranked > last), is_candidate & (ranked == last)
    left = k - is_above.sum(axis=1, keepdims=True)
    share = np.minimum(left / np.maximum(is_tied.sum(axis=1, keepdims=True), 1), 1.0)
    return is_above + is_tied * share
