"""Queries that arrive together are ranked together, which takes less time for each.

A query waits for those that can be read in the same turn of the event loop, and for
none that comes later: under little load it is alone. Its list is the same in whichever
company it is ranked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tacit.errors import BadMessage
from tacit.service.metrics import Metrics
from tacit.service.offer import RankedItems, Ranker

_Found = RankedItems | BaseException
_Waiting = tuple[bytes, asyncio.Future[RankedItems]]


class Batches:
    """The queries that wait for the end of this turn of the event loop."""

    def __init__(self, ranker: Ranker, metrics: Metrics) -> None:
        self._ranker, self._metrics = ranker, metrics
        self._waiting: dict[int, list[_Waiting]] = {}  # by the number of items

    async def best(self, message: bytes, count: int) -> RankedItems:
        """The best items for a query; raises what the ranker says against it."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._rank_all)
        answer: asyncio.Future[RankedItems] = loop.create_future()
        self._waiting.setdefault(count, []).append((message, answer))
        return await answer

    def _rank_all(self) -> None:
        batches, self._waiting = self._waiting, {}
        began = time.perf_counter()
        for count, batch in batches.items():
            found = self._rank([message for message, _ in batch], count)
            for (_, answer), one in zip(batch, found, strict=True):
                if answer.done():  # whoever asked is gone
                    continue
                if isinstance(one, BaseException):
                    answer.set_exception(one)
                else:
                    answer.set_result(one)

        self._metrics.ranking_seconds += time.perf_counter() - began

    def _rank(self, messages: Sequence[bytes], count: int) -> Sequence[_Found]:
        """A list or a refusal for each query; one that is refused harms no other."""
        try:
            found = self._ranker.answers(messages, count)
            return [found[i] for i in range(len(messages))]
        except BadMessage as error:
            if len(messages) == 1:
                return [error]
            return [self._rank([message], count)[0] for message in messages]
        except Exception as error:
            return [error] * len(messages)
