"""The protocol of every baseline: fit on histories, fold a person in, score."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from jaxtyping import Float

from tacit.data.shards import Shards
from tacit.keys import Key

Scores = Float[np.ndarray, "people items"]


class Fitted(Protocol):
    """A fitted ranker; people it never saw fold in by their history alone."""

    def score(self, history: Shards) -> Scores:
        """A score for every item of the catalog; larger is better."""
        ...


class Ranker(Protocol):
    """Hyper-parameters of a baseline; a frozen dataclass."""

    def fit(self, train: Shards, *, key: Key) -> Fitted:
        """Learn from everybody's history."""
        ...
