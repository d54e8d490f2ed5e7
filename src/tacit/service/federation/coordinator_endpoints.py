"""What everybody may fetch from a coordinator, and what its operator asks of it.

    GET  /v1/invitation              what clients are invited to
    GET  /v1/manifest                the open round, signed by both aggregators
    GET  /v1/manifest/{round_id}     an earlier one, for clients that were away
    GET  /v1/broadcast/{sha256}      what clients are sent in a round
    GET  /v1/rotation                new signing keys, signed by the old ones
    GET  /v1/new_items               items that came after the catalog
    GET  /v1/model, /v1/candidates   the published model (`service.application`)

All of it is the same for everybody, without cookies; an ETag names content and nobody.
The operator's own listener has, with a secret:

    GET  /v1/status                  where the run is
    POST /v1/open, close, publish    what otherwise happens by the clock
    POST /v1/retire                  end the run
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from tacit.service.application import application
from tacit.service.federation.coarse import floored
from tacit.service.federation.coordinator import Coordinator
from tacit.service.federation.stepwise_run import StepwiseRun
from tacit.service.http import (
    ASK_AGAIN,
    BINARY,
    FOR_EVER,
    Asked,
    Endpoint,
    Endpoints,
    Failure,
    Handler,
    Reply,
    has_tag,
    header,
)
from tacit.service.own_trouble import own_trouble
from tacit.service.run_offer import run_offer


class PublicEndpoints:
    """The listener that clients reach, as an ASGI application."""

    def __init__(
        self,
        coordinator: StepwiseRun[Any],
        *,
        rotation: Path | None = None,
        new_items: Callable[[], bytes] | None = None,
    ) -> None:
        self.coordinator, self._rotation = coordinator, rotation
        self._fresh = new_items
        invitation = coordinator.run.invitation
        self._invitation = invitation.encode()
        self._tag = invitation.digest.hex()
        self._model: ASGIApp | None = None
        self._own = Endpoints(
            [
                Endpoint("invitation", "GET", "/v1/invitation", self._invite),
                Endpoint("manifest", "GET", "/v1/manifest", self._manifest),
                Endpoint(
                    "manifest", "GET", "/v1/manifest/([0-9a-f]{64})", self._earlier
                ),
                Endpoint(
                    "broadcast", "GET", "/v1/broadcast/([0-9a-f]{64})", self._broadcast
                ),
                Endpoint("rotation", "GET", "/v1/rotation", self._rotate),
                Endpoint("new_items", "GET", "/v1/new_items", self._new_items),
                Endpoint("model", "GET", "/v1/(?:model|candidates).*", self._no_model),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_model = scope["type"] == "http" and scope["path"].startswith(
            ("/v1/model", "/v1/candidates", "/v1/basis", "/v1/topk")
        )
        if is_model and self.coordinator.is_published:
            if self._model is None:
                folder = self.coordinator.published_run
                self._model = application(await asyncio.to_thread(run_offer, folder))
            await self._model(scope, receive, send)
            return
        await self._own(scope, receive, send)

    async def _invite(self, asked: Asked) -> Reply:
        return _content(asked, self._invitation, self._tag, ASK_AGAIN)

    async def _manifest(self, asked: Asked) -> Reply:
        public = self.coordinator.public
        found = public.open
        if public.ended:
            said = f"the run is over without a model: {public.ended}"
            raise Failure(410, "Ended", said)
        if found is None:
            said = "no round is open; ask again later"
            raise Failure(404, "NoRound", said)
        return _content(asked, found[1], found[0], ASK_AGAIN)

    async def _earlier(self, asked: Asked) -> Reply:
        found = self.coordinator.public.manifests.get(asked.parts[0])
        if found is None:
            said = "no round that was opened has this id; get /v1/manifest again"
            raise Failure(404, "NotFound", said)
        return _content(asked, found, asked.parts[0], FOR_EVER)

    async def _broadcast(self, asked: Asked) -> Reply:
        found = self.coordinator.public.broadcasts.get(asked.parts[0])
        if found is None:
            said = "no broadcast has this digest; get /v1/manifest again"
            raise Failure(404, "NotFound", said)
        return _content(asked, found, asked.parts[0], FOR_EVER)

    async def _rotate(self, asked: Asked) -> Reply:
        if self._rotation is None or not self._rotation.exists():
            raise Failure(404, "NoRotation", "the operators' keys are the first ones")
        content = await asyncio.to_thread(self._rotation.read_bytes)
        return Reply(200, content, BINARY.encode())

    async def _new_items(self, asked: Asked) -> Reply:
        if self._fresh is None:
            raise Failure(404, "NoNewItems", "the model knows every item there is")
        content = await asyncio.to_thread(self._fresh)
        return _content(asked, content, sha256(content).hexdigest(), ASK_AGAIN)

    async def _no_model(self, _: Asked) -> Reply:
        said = "no model has been published yet; ask again when the last round is over"
        why = self.coordinator.withheld
        if why:
            said = f"the model of this run is not published, keep the old one: {why}"
        raise Failure(404, "NoModel", said)


class CoordinatorsOwn:
    """The listener of the coordinator's operator."""

    def __init__(self, coordinator: Coordinator, *, secret: bytes) -> None:
        self.coordinator, mine = coordinator, (secret,)
        found = [Endpoint("status", "GET", "/v1/status", self._status, mine)]
        for what in ("open", "close", "publish"):
            want = self._wanting(what)
            found.append(Endpoint(what, "POST", f"/v1/{what}", want, mine))
        found.append(Endpoint("retire", "POST", "/v1/retire", self._retire, mine))
        self.endpoints = found

    def _wanting(self, what: str) -> Handler:
        async def want(_: Asked) -> Reply:
            self.coordinator.want(what)
            return Reply(202, b"{}")

        return want

    async def _retire(self, _: Asked) -> Reply:
        with own_trouble():
            await asyncio.to_thread(self.coordinator.retire)
        return Reply(200, b"{}")

    async def _status(self, _: Asked) -> Reply:
        found = await asyncio.to_thread(status, self.coordinator)
        return Reply(200, msgspec.json.encode(found))


def status(coordinator: Coordinator) -> dict[str, object]:
    """Where a run is, for its operator; counts as the operator's page shows them."""
    rounds = coordinator.rounds()
    least = coordinator.run.invitation.least_reports
    return {
        "run": coordinator.run.invitation.run.hex(),
        "state": coordinator.state.text,
        "title": coordinator.run.invitation.title,
        "rounds_planned": coordinator.run.invitation.plan.rounds,
        "rounds": [
            {
                "round": row.number,
                "state": row.state,
                "meaning": coordinator.meanings[row.state],
                "leaf": row.manifest.fields.leaf,
                "opens": row.manifest.opens,
                "closes": row.manifest.closes,
                "reports": floored(row.reports, least),
                "round_id": row.manifest.round_id.hex(),
                "why": row.why,
            }
            for row in rounds
        ],
        "is_published": coordinator.is_published,
        "withheld": coordinator.withheld or None,
        "is_retired": coordinator.is_retired,
        "is_over": coordinator.is_over,
        "trouble": coordinator.trouble or None,
    }


def _content(asked: Asked, content: bytes, tag: str, keep: str) -> Reply:
    """Public content under its tag, or that the client has it already."""
    more = ((b"etag", f'"{tag}"'.encode()),)
    known = (header(asked.scope, b"if-none-match") or b"").decode("latin-1")
    if has_tag(known, f'"{tag}"'):
        return Reply(304, more=more, keep=keep.encode())
    return Reply(200, content, BINARY.encode(), more, keep.encode())
