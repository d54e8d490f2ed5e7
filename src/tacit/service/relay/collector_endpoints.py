"""What a relay hands to a collector, and what the collector's operator asks of it.

    GET  /v1/epochs                that it is there                                relay
    PUT  /v1/batches/{id}          shuffled messages: 201, 200 if it is there      relay
    POST /v1/epochs/{id}/closing   that is all of it                               relay
    GET  /v1/status                where the run is                             operator
    POST /v1/retire                end the run                                  operator

| status | when |
|---|---|
| 400, 413 | a batch of another form or length |
| 404, 410 | an epoch that is not known, or over |
| 409 | other bytes under an id; a batch too late; a closing that does not fit |
| 412 | fewer uploads than both operators have signed |

What everybody may fetch is what a coordinator has (`PublicEndpoints`).
"""

from __future__ import annotations

import asyncio

import msgspec

from tacit.service.federation.coarse import floored
from tacit.service.http import Asked, Endpoint, Reply, greet
from tacit.service.own_trouble import own_trouble
from tacit.service.relay.batches import MOST_BATCH_BYTES
from tacit.service.relay.collector import Collector

_SECONDS = 60.0  # for a body to arrive
_MOST_CLOSING = 2**25


class CollectorEndpoints:
    """The private listener of a collector."""

    def __init__(self, collector: Collector, *, relay: bytes, own: bytes) -> None:
        self.collector = collector
        batch, epoch = "/v1/batches/([0-9a-f]{32})", "/v1/epochs/([0-9a-f]{64})/closing"
        self.endpoints = [
            Endpoint("epochs", "GET", "/v1/epochs", greet, (relay,)),
            Endpoint("batches", "PUT", batch, self._take, (relay,)),
            Endpoint("closing", "POST", epoch, self._close, (relay,)),
            Endpoint("status", "GET", "/v1/status", self._status, (own,)),
            Endpoint("retire", "POST", "/v1/retire", self._retire, (own,)),
        ]

    async def _take(self, asked: Asked) -> Reply:
        batch = bytes.fromhex(asked.parts[0])
        body = await asked.body(MOST_BATCH_BYTES, seconds=_SECONDS, what="batch")
        with own_trouble():
            return Reply(await asyncio.to_thread(self.collector.take, batch, body))

    async def _close(self, asked: Asked) -> Reply:
        epoch = bytes.fromhex(asked.parts[0])
        body = await asked.body(_MOST_CLOSING, seconds=_SECONDS, what="closing")
        with own_trouble():
            return Reply(
                await asyncio.to_thread(self.collector.close_epoch, epoch, body)
            )

    async def _retire(self, _: Asked) -> Reply:
        with own_trouble():
            await asyncio.to_thread(self.collector.retire)
        return Reply(200, b"{}")

    async def _status(self, _: Asked) -> Reply:
        found = await asyncio.to_thread(status, self.collector)
        return Reply(200, msgspec.json.encode(found))


def status(collector: Collector) -> dict[str, object]:
    """Where a run is, for its operator; counts as the operator's page shows them."""
    invitation = collector.run.invitation
    return {
        "run": invitation.run.hex(),
        "state": collector.state.text,
        "title": invitation.title,
        "rounds_planned": invitation.plan.rounds,
        "rounds": [
            {
                "round": row.number,
                "state": row.state,
                "meaning": collector.meanings[row.state],
                "leaf": "messages",
                "opens": row.manifest.opens,
                "closes": row.manifest.closes,
                "reports": floored(row.uploads, invitation.least_reports),
                "round_id": row.manifest.round_id.hex(),
                "why": row.why,
            }
            for row in collector.epochs()
        ],
        "is_published": collector.is_published,
        "is_retired": collector.is_retired,
        "is_over": collector.is_over,
        "withheld": collector.withheld or None,
        "trouble": collector.trouble or None,
    }
