"""The same list for everybody: what users took lately.

score(j) = sum over users with j of 2 ** -(age / half-life)

The age is that of the user's last event with the item, counted back from the last event
of all that is trained on. In a log of news, what stands in a history has no time of its
own and counts as read long ago: nothing but clicks on what was shown counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit import check
from tacit.baselines.popularity import FittedPopularity
from tacit.baselines.ranker import Grid
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

_HOUR = 3600.0  # seconds


@dataclass(frozen=True)
class RecentPopularity:
    """Ranks by how many users have an item, recent ones before others.

    Counts end where training ends, and so do not know of the hours that are tested.
    """

    half_life: float = 24.0  # hours after which an event counts half

    # Hours for news; 30 and 180 days for what stays new for longer.
    GRID: ClassVar[Grid] = {"half_life": (3.0, 12.0, 24.0, 72.0, 720.0, 4320.0)}

    def __post_init__(self) -> None:
        check.positive(half_life=self.half_life)

    def fit(self, train: Shards, *, key: Key) -> FittedPopularity:
        """Adds up, for every item, how recent its users' events are; draws nothing."""
        if train.times is None:
            raise BadValue(
                "recent_popularity needs the times of events, and these have none; "
                "use popularity"
            )
        ages = (train.times.max(initial=0) - train.times) / _HOUR
        weights = np.exp2(-ages / self.half_life)
        pairs = train.owners * np.int64(train.n_items) + train.items
        # The latest of a user's events with an item stands last and is the one kept.
        order = np.lexsort((weights, pairs))
        is_last = np.append(np.diff(pairs[order]) != 0, True)[: len(order)]
        kept = order[is_last]
        counts = np.bincount(train.items[kept], weights[kept], train.n_items)
        return FittedPopularity(counts.astype(np.float32))
