"""What every endpoint does: bodies within limits, answers, refusals in one form.

An error is `{"error": {"kind", "message"}}`; the message says what was given, what is
allowed and what to do. It goes to whoever asked and into no log.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from starlette.types import Receive, Scope, Send

LOG = logging.getLogger("tacit.service")

BINARY, JSON, TEXT = "application/octet-stream", "application/json", "text/plain"
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "public, no-cache"  # to be kept, and asked for with its ETag
PROTOCOL = 1  # of clients and servers; raised when a message changes
PROTOCOL_HEADER = "Tacit-Protocol"
_PROTOCOL = PROTOCOL_HEADER.lower().encode()


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


async def read_body(
    receive: Receive, size: int, *, seconds: float, what: str
) -> bytearray:
    """The body of a request, of exactly this size and within so many seconds.

    It is filled in while it arrives: joined at the end, a report of 1.6 MB would take
    twice the time.
    """
    found, filled = bytearray(size), 0
    timer = _Timer(seconds)
    try:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            piece = message.get("body", b"")
            end = filled + len(piece)
            if end > size:
                # Closed, so that the rest of it is not read either.
                raise too_long(size, what)
            found[filled:end] = piece
            filled = end
            if not message.get("more_body"):
                break
    except asyncio.CancelledError:
        if not timer.has_rung or timer.task.uncancel():
            raise
        raise Failure(
            *(408, "TooLate"),
            f"no whole body within {seconds:g} seconds; send the same bytes again",
            connection="close",
        ) from None
    finally:
        timer.stop()
    if filled < size:
        said = f"a body of {filled} bytes; every {what} has {size}"
        raise Failure(400, "BadMessage", said)
    return found


def too_long(size: int, what: str) -> Failure:
    """The refusal of a body that is longer than allowed; its rest is not read."""
    said = f"a body of more than {size} bytes; every {what} has {size}"
    return Failure(413, "TooLong", said, connection="close")


class _Timer:
    """Cancels the task that made it after so many seconds, unless it is stopped.

    As `asyncio.timeout` does, which takes four times as long to set up.
    """

    def __init__(self, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.has_rung, self.task = False, task
        self._handle = task.get_loop().call_later(seconds, self._ring)

    def stop(self) -> None:
        """Cancel nothing any more."""
        self._handle.cancel()

    def _ring(self) -> None:
        self.has_rung = True
        self.task.cancel()


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
        return bytes(await read_body(self.receive, size, seconds=seconds, what=what))


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
    ) -> None:
        self._endpoints, self._count = endpoints, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        name = "unknown"
        try:
            check_protocol(scope)
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
