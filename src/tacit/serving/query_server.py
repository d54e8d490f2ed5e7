"""The server's side of a private query: bytes in, the best items out.

    server = QueryServer(model)
    best = server.answer(message, 200)     # items and scores, the best first

It ranks the whole pool by an exact scan. It cannot know what a user has seen, so it is
asked for more items than are shown and the client leaves out what it has. How many more
is public and fixed: a number that followed the history would tell something about it.
A server keeps no query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit import check
from tacit.data.ragged import Ragged
from tacit.serving.query import Query
from tacit.serving.served_model import ServedModel
from tacit.serving.topk import Best, FactorIndex, Lists

_NOTHING = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class QueryServer:
    """Ranks for clients that send a query of one model."""

    model: ServedModel

    def answer(self, message: bytes | Query, count: int) -> Best:
        """The best `count` items for the user vector that the query stands for."""
        return self.answers([message], count)[0]

    def answers(self, messages: Sequence[bytes | Query], count: int) -> Lists:
        """One list per query; many together take less time than one by one."""
        check.count(count=count)
        # The offset of an item is a factor of its own, which every user has once.
        users = np.ones((len(messages), self._index.factors.shape[1]), np.float32)
        users[:, :-1] = self.model.decode_all(messages)
        nothing_seen = Ragged.of_lengths(np.zeros(len(users), np.int64), _NOTHING)
        return self._index.top_k(users, nothing_seen, k=count, is_alone=False)

    @cached_property
    def _index(self) -> FactorIndex:
        space = self.model.space
        return FactorIndex.of(np.column_stack([space.vectors, space.offsets]))
