"""The server's side of a private query: bytes in, the best items out.

    server = QueryServer(model)
    best = server.answer(message, 200)     # items and scores, the best first

It ranks the whole pool by an exact scan. It cannot know what a user has seen, so it is
asked for more items than are shown and the client leaves out what it has. How many more
is public and fixed: a number that followed the history would tell something about it.
A server keeps no query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit import check
from tacit.serving.query import Query
from tacit.serving.served_model import ServedModel
from tacit.serving.topk import Best, FactorIndex

_NOTHING_SEEN = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class QueryServer:
    """Ranks for clients that send a query of one model."""

    model: ServedModel

    def answer(self, message: bytes | Query, count: int) -> Best:
        """The best `count` items for the user vector that the query stands for."""
        check.count(count=count)
        query = message if isinstance(message, Query) else Query.decode(message)
        # The offset of an item is a factor of its own, which every user has once.
        user = np.ones(self._index.factors.shape[1], np.float32)
        user[:-1] = self.model.decode(query)
        return self._index.best(user, _NOTHING_SEEN, k=count, is_alone=False)

    @cached_property
    def _index(self) -> FactorIndex:
        space = self.model.space
        return FactorIndex.of(np.column_stack([space.vectors, space.offsets]))
