"""More items than rows: later items share rows with items alike to them.

A fold is a matrix P with one row per group and one column per item, with one number in
each column (an item's share) and rows of norm 1, so that P Pᵀ = I: folding never makes
a vector longer, and Pᵀ gives back what a row can know of its items. The square of an
item's share is proportional to its expected part of the squared norm of histories, so
frequent items dominate their group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from scipy.sparse import csr_array

from tacit.models.content_similarity import Content

_LEADING = 0.25  # fraction of the rows that later items share
_LEAST = 1e-3  # the least count: noise makes some of them negative

Items = Int64[np.ndarray, "items"]


@dataclass(frozen=True, eq=False)
class Fold:
    """The row of each item, and its share in that row."""

    rows: Items
    shares: Float64[np.ndarray, "items"]
    n_rows: int

    def folded(
        self, x: Float64[np.ndarray, "users items"]
    ) -> Float64[np.ndarray, "users rows"]:
        """The folded history P x of every user."""
        places = (np.arange(len(self.rows)), self.rows)
        matrix = csr_array((self.shares, places), shape=(len(self.rows), self.n_rows))
        return np.asarray(x @ matrix)

    def unfolded(
        self, y: Float64[np.ndarray, "users rows"]
    ) -> Float64[np.ndarray, "users items"]:
        """The unfolded row Pᵀ y of every user, over items again."""
        return y[:, self.rows] * self.shares


def fold_of(
    counts: Float64[np.ndarray, "items"],
    weights: Float64[np.ndarray, "items"],
    *,
    head: Items,
    content: Content,
    n_rows: int,
) -> Fold:
    """A fold in which every later item joins the most similar leading row.

    The first three quarters of the rows have one item each; the items of the last
    quarter lead a group each. `counts` are those of the head.
    """
    first = n_rows - max(1, round(_LEADING * n_rows))
    alike = content.between(head[n_rows:], head[first:n_rows])
    strangers = np.arange(len(alike)) % (n_rows - first)  # alike to none: spread evenly
    leaders = np.where(alike.any(axis=1), alike.argmax(axis=1), strangers)
    rows = np.concatenate([np.arange(n_rows), first + leaders])
    energy = np.maximum(counts, _LEAST) * weights**2
    total = np.bincount(rows, weights=energy, minlength=n_rows)
    return Fold(rows, np.sqrt(energy / total[rows]), n_rows)
