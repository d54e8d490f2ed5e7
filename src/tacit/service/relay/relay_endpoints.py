"""What a collector asks of a relay, over HTTP, with the secret of the pair.

    POST   /v1/signatures      a manifest's JSON     its signature
    POST   /v1/epochs          a signed manifest     its id
    GET    /v1/epochs          that it is there
    GET    /v1/epochs/{id}     its state, and how many uploads once they are forwarded
    DELETE /v1/epochs/{id}     destroy it: the collector gives it up

While an epoch is open the collector hears nothing of it, not even how many came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

import msgspec

from tacit.service.http import BINARY, Asked, Endpoint, Endpoints, Reply, greet
from tacit.service.own_trouble import own_trouble
from tacit.service.relay.relay import Relay
from tacit.service.signed_document import MOST_BYTES

_SECONDS = 30.0  # for a body to arrive
_EPOCH = "/v1/epochs/([0-9a-f]{64})"
T = TypeVar("T")


class RelayEndpoints:
    """The private listener of a relay."""

    def __init__(self, relay: Relay, worker: Executor, *, collector: bytes) -> None:
        self.relay, self.worker, mine = relay, worker, (collector,)
        self.application = Endpoints(
            [
                Endpoint("signatures", "POST", "/v1/signatures", self._sign, mine),
                Endpoint("epochs", "GET", "/v1/epochs", greet, mine),
                Endpoint("epochs", "POST", "/v1/epochs", self._open, mine),
                Endpoint("epochs", "GET", _EPOCH, self._status, mine),
                Endpoint("epochs", "DELETE", _EPOCH, self._void, mine),
            ]
        )

    async def _sign(self, asked: Asked) -> Reply:
        document = await asked.body(MOST_BYTES, seconds=_SECONDS, what="manifest")
        return _bytes(await self._work(self.relay.sign, document))

    async def _open(self, asked: Asked) -> Reply:
        sent = await asked.body(MOST_BYTES, seconds=_SECONDS, what="manifest")
        return _bytes(await self._work(self.relay.open, sent))

    async def _status(self, asked: Asked) -> Reply:
        found = await self._work(self.relay.status, bytes.fromhex(asked.parts[0]))
        told = {"state": found.state, "uploads": found.uploads}
        return Reply(200, msgspec.json.encode(told))

    async def _void(self, asked: Asked) -> Reply:
        await self._work(self.relay.void, bytes.fromhex(asked.parts[0]))
        return Reply(200, b"{}")

    async def _work(self, work: Callable[..., T], *args: object) -> T:
        """What the relay's one thread gives for it."""
        with own_trouble():
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.worker, work, *args)


def _bytes(content: bytes) -> Reply:
    return Reply(200, content, BINARY.encode())
