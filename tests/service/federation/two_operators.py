"""A coordinator, a leader and a helper in one small server, for clients to be tested.

It opens the seals and adds up the halves as two operators do, keeps everything in
memory, and can be told to answer otherwise.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from service.manifests import changed
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.errors import BadMessage
from tacit.keys import Key
from tacit.method import Server as MethodServer
from tacit.plans import Plan
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.sealing import (
    Role,
    SealedReport,
    SumManifest,
    new_private_key,
    public_key,
)
from tacit.service.manifest import Manifest, attach_signatures
from tacit.service.server import Address, Server, listen, serve
from tacit.service.signed_document import signature, signing_public_key
from tacit.transport.channels import RoundContext, Sum
from tacit.transport.codec import encode_broadcast
from tacit.transport.shared_sum import from_bytes, published, stream

SIGNING = {Role.LEADER: bytes([11]) * 32, Role.HELPER: bytes([12]) * 32}
LEADER, HELPER = (signing_public_key(SIGNING[role]) for role in Role)
WINDOW = 3600


def invitation_of(name: str, method, plan: Plan, catalog: Catalog) -> Invitation:
    """An invitation to a run of these two operators."""
    return Invitation(name, method.calibrated(plan), plan, catalog, LEADER, HELPER)


@dataclass
class Round:
    """One open round: its manifest, keys, and the reports that came."""

    manifest: SumManifest
    message: bytes
    context: RoundContext
    private: dict[Role, bytes]
    sent: bytes
    reports: dict[bytes, bytes] = field(default_factory=dict)  # by report_id
    is_closed: bool = False


@dataclass
class TwoOperators:
    """All three services; `answers` are statuses to give instead, one per report."""

    invitation: Invitation
    key: Key = field(default_factory=lambda: Key.from_seed(1))
    url: str = ""
    rounds: list[Round] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)  # from which reports came
    files: dict[str, bytes] = field(default_factory=dict)  # paths to answer otherwise
    statuses: dict[str, int] = field(default_factory=dict)
    server: MethodServer = field(init=False)

    def __post_init__(self) -> None:
        made = self.invitation
        self.server = made.method.start(made.plan, made.catalog, self.key.at("start"))

    # rounds

    def open(self, *, signing=None, **changes) -> Round:
        """Open the next round; `changes` are of its manifest."""
        method, plan = self.invitation.method, self.invitation.plan
        broadcast = method.broadcast(self.server)
        context = method.context(
            self.server, broadcast, self.key.at("round", broadcast.round)
        )
        form = self.invitation.form(broadcast.phase)
        message = encode_broadcast(broadcast)
        private = {role: new_private_key() for role in Role}
        now = int(time.time())
        manifest = Manifest(
            run=self.invitation.run,
            round=broadcast.round,
            fields=form.fields,
            least_reports=plan.min_contributors,
            most_reports=plan.population,
            opens=now - 10,
            closes=now + WINDOW,
            broadcast=hashlib.sha256(message).digest(),
            url=self.url,
            keys={role.name.lower(): public_key(private[role]) for role in Role},
            previous=self.rounds[-1].manifest.round_id if self.rounds else b"",
        )
        manifest = changed(manifest, **changes)
        keys = signing or SIGNING
        signatures = {r.name.lower(): signature(manifest, keys[r]) for r in Role}
        sent = attach_signatures(manifest, signatures)
        self.rounds.append(Round(manifest, message, context, private, sent))
        return self.rounds[-1]

    def halves(self, round_: Round) -> dict[Role, np.ndarray]:
        """The sums of both operators, without noise."""
        n = round_.manifest.fields.numbers
        found = {role: np.zeros(n, np.uint32) for role in Role}
        for body in round_.reports.values():
            report = SealedReport.read(body, numbers=n)
            half = report.opened(Role.LEADER, round_.private[Role.LEADER])
            seed = report.opened(Role.HELPER, round_.private[Role.HELPER])
            found[Role.LEADER] += from_bytes(half, n)
            found[Role.HELPER] += stream(seed, n)
        return found

    def close(self) -> Sum:
        """Publish with the noise of the simulation's channel, and learn."""
        round_ = self.rounds[-1]
        round_.is_closed = True
        phase = self.invitation.method.broadcast(self.server).phase
        shared = self.invitation.form(phase).shared
        names = {Role.LEADER: "leader", Role.HELPER: "helper"}
        both = [
            published(
                halves,
                sigma=round_.manifest.fields.sigma,
                seed=round_.context.key.at(names[role]).secret_of(),
            )
            for role, halves in self.halves(round_).items()
        ]
        found = Sum(shared.decoded(both))
        self.server = self.invitation.method.aggregate(
            self.server, found, round_.context
        )
        return found

    # HTTP

    def application(self) -> Starlette:
        """The endpoints of coordinator and leader."""
        get, post = ["GET"], ["POST"]
        return Starlette(
            routes=[
                Route("/v1/rounds/{id}/reports", self._report, methods=post),
                Route("/{path:path}", self._file, methods=get),
            ]
        )

    async def _file(self, request: Request) -> Response:
        path = request.url.path
        self.requests.append(("GET", path, dict(request.headers)))
        if path in self.statuses:
            return _error(self.statuses[path], "Told", "as the test says")
        found = {"/v1/invitation": self.invitation.encode()}
        for one in self.rounds:
            found["/v1/manifest"] = one.sent
            found[f"/v1/manifest/{one.manifest.round_id.hex()}"] = one.sent
            found[f"/v1/broadcast/{one.manifest.broadcast.hex()}"] = one.message
        found |= self.files
        if path not in found:
            return _error(404, "NoRound", "nothing is here")
        return Response(found[path], media_type="application/octet-stream")

    async def _report(self, request: Request) -> Response:
        self.requests.append(("POST", request.url.path, dict(request.headers)))
        body = await request.body()
        self.bodies.append(body)
        assert request.client is not None
        self.ports.add(request.client.port)
        if self.answers:
            status = self.answers.pop(0)
            if status != 200:
                return _error(status, "Told", "as the test says")
        name = request.path_params["id"]
        round_ = next(
            (one for one in self.rounds if one.manifest.round_id.hex() == name), None
        )
        if round_ is None:
            return _error(404, "NoRound", "no such round")
        if round_.is_closed:
            return _error(409, "Closed", "the round is closed")
        try:
            report = SealedReport.read(body, numbers=round_.manifest.fields.numbers)
            report.opened(Role.LEADER, round_.private[Role.LEADER])
            report.opened(Role.HELPER, round_.private[Role.HELPER])
        except BadMessage as error:
            return _error(400, "BadMessage", str(error))
        round_.reports[report.report_id] = body
        return Response(b"")

    @contextlib.contextmanager
    def running(self) -> Iterator[TwoOperators]:
        """Real HTTP on a free port of this machine; stopped at the end."""
        listening, begun = listen(Address(port=0)), list[Server]()
        self.url = Address(port=listening.getsockname()[1]).url
        ready = threading.Event()

        def note(server: Server) -> None:
            begun.append(server)
            ready.set()

        thread = threading.Thread(
            target=serve,
            args=(self.application(), listening),
            kwargs={"started": note},
        )
        thread.start()
        try:
            assert ready.wait(20)
            yield self
        finally:
            begun[0].stop()
            thread.join(20)
            assert not thread.is_alive()


def _error(status: int, kind: str, message: str) -> Response:
    said = {"error": {"kind": kind, "message": message}}
    headers = {"retry-after": "0"} if status in (429, 503) else {}
    return JSONResponse(said, status, headers)


def histories(shards: Shards, catalog: Catalog) -> list[list[str]]:
    """The item ids of each user."""
    return [
        [catalog.ids[int(item)] for item in shards.take([user]).items]
        for user in range(len(shards))
    ]
