"""More items than rows: those beyond the first share rows with items alike to them.

A fold is a matrix P of one row a group and one column an item, with one number in each
column (an item's share) and rows of norm 1, so that P Pᵀ = I: folding never makes a
vector longer, and Pᵀ gives back what a row can know of its items. An item's share is
proportional to how much of the histories' length it is expected to have: in a group the
frequent items speak, and rare ones whisper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from scipy.sparse import csr_array

from tacit.models.content_similarity import Content

_LEADING = 0.25  # of the rows have followers
_LEAST = 1e-3  # of a count: noise makes some of them negative

Items = Int64[np.ndarray, "items"]


@dataclass(frozen=True, eq=False)
class Fold:
    """Which row each item is in, and its share of it."""

    rows: Items
    shares: Float64[np.ndarray, "items"]
    n_rows: int

    def folded(
        self, x: Float64[np.ndarray, "users items"]
    ) -> Float64[np.ndarray, "users rows"]:
        """P x for every user."""
        places = (np.arange(len(self.rows)), self.rows)
        matrix = csr_array((self.shares, places), shape=(len(self.rows), self.n_rows))
        return np.asarray(x @ matrix)

    def unfolded(
        self, y: Float64[np.ndarray, "users rows"]
    ) -> Float64[np.ndarray, "users items"]:
        """Pᵀ y for every user."""
        return y[:, self.rows] * self.shares


def fold_of(
    counts: Float64[np.ndarray, "items"],
    weights: Float64[np.ndarray, "items"],
    *,
    head: Items,
    content: Content,
    n_rows: int,
) -> Fold:
    """Every later item of the head with the most alike of the rows that lead.

    The first three quarters of the rows are an item each; the items of the last quarter
    lead a group. `counts` are those of the head.
    """
    first = n_rows - max(1, round(_LEADING * n_rows))
    alike = content.between(head[n_rows:], head[first:n_rows])
    strangers = np.arange(len(alike)) % (n_rows - first)  # alike to none: spread evenly
    leaders = np.where(alike.any(axis=1), alike.argmax(axis=1), strangers)
    rows = np.concatenate([np.arange(n_rows), first + leaders])
    energy = np.maximum(counts, _LEAST) * weights**2
    total = np.bincount(rows, weights=energy, minlength=n_rows)
    return Fold(rows, np.sqrt(energy / total[rows]), n_rows)
