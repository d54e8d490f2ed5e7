"""How many users are shown an item that they never chose."""

from __future__ import annotations

import numpy as np

from tacit import check
from tacit.data.splits import Heldout
from tacit.errors import BadValue
from tacit.evaluation.candidate_sets import FullRanking
from tacit.evaluation.coverage import chance_of_first
from tacit.evaluation.heldout_users import chunks
from tacit.evaluation.ranking import Scorer, score_matrix
from tacit.results import Metric


def exposure(score: Scorer, heldout: Heldout, item: int, *, k: int = 10) -> Metric:
    """The share of users with the item in their first k, of those it is nothing to.

    These are the users who have it neither in their history nor among their targets.
    Where the k-th rank is tied, the chance that the item is among the first.
    """
    check.count(k=k)
    n_items = heldout.history.n_items
    if not 0 <= item < n_items:
        raise BadValue(f"item={item} must be in [0, {n_items})")
    shown = []
    for chunk in chunks(heldout, width=n_items):
        excluded = FullRanking().excluded(chunk)
        # A user's own items are not shown again, as in any full ranking.
        chance = chance_of_first(score_matrix(score, chunk), excluded, k)[:, item]
        has_it = np.zeros(len(chunk.users), bool)
        for events in (chunk.history.histories, chunk.targets.histories):
            has_it[events.owners[events.values == item]] = True
        shown.append(chance[~has_it])
    strangers = np.concatenate(shown)
    if not len(strangers):
        raise BadValue(f"everybody has item {item}; choose another to promote")
    return Metric.of(strangers)
