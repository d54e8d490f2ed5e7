"""Content similarity: candidates whose text is like what the user has read.

score(j) = h · v_j,   h the mean of v_i over the items of the history, repeats included

v is the vector of an item's text less the mean over all items with a text. Without it
every two texts of a catalog are alike, and what is common to all says nothing of one.
Nothing is learnt from anybody: it is what a news recommender has to beat that trains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32

from tacit.baselines.ranker import Grid, Scores, Vectors
from tacit.data import features
from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.data.text_vectors import vector_name
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.news_vectors import centred

Centred = Float32[np.ndarray, "items factors"]


@dataclass(frozen=True)
class Content:
    """Similarity to the mean of the history, by the vectors of one text of the items.

    An item without a text is like nothing, and so is every item to who has read none.
    """

    text: str = "title"

    GRID: ClassVar[Grid] = {}

    def reading(self, catalog: Catalog) -> ReadContent:
        """The vectors in the catalog, centred."""
        name = vector_name(self.text)
        column = catalog.features.get(name)
        if not isinstance(column, features.Vectors):
            raise BadValue(
                f"text={self.text!r} needs the feature '{name}' of vectors; the "
                f"catalog has {', '.join(sorted(catalog.features)) or 'no features'}; "
                f"set data.text_vectors = ['{self.text}']"
            )
        return ReadContent(centred(column.values))

    def fit(self, train: Shards, *, key: Key) -> FittedContent:
        """Refused: shards say nothing of the items' texts."""
        raise BadValue("content reads the catalog: fit `reading(catalog)` instead")


@dataclass(frozen=True, eq=False)
class ReadContent:
    """Content similarity with the vectors it needs."""

    vectors: Centred

    GRID: ClassVar[Grid] = {}

    def fit(self, train: Shards, *, key: Key) -> FittedContent:
        """The vectors as they are: nothing is learnt, nothing is random."""
        return FittedContent(self.vectors)


@dataclass(frozen=True, eq=False)
class FittedContent:
    """Centred vectors of the items; a score is an inner product."""

    items: Centred

    def represent(self, history: Shards) -> Vectors:
        """The mean of what each has read; zeros for who has read nothing."""
        ones = np.ones(len(history.items), np.float32)
        shape = (len(history), history.n_items)
        read = sp.csr_array((ones, history.items, history.offsets), shape=shape)
        total = np.asarray(read @ self.items)
        return total / np.maximum(history.lengths, 1).astype(np.float32)[:, None]

    def score(self, history: Shards) -> Scores:
        """The inner products with all items."""
        return self.represent(history) @ self.items.T
