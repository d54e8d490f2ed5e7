"""The server's side of a private query: bytes in, the best items out.

    server = QueryServer(model)
    best = server.answer(message, 200)     # items and scores, the best first

It ranks the whole pool by an exact scan. It cannot know what a user has seen, so it is
asked for more items than are shown and the client leaves out what it has. How many more
is public and fixed: a number that followed the history would tell something about it.
A server keeps no query.

    server = QueryServer(model).prepared(1000)

Where only a few things can be said, as in krr, a server that answers many clients ranks
for all of them beforehand. It must not rank for one when it is first said: how long an
answer takes would tell the next client that nobody has said it before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Integer

from tacit import check
from tacit.data.ragged import Ragged
from tacit.serving.query import Query
from tacit.serving.query_mechanism import Said
from tacit.serving.served_model import ServedModel
from tacit.serving.topk import Best, FactorIndex, Lists

_NOTHING = np.zeros(0, np.int32)
_MOST_CHOICES = 1000  # lists that are ranked beforehand: 12 MB with 1,000 items each


@dataclass(frozen=True, eq=False)
class QueryServer:
    """Ranks for clients that send a query of one model."""

    model: ServedModel
    known: Lists | None = None  # of all that can be said, each of the same length

    def answer(self, message: bytes | Query, count: int) -> Best:
        """The best `count` items for the user vector that the query stands for."""
        return self.answers([message], count)[0]

    def answers(self, messages: Sequence[bytes | Query], count: int) -> Lists:
        """One list per query; many together take less time than one by one."""
        check.count(count=count)
        said = self.model.read(messages)
        if self.known is None or count > self._length:
            return self._ranked(said, count)
        return _beginnings(self.known, said[:, 0], count)

    def prepared(self, most: int) -> QueryServer:
        """A server that knows its lists of up to `most` items, where they are few."""
        choices = self.model.mechanism.choices
        if choices is None or choices > _MOST_CHOICES:
            return self
        every = np.arange(choices)[:, None]
        length = min(most, len(self.model.space.vectors))
        return replace(self, known=self._ranked(every, length))

    def _ranked(self, said: Said, count: int) -> Lists:
        # The offset of an item is a factor of its own, which every user has once.
        users = np.ones((len(said), self._index.factors.shape[1]), np.float32)
        users[:, :-1] = self.model.mechanism.decode(said)
        nothing_seen = Ragged.of_lengths(np.zeros(len(users), np.int64), _NOTHING)
        return self._index.top_k(users, nothing_seen, k=count, is_alone=False)

    @cached_property
    def _index(self) -> FactorIndex:
        space = self.model.space
        return FactorIndex.of(np.column_stack([space.vectors, space.offsets]))

    @cached_property
    def _length(self) -> int:
        """The number of items of each list that is known."""
        return 0 if self.known is None else len(self.known[0].items)


def _beginnings(
    lists: Lists, which: Integer[np.ndarray, "queries"], count: int
) -> Lists:
    """The first `count` places of some of these lists, which have one length."""
    shape = (len(lists), -1)
    items = lists.items.reshape(shape)[which, :count].ravel()
    scores = lists.scores.reshape(shape)[which, :count].ravel()
    return Lists(np.arange(len(which) + 1) * count, items, scores)
