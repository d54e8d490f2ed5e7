"""What every endpoint does: bodies within limits, answers, refusals in one form.

An error is `{"error": {"kind", "message"}}`; the message says what was given, what is
allowed and what to do. It goes to whoever asked and into no log.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from starlette.types import Receive, Scope, Send

LOG = logging.getLogger("tacit.service")

BINARY, JSON, TEXT = "application/octet-stream", "application/json", "text/plain"
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "public, no-cache"  # to be kept, and asked for with its ETag
PROTOCOL = 1  # of clients and servers; raised when a message changes
PROTOCOL_HEADER = "Tacit-Protocol"
_PROTOCOL = PROTOCOL_HEADER.lower().encode()
_GRACE = 2.0  # seconds that a body may be behind one that arrives evenly


class Failure(Exception):
    """A request that is refused, with its status and a message for whoever asked."""

    def __init__(
        self, status: int, kind: str, message: str, **headers: str | int
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message
        self.headers = {
            name.replace("_", "-"): str(value) for name, value in headers.items()
        }

    def document(self) -> bytes:
        """The body that says it."""
        said = {"kind": self.kind, "message": self.message}
        return msgspec.json.encode({"error": said})

    def reply(self) -> Reply:
        """The answer that says it."""
        pairs = self.headers.items()
        more = tuple((name.encode(), value.encode()) for name, value in pairs)
        return Reply(self.status, self.document(), more=more)


class Gone(Exception):
    """Whoever asked has closed the connection."""


@dataclass(frozen=True)
class Reply:
    """An answer: status, body, type, and further headers."""

    status: int
    content: bytes = b""
    kind: bytes = JSON.encode()
    more: tuple[tuple[bytes, bytes], ...] = ()
    keep: bytes = b"no-store"  # who may keep it, and for how long


async def send_reply(send: Send, reply: Reply) -> None:
    """Send an answer, with its length and how long it may be kept."""
    headers = [
        (b"content-type", reply.kind),
        (b"content-length", b"%d" % len(reply.content)),
        (b"cache-control", reply.keep),
        *reply.more,
    ]
    start = {"type": "http.response.start", "status": reply.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": reply.content})


class IncomingBody:
    """The body of a request while it arrives; for the task that reads it.

    It has one size, and `seconds` to arrive in. A client that is idle is told so before
    that: after two seconds the part that has arrived must keep up with the time.
    """

    def __init__(
        self, receive: Receive, size: int, *, seconds: float, what: str
    ) -> None:
        self.size, self.seconds = size, seconds
        self.arrived = 0  # bytes
        self.on_piece: Callable[[IncomingBody, int], None] = _take_no_notice
        self._receive, self._what = receive, what
        self._refusal: Failure | None = None
        self._began = 0.0
        self._task: asyncio.Task[object] | None = None

    async def read(self) -> memoryview:
        """The whole body, of exactly this size.

        It is filled in while it arrives: joined at the end, a report of 1.6 MB would
        take twice the time. Memory that nothing was written to costs nothing.
        """
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()
        content, self._task, self._began = _empty(self.size), task, loop.time()
        self._timer = loop.call_later(min(_GRACE, self.seconds), self._look)
        try:
            await self._fill(content)
        except asyncio.CancelledError:
            if self._refusal is None or task.uncancel():
                raise
            raise self._refusal from None
        finally:
            self._timer.cancel()
            self._task = None
        if self.arrived < self.size:
            said = f"a body of {self.arrived} bytes; every {self._what} has {self.size}"
            raise Failure(400, "BadMessage", said)
        return content

    def lateness(self, now: float) -> float:
        """Seconds that it is behind an even arrival; -inf if nothing is awaited."""
        if self._task is None or self.arrived >= self.size:
            return -math.inf
        return now - self._began - self.seconds * self.arrived / self.size

    def refuse(self, refusal: Failure) -> None:
        """End its reading with a refusal."""
        if self._task is not None and self._refusal is None:
            self._refusal = refusal
            self._task.cancel()

    async def _fill(self, content: memoryview) -> None:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            piece = message.get("body", b"")
            end = self.arrived + len(piece)
            if end > self.size:
                # Closed, so that the rest of it is not read either.
                raise too_long(self.size, self._what)
            self.on_piece(self, len(piece))
            content[self.arrived : end] = piece
            self.arrived = end
            more = message.get("more_body", False)

    def _look(self) -> None:
        """Refuse the body if it is late, and look again a second later if not."""
        assert self._task is not None
        loop = self._task.get_loop()
        elapsed = loop.time() - self._began
        is_over = elapsed >= self.seconds
        if is_over or self.lateness(loop.time()) > _GRACE:
            within = f"within {self.seconds:g} seconds" if is_over else "fast enough"
            said = f"no whole body {within}; send the same bytes again"
            self.refuse(Failure(408, "TooLate", said, connection="close"))
            return
        self._timer = loop.call_later(min(1.0, self.seconds - elapsed), self._look)


def _take_no_notice(_: IncomingBody, __: int) -> None:
    """Nobody counts what arrives."""


def _empty(size: int) -> memoryview:
    """Writable memory; of a large one the system gives only what is written to."""
    return np.empty(size, np.uint8).data


def too_long(size: int, what: str) -> Failure:
    """The refusal of a body that is longer than allowed; its rest is not read."""
    said = f"a body of more than {size} bytes; every {what} has {size}"
    return Failure(413, "TooLong", said, connection="close")


def header(scope: Scope, name: bytes) -> bytes | None:
    """The value of a header, by its name in small letters."""
    for own, value in scope["headers"]:
        if own == name:
            return bytes(value)
    return None


def has_tag(if_none_match: str, tag: str) -> bool:
    """Whether the content that a client has is this one (RFC 9110, Section 13.1.2)."""
    tags = [one.strip().removeprefix("W/") for one in if_none_match.split(",")]
    return tag in tags or "*" in tags


def check_protocol(scope: Scope) -> None:
    """Refuse a client that speaks another version of the protocol."""
    told = header(scope, _PROTOCOL)
    if told is not None and told != b"%d" % PROTOCOL:
        given = told[:20].decode("latin-1")
        raise Failure(
            *(426, "OtherProtocol"),
            f"a client of protocol {given}; this server speaks {PROTOCOL}: use a "
            "version of Tacit that speaks it",
            upgrade=f"tacit/{PROTOCOL}",
            connection="Upgrade",
        )


def bearer(scope: Scope) -> bytes:
    """The token of a request, empty if there is none."""
    told = header(scope, b"authorization") or b""
    return told[7:].strip() if told[:7].lower() == b"bearer " else b""


def check_bearer(scope: Scope, secrets: Iterable[bytes]) -> None:
    """Refuse whoever knows none of these secrets."""
    given = bearer(scope)
    # All are compared, so that the time does not tell which one was nearly right.
    known = [hmac.compare_digest(given, secret) for secret in secrets]
    if not given or not any(known):  # a secret that was left out opens nothing
        said = "this path is for the other operators: send the secret of the pair"
        raise Failure(401, "Unauthorized", said)


# --- Endpoints ------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """One request: what was asked, and by whom it may be asked."""

    scope: Scope
    receive: Receive
    parts: tuple[str, ...]  # of the path, as its pattern groups them

    def length(self, most: int, what: str) -> int:
        """The length that the request declares; refuses none, and too much."""
        told = header(self.scope, b"content-length") or b""
        if not told.isdigit():
            raise Failure(411, "NoLength", "a body needs its Content-Length")
        if len(told) > 15 or int(told) > most:
            said = f"a body of more than {most} bytes, and no {what} has more"
            raise Failure(413, "TooLong", said, connection="close")
        return int(told)

    async def body(self, most: int, *, seconds: float, what: str) -> bytes:
        """The body, of at most so many bytes and within so many seconds."""
        size = self.length(most, what)
        body = IncomingBody(self.receive, size, seconds=seconds, what=what)
        return bytes(await body.read())


Handler = Callable[[Asked], Awaitable[Reply]]


@dataclass(frozen=True)
class Endpoint:
    """What answers one method on the paths of one pattern."""

    name: str  # under which requests are counted
    method: str
    path: str  # a regular expression for the whole path
    handler: Handler
    secrets: tuple[bytes, ...] | None = field(default=None, repr=False)  # None: for all

    def matched(self, path: str) -> tuple[str, ...] | None:
        """The groups of a path, if it is one of these."""
        found = re.fullmatch(self.path, path)
        return None if found is None else found.groups()


class Endpoints:
    """An ASGI application of a few endpoints.

    Errors go to whoever asked. Of one that is a bug, the log has the type and no more:
    its message may hold what somebody sent.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        count: Callable[[str, int], None] | None = None,
        check: Callable[[Scope], None] | None = None,
    ) -> None:
        self._endpoints, self._count = endpoints, count
        self._check = check  # refuses a request, whichever path it is for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        name = "unknown"
        try:
            check_protocol(scope)
            if self._check is not None:
                self._check(scope)
            endpoint, parts = self._found(scope)
            name = endpoint.name
            if endpoint.secrets is not None:
                check_bearer(scope, endpoint.secrets)
            reply = await endpoint.handler(Asked(scope, receive, parts))
        except Failure as error:
            # Some are raised again and again, and would keep what every frame had.
            reply = error.with_traceback(None).reply()
        except Gone:
            return
        except Exception as error:
            LOG.error("%s failed: %s", name, type(error).__name__)
            reply = _BROKEN.reply()
        if self._count is not None:
            self._count(name, reply.status)
        await send_reply(send, reply)

    def _found(self, scope: Scope) -> tuple[Endpoint, tuple[str, ...]]:
        path, allowed = scope["path"], []
        for one in self._endpoints:
            parts = one.matched(path)
            if parts is None:
                continue
            if one.method == scope["method"]:
                return one, parts
            allowed.append(one.method)
        if allowed:
            methods = ", ".join(allowed)
            said = f"{scope['method']} is not allowed there; use {methods}"
            raise Failure(405, "BadMethod", said, allow=methods)
        raise Failure(404, "NotFound", f"{path[:80]} is not known here")


async def greet(_: Asked) -> Reply:
    """The answer that a service is there, and nothing else."""
    return Reply(200, b"{}")


_BROKEN = Failure(500, "Broken", "this is a bug of the server; nothing of it is kept")
