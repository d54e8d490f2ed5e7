"""What the operators and the coordinator ask of an aggregator, over HTTP.

    PUT    /v1/keys/{run}/{round}              the key of a round          coordinator
    POST   /v1/signatures                      a manifest's JSON           coordinator
    POST   /v1/rounds                          a signed manifest           coordinator
    GET    /v1/rounds                          that it is there            both
    GET    /v1/rounds/{id}                     its state                   coordinator
    PUT    /v1/rounds/{id}/batches/{batch}     sealed seeds                leader
    POST   /v1/rounds/{id}/close               what is published           coordinator
    DELETE /v1/rounds/{id}                     forget it                   coordinator

Each needs the secret of its pair. None of it is on the listener that clients reach.
`close` answers 202 while it computes: ask again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

import msgspec

from tacit.service.federation.aggregator import Aggregator
from tacit.service.federation.sealing import ID_BYTES, Role
from tacit.service.federation.seed_batches import MOST_BATCH_BYTES
from tacit.service.http import (
    BINARY,
    LOG,
    Asked,
    Endpoint,
    Endpoints,
    Reply,
    greet,
)
from tacit.service.own_trouble import own_trouble
from tacit.service.signed_document import MOST_BYTES

_SECONDS = 30.0  # for a body to arrive
_MOST_CHOSEN = 2**20 * ID_BYTES  # a million batches
_ROUND = "/v1/rounds/([0-9a-f]{64})"
T = TypeVar("T")


class OperatorEndpoints:
    """The private listener of an aggregator."""

    def __init__(
        self,
        aggregator: Aggregator,
        worker: Executor,
        *,
        coordinator: bytes,
        leader: bytes = b"",
    ) -> None:
        self.aggregator, self.worker = aggregator, worker
        self._computing: dict[bytes, asyncio.Task[None]] = {}
        mine = (coordinator,)
        found = [
            Endpoint(
                "keys", "PUT", "/v1/keys/([0-9a-f]{32})/([0-9]{1,9})", self._key, mine
            ),
            Endpoint("signatures", "POST", "/v1/signatures", self._sign, mine),
            Endpoint("rounds", "GET", "/v1/rounds", greet, (coordinator, leader)),
            Endpoint("rounds", "POST", "/v1/rounds", self._open, mine),
            Endpoint("rounds", "GET", _ROUND, self._status, mine),
            Endpoint("rounds", "DELETE", _ROUND, self._delete, mine),
            Endpoint("close", "POST", f"{_ROUND}/close", self._close, mine),
        ]
        if aggregator.role is Role.HELPER:
            path = f"{_ROUND}/batches/([0-9a-f]{{32}})"
            found.append(Endpoint("batches", "PUT", path, self._take, (leader,)))
        self.application = Endpoints(found)

    async def _key(self, asked: Asked) -> Reply:
        run, number = bytes.fromhex(asked.parts[0]), int(asked.parts[1])
        return _bytes(await self._work(self.aggregator.round_key, run, number))

    async def _sign(self, asked: Asked) -> Reply:
        document = await asked.body(MOST_BYTES, seconds=_SECONDS, what="manifest")
        return _bytes(await self._work(self.aggregator.sign, document))

    async def _open(self, asked: Asked) -> Reply:
        sent = await asked.body(MOST_BYTES, seconds=_SECONDS, what="manifest")
        return _bytes(await self._work(self.aggregator.open, sent))

    async def _status(self, asked: Asked) -> Reply:
        round_id = bytes.fromhex(asked.parts[0])
        state, reports = await self._work(self.aggregator.status, round_id)
        return Reply(200, msgspec.json.encode({"state": state, "reports": reports}))

    async def _take(self, asked: Asked) -> Reply:
        round_id, batch = (bytes.fromhex(part) for part in asked.parts)
        body = await asked.body(MOST_BATCH_BYTES, seconds=_SECONDS, what="batch")
        return _bytes(await self._work(self.aggregator.take, round_id, batch, body))

    async def _close(self, asked: Asked) -> Reply:
        round_id = bytes.fromhex(asked.parts[0])
        chosen = None
        if self.aggregator.role is Role.HELPER:
            what = "set of batches"
            chosen = await asked.body(_MOST_CHOSEN, seconds=_SECONDS, what=what)
        result = await self._work(self.aggregator.close, round_id, chosen)
        if result is not None:
            return _bytes(result)
        if round_id not in self._computing:
            self._computing[round_id] = asyncio.create_task(self._compute(round_id))
        return Reply(202, b"{}", more=((b"retry-after", b"1"),))

    async def _compute(self, round_id: bytes) -> None:
        """Compute what is published, beside everything else, and keep it."""
        try:
            result = await asyncio.to_thread(self.aggregator.compute, round_id)
            await self._work(self.aggregator.finish, round_id, result)
        except Exception as error:
            LOG.error("a round could not be closed: %s", type(error).__name__)
        finally:
            del self._computing[round_id]

    async def _delete(self, asked: Asked) -> Reply:
        await self._work(self.aggregator.delete, bytes.fromhex(asked.parts[0]))
        return Reply(200, b"{}")

    async def _work(self, work: Callable[..., T], *args: object) -> T:
        """What the aggregator's one thread gives for it."""
        with own_trouble():
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.worker, work, *args)


def _bytes(content: bytes) -> Reply:
    return Reply(200, content, BINARY.encode())
