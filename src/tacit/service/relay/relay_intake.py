"""Uploads on their way into a relay: read, kept together, answered.

    POST /v1/reports

| status | when | the client then |
|---|---|---|
| 202 | kept, on the disk | deletes its copy |
| 200 | the same upload again: it was kept before | deletes its copy |
| 400, 413 | another length or form, another epoch's | drops it, never writes it anew |
| 401, 403 | no ticket of this relay; used by another upload | drops it |
| 404, 409, 410 | unknown epoch; closed, and this upload is not in it; over | gives up |
| 408, 429, 503 | late, too many at once, disk or queue full | sends the same again |
| 426 | a client of another protocol | says so |

Nobody's address is looked at, and no request is logged.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import msgspec
from starlette.types import Receive, Scope, Send

from tacit.errors import BadMessage
from tacit.service.federation.tickets import TicketCheck
from tacit.service.grouped_work import GroupedWork, GroupLimits
from tacit.service.http import (
    Asked,
    Endpoint,
    Endpoints,
    Failure,
    IncomingBody,
    Reply,
    bearer,
)
from tacit.service.intake_room import IntakeRoom, refuse_early
from tacit.service.relay.relay import NO_TICKET, Arrived, Relay
from tacit.service.relay.uploads import EpochManifest, Upload, epoch_of

_LEAST_ROOM = 2**16  # bytes: what is late hears so, and not that it is too long
_UPLOAD = "upload of an epoch here"


@dataclass(frozen=True)
class RelayIntakeLimits:
    """What a relay takes on at once."""

    queue_bytes: int = 96 * 2**20  # of uploads that are read or wait to be kept
    open: int = 2048  # uploads at once
    seconds: float = 30.0  # for an upload to arrive
    linger: float = 0.05  # seconds that a small group waits for company
    few: int = 64  # uploads that make a group too large to wait
    group: int = 512  # uploads that are kept by one flush


class RelayIntake:
    """The public listener of a relay, as an ASGI application."""

    def __init__(
        self, relay: Relay, worker: Executor, limits: RelayIntakeLimits
    ) -> None:
        self.relay, self.limits = relay, limits
        self.room = IntakeRoom(
            "uploads", bytes=limits.queue_bytes, requests=limits.open
        )
        self.tickets = TicketCheck(
            relay.store, NO_TICKET, is_needed=relay.limits.needs_tickets
        )
        groups = GroupLimits(count=limits.group, linger=limits.linger, few=limits.few)
        self._grouped: GroupedWork[Arrived, int] = GroupedWork(
            relay.admit,
            worker,
            groups,
            otherwise=_NOT_KEPT,
            answering=lambda: relay.passing("before_answers"),
        )
        endpoint = Endpoint("reports", "POST", "/v1/reports", self._take)
        self._endpoints = Endpoints([endpoint], count=self._count)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._endpoints(scope, receive, send)

    def _count(self, name: str, status: int) -> None:
        if status not in (200, 202):
            self.relay.tally.refuse(str(status))

    async def _take(self, asked: Asked) -> Reply:
        size = asked.length(max(self.relay.largest, _LEAST_ROOM), _UPLOAD)
        ticket, seconds = bearer(asked.scope), self.limits.seconds
        owner = ticket if self.tickets.check(ticket) else None
        body = IncomingBody(asked.receive, size, seconds=seconds, what=_UPLOAD)
        with self.room.hold(body, owner):
            content = bytes(await body.read())
            manifest = self.relay.known(epoch_of(content))
            refuse_early("epoch", manifest.opens, self.relay.clock())
            upload = _upload(content, manifest)
            del content
            arrived = Arrived(upload, ticket)
            status = await self._grouped.done(
                manifest.round_id, upload.digest, arrived, size=size
            )
        stored = msgspec.json.encode({"stored": manifest.fields.reports_per_user})
        return Reply(status, stored)


def _upload(body: bytes, manifest: EpochManifest) -> Upload:
    most = manifest.fields.body_bytes
    if len(body) > most:
        said = f"a body of {len(body)} bytes; every {_UPLOAD} has {most}"
        raise Failure(413, "TooLong", said)
    try:
        return Upload.read(body, manifest)
    except BadMessage as error:
        raise Failure(400, "BadMessage", str(error)) from None


_NOT_KEPT = Failure(
    *(503, "NotKept"),
    "the upload could not be kept just now; send the same bytes again",
    retry_after=5,
)
