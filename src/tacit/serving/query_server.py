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

from tacit import check
from tacit.serving.query import Query
from tacit.serving.query_mechanism import Said
from tacit.serving.served_model import ServedModel
from tacit.serving.topk import Best, EqualLists, FactorIndex

_MOST_CHOICES = 1000  # lists that are ranked beforehand: 12 MB with 1,000 items each


@dataclass(frozen=True, eq=False)
class QueryServer:
    """Ranks for clients that send a query of one model."""

    model: ServedModel
    known: EqualLists | None = None  # of all that can be said

    def answer(self, message: bytes | Query, count: int) -> Best:
        """The best `count` items for the user vector that the query stands for."""
        return self.answers([message], count)[0]

    def answers(self, messages: Sequence[bytes | Query], count: int) -> EqualLists:
        """One list per query; many together take less time than one by one."""
        check.count(count=count)
        said = self.model.read(messages)
        if self.known is not None and count <= self.known.items.shape[1]:
            return self.known.beginnings(said[:, 0], count)
        return self._ranked(said, count)

    def prepared(self, most: int) -> QueryServer:
        """A server that knows its lists of up to `most` items, where they are few."""
        choices = self.model.mechanism.choices
        if choices is None or choices > _MOST_CHOICES:
            return self
        return replace(self, known=self._ranked(np.arange(choices)[:, None], most))

    def _ranked(self, said: Said, count: int) -> EqualLists:
        # The offset of an item is a factor of its own, which every user has once.
        users = np.ones((len(said), self._index.factors.shape[1]), np.float32)
        users[:, :-1] = self.model.mechanism.decode(said)
        return self._index.of_all(users, k=count)

    @cached_property
    def _index(self) -> FactorIndex:
        space = self.model.space
        return FactorIndex.of(np.column_stack([space.vectors, space.offsets]))
