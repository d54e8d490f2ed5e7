"""Requests that are worked off together: one flush of the disk for all that wait.

Whatever arrives while a group is worked off is the next group. A few wait a moment for
company, since a flush costs the same for one as for hundreds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, TypeVar

from tacit.service.http import LOG, Failure

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class GroupLimits:
    """How large a group may be, and how long a small one waits."""

    count: int = 512
    bytes: int = 48 * 2**20
    linger: float = 0.004  # seconds
    few: int = 24  # requests that make a group too large to wait


@dataclass
class _Waiting(Generic[Item, Answer]):
    name: tuple[bytes, bytes]  # what it is about, and its own id
    item: Item
    size: int
    answer: asyncio.Future[Failure | Answer]


class GroupedWork(Generic[Item, Answer]):
    """Hands groups to `work` in a thread; each item gets the answer of its own.

    An item that comes a second time while the first one waits gets the same answer.
    """

    def __init__(
        self,
        work: Callable[[bytes, Sequence[Item]], Sequence[Failure | Answer]],
        worker: Executor,
        limits: GroupLimits,
        *,
        otherwise: Failure,
        answering: Callable[[], None] = lambda: None,
    ) -> None:
        self._work, self._worker, self._limits = work, worker, limits
        self._otherwise, self._answering = otherwise, answering
        self._waiting: list[_Waiting[Item, Answer]] = []
        self._pending: dict[tuple[bytes, bytes], asyncio.Future[Failure | Answer]] = {}
        self._task: asyncio.Task[None] | None = None

    async def done(self, about: bytes, id: bytes, item: Item, *, size: int) -> Answer:
        """The answer for an item, once its group is worked off; raises a refusal."""
        name = (about, id)
        answer = self._pending.get(name)
        if answer is None:
            answer = asyncio.get_running_loop().create_future()
            self._pending[name] = answer
            self._waiting.append(_Waiting(name, item, size, answer))
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._work_all())
        found = await asyncio.shield(answer)
        if isinstance(found, Failure):
            raise found
        return found

    async def _work_all(self) -> None:
        while self._waiting:
            if len(self._waiting) < self._limits.few:
                await asyncio.sleep(self._limits.linger)
            group = self._next_group()
            answers = await self._answers(group)
            self._answering()
            for one, found in zip(group, answers, strict=True):
                self._pending.pop(one.name, None)
                if not one.answer.done():
                    one.answer.set_result(found)

    def _next_group(self) -> list[_Waiting[Item, Answer]]:
        """The next items about one thing, as many as a group may have."""
        about, size = self._waiting[0].name[0], 0
        group: list[_Waiting[Item, Answer]] = []
        rest: list[_Waiting[Item, Answer]] = []
        for one in self._waiting:
            fits = size + one.size <= self._limits.bytes or not group
            if one.name[0] == about and fits and len(group) < self._limits.count:
                group.append(one)
                size += one.size
            else:
                rest.append(one)
        self._waiting = rest
        return group

    async def _answers(
        self, group: list[_Waiting[Item, Answer]]
    ) -> Sequence[Failure | Answer]:
        items = [one.item for one in group]
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(
                self._worker, self._work, group[0].name[0], items
            )
        except Failure as error:
            return [error] * len(group)
        except Exception as error:  # the disk; its message may hold what was sent
            LOG.error("a group of requests failed: %s", type(error).__name__)
            return [self._otherwise] * len(group)
