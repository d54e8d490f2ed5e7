"""The result of a split: training clients, and what is held out of whom.

A held-out part is of one of two kinds. `Heldout` users have items to be found in the
whole catalog; `Impressions` have clicks to be found among what was shown. Both have
`users`, rows of the profiles, and `first`. `evaluation.evaluate` ranks either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from tacit.data.catalog import Catalog, Profiles
from tacit.data.impressions import Impressions
from tacit.data.shards import Shards


@dataclass(frozen=True, eq=False)
class Heldout:
    """Users to rank for: what the ranker may see of each, and what it must find.

    `disliked` is hidden as the targets are, but not to be found: the user touched
    these items and rated them low. None where a split makes no such difference.
    """

    users: Int64[np.ndarray, "users"]  # rows of the data set's profiles
    history: Shards
    targets: Shards
    disliked: Shards | None = None

    def take(self, rows: Int64[np.ndarray, "some"]) -> Heldout:
        """Some of the users, in the order given."""
        disliked = None if self.disliked is None else self.disliked.take(rows)
        history, targets = self.history.take(rows), self.targets.take(rows)
        return Heldout(self.users[rows], history, targets, disliked)

    def first(self, n: int) -> Heldout:
        """The first `n` users."""
        return self if n >= len(self.users) else self.take(np.arange(n))


HeldoutPart = Heldout | Impressions


@dataclass(frozen=True, eq=False)
class Split:
    """A data set divided for honest evaluation; no target occurs in its history.

    Where impressions are held out, a user may both train and be ranked for: what
    happened first is trained on, what happened later is held out.
    """

    users: Int64[np.ndarray, "clients"]  # of the training clients: rows of the profiles
    train: Shards
    validation: HeldoutPart
    test: HeldoutPart
    catalog: Catalog
    profiles: Profiles
