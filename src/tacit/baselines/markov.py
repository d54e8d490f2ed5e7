"""A first-order Markov chain: what was taken next after each of the items held.

n(i, j)    how many users took j next after i; within a second the table's order counts
P(j | i) = (n(i, j) + smoothing q(j)) / (n(i) + smoothing), q the share of j in events
score(j) = Σ over held i of weight(i) P(j | i)

By default an item weighs 1 / (1 + number of later ones): the last one most, as in a
chain, and what it says little of is filled by those before. Fitted by counting; nobody
has transitions of their own, as in Rendle et al. 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32

from tacit import check
from tacit.baselines.matrix import weighted_by_items
from tacit.baselines.ranker import Grid, Scores
from tacit.data.shards import Shards
from tacit.keys import Key
from tacit.models.histories import ListFor


@dataclass(frozen=True)
class Markov:
    """Counted transitions, smoothed towards what is popular.

    Events stand in the order of time, or of the table where there are no times.
    """

    smoothing: float = 30.0  # transitions by popularity beside those that were counted
    list_for: ListFor = "session"  # in ranking only

    GRID: ClassVar[Grid] = {"smoothing": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)}

    def __post_init__(self) -> None:
        check.positive(smoothing=self.smoothing)
        check.one_of(get_args(ListFor), list_for=self.list_for)

    def fit(self, train: Shards, *, key: Key) -> FittedMarkov:
        """Count what follows what; nothing is random."""
        n = train.n_items
        one, other = train.items[:-1], train.items[1:]
        # A repeat leads nowhere, and the next user's first item follows nothing.
        is_step = (one != other) & (np.diff(train.owners) == 0)
        ones = np.ones(int(is_step.sum()), np.float32)
        steps = sp.csr_array((ones, (one[is_step], other[is_step])), shape=(n, n))
        sizes = np.asarray(steps.sum(axis=1), np.float32) + np.float32(self.smoothing)
        steps.data /= np.repeat(sizes, np.diff(steps.indptr))
        counts = np.bincount(train.items, minlength=n).astype(np.float32)
        return FittedMarkov(
            steps,
            np.float32(self.smoothing) / sizes,
            counts / max(np.float32(1), counts.sum()),
            self.list_for,
        )


@dataclass(frozen=True, eq=False)
class FittedMarkov:
    """The chain: what was counted, and how much each item leaves to popularity."""

    steps: sp.csr_array  # items × items
    rests: Float32[np.ndarray, "items"]
    shares: Float32[np.ndarray, "items"]
    list_for: ListFor

    def score(self, history: Shards) -> Scores:
        """Chances of what comes next, summed; without a history those of any event."""
        x = weighted_by_items(history, self.list_for)
        popular = np.asarray(x @ self.rests)
        popular[history.lengths == 0] = 1.0
        return np.asarray((x @ self.steps).toarray()) + popular[:, None] * self.shares
