"""Reports on their way into the leader: read, counted together, answered.

    POST /v1/rounds/{round_id}/reports

| status | when | the client then |
|---|---|---|
| 200 | counted, on both disks; also for the same id again | deletes its copy |
| 400, 413 | another length; a half does not open | drops it, never writes it anew |
| 401, 403 | no ticket of this operator; used by another report | drops it |
| 404, 409, 410 | unknown round; closed, and the report is not in it; over | gives up |
| 408, 429, 503 | late, too many, helper away, disk full | sends the same bytes again |
| 426 | a client of another protocol | says so |

Whatever arrives while a batch is counted is the next batch. A few reports wait a moment
for company: the total is written once per batch, which for one report alone costs more
than everything else.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from tacit.errors import BadMessage
from tacit.service.federation.aggregator import NO_TICKET, Aggregator, Upload
from tacit.service.federation.sealing import SealedReport, SumManifest
from tacit.service.federation.seed_batches import MOST_REPORTS
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
    too_long,
)
from tacit.service.intake_room import IntakeRoom, refuse_early

_COUNTED = Reply(200)


@dataclass(frozen=True)
class IntakeLimits:
    """What a leader takes on at once."""

    queue_bytes: int = 96 * 2**20  # of reports that are read or wait to be counted
    batch_bytes: int = 48 * 2**20
    open: int = 2048  # uploads at once
    seconds: float = 30.0  # for a report to arrive
    linger: float = 0.1  # seconds that a small batch waits for company
    few: int = 24  # reports that make a batch too large to wait


class Intake:
    """The public listener of a leader, as an ASGI application."""

    def __init__(
        self, aggregator: Aggregator, worker: Executor, limits: IntakeLimits
    ) -> None:
        self.aggregator, self.limits = aggregator, limits
        self.room = IntakeRoom(
            "reports", bytes=limits.queue_bytes, requests=limits.open
        )
        self.tickets = TicketCheck(
            aggregator.store, NO_TICKET, is_needed=aggregator.limits.needs_tickets
        )
        groups = GroupLimits(
            count=MOST_REPORTS,
            bytes=limits.batch_bytes,
            linger=limits.linger,
            few=limits.few,
        )
        self._grouped: GroupedWork[Upload, None] = GroupedWork(
            aggregator.admit,
            worker,
            groups,
            otherwise=_NOT_COUNTED,
            answering=lambda: aggregator.passing("before_answers"),
        )
        path = "/v1/rounds/([0-9a-f]{64})/reports"
        endpoint = Endpoint("reports", "POST", path, self._take)
        self._endpoints = Endpoints([endpoint], count=self._count)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._endpoints(scope, receive, send)

    def _count(self, name: str, status: int) -> None:
        if status != 200:
            self.aggregator.tally.refuse(str(status))

    async def _take(self, asked: Asked) -> Reply:
        round_id = bytes.fromhex(asked.parts[0])
        manifest = self.aggregator.known(round_id)
        size, ticket = self._checked_size(asked, manifest), bearer(asked.scope)
        owner = (round_id, ticket) if self.tickets.check(ticket) else None
        seconds = self.limits.seconds
        body = IncomingBody(asked.receive, size, seconds=seconds, what=_REPORT)
        with self.room.hold(body, owner):
            report = _report(await body.read(), manifest)
            refuse_early("round", manifest.opens, self.aggregator.clock())
            upload = Upload(report, ticket)
            await self._grouped.done(round_id, upload.id, upload, size=size)
        return _COUNTED

    @staticmethod
    def _checked_size(asked: Asked, manifest: SumManifest) -> int:
        """The one length that reports of this round have; refuses another."""
        size = manifest.fields.body_bytes
        told = asked.length(_ANY_LENGTH, _REPORT)
        if told < size:
            said = f"a body of {told} bytes; every {_REPORT} has {size}"
            raise Failure(400, "BadMessage", said, connection="close")
        if told > size:
            raise too_long(size, _REPORT)
        return size


def _report(body: memoryview, manifest: SumManifest) -> SealedReport:
    try:
        report = SealedReport.read(body, numbers=manifest.fields.numbers)
    except BadMessage as error:
        raise Failure(400, "BadMessage", str(error)) from None
    if report.round_id != manifest.round_id:
        said = "the report was made for another round than it was sent to"
        raise Failure(400, "OtherRound", said)
    return report


_REPORT = "report of this round"
_ANY_LENGTH = 10**15  # bytes: the report has its own length, which is compared
_NOT_COUNTED = Failure(
    *(503, "NotCounted"),
    "the report could not be counted just now; send the same bytes again",
    retry_after=5,
)
