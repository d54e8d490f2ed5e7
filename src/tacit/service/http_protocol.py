"""HTTP of uvicorn, with limits on slow and long heads, and bodies without copies.

uvicorn waits for the head of a request as long as the client likes, keeps all of it in
memory, and refuses everybody once a few thousand connections are open. So every
listener of a service has these limits:

    head       32 kB, and 10 s from its first byte (or from the connection) to its end
    waiting    1,024 connections from which a head, or the rest of a body that was
               answered already, is awaited; with one more the oldest of them is closed

An honest client sends its head at once, so it is never among the oldest.

uvicorn also gathers a body in a buffer of its own and copies it out of there. Of a
report of 1.6 MB that is a sixth of what receiving it costs (1.75 ms of processor time
with the copies, 1.4 without). Here a piece is handed on as it is if the application has
taken the one before. Reading stops where uvicorn stops it: with half a megabyte instead
of 64 kB waiting, pieces would have to be put together, which took three times as long.
"""

from __future__ import annotations

from asyncio import BaseTransport, TimerHandle
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 32 * 1024
HEAD_SECONDS = 10.0
MOST_AWAITED = 1024  # connections
_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class AwaitedConnections:
    """The connections of one listener that owe it a head or the rest of a body."""

    def __init__(self, most: int = MOST_AWAITED) -> None:
        self.most = most
        self._connections: dict[HttpProtocol, None] = {}  # the oldest first

    def add(self, connection: HttpProtocol) -> None:
        """Await this connection; the one that is awaited longest may give way."""
        if len(self._connections) >= self.most:
            next(iter(self._connections)).abort()
        self._connections[connection] = None

    def discard(self, connection: HttpProtocol) -> None:
        """Await this connection no longer."""
        self._connections.pop(connection, None)


class HttpProtocol(HttpToolsProtocol):
    """A connection with a deadline and a limit for what the client owes it."""

    def __init__(self, *args: Any, awaited: AwaitedConnections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._awaited = awaited
        self._deadline: TimerHandle | None = None
        self._head_bytes = 0  # that arrived since the end of the request before
        self._piece_bytes = 0  # that arrived last
        self._in_body = False

    def connection_made(self, transport: BaseTransport) -> None:
        """Await the first head."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._await()

    def connection_lost(self, exc: Exception | None) -> None:
        """Await nothing any more."""
        self._no_longer_await()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived; a head that is too long is answered with 431."""
        self._piece_bytes = len(data)
        if not self._in_body:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_body or not self._head_bytes or self.transport.is_closing():
            return
        if self._head_bytes > MOST_HEAD_BYTES:
            self.send_400_response("")
        elif self._deadline is None:
            self._await()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or one whose head is too long; then close."""
        if self._head_bytes <= MOST_HEAD_BYTES:
            super().send_400_response(msg)
            return
        self.transport.write(_TOO_LONG)
        self.transport.close()

    def on_headers_complete(self) -> None:
        """Hand the request on; called by the parser."""
        # In one piece with the rest of the request, a head was not counted before.
        if max(self._head_bytes, self._piece_bytes) > MOST_HEAD_BYTES:
            self._refuse_long_head()
        self._head_bytes, self._in_body = 0, True
        if self._deadline is not None:
            self._no_longer_await()
        super().on_headers_complete()

    def _refuse_long_head(self) -> None:
        if (
            sum(len(name) + len(value) for name, value in self.headers)
            > MOST_HEAD_BYTES
        ):
            raise ValueError("a head that is too long")

    def on_body(self, body: bytes) -> None:
        """Hand a piece of a body on; called by the parser with each that arrives."""
        cycle = self.cycle
        if cycle.response_complete:
            return
        # `receive` takes `bytes(cycle.body)`, which for bytes is no copy.
        cycle.body = cycle.body + body if cycle.body else body  # type: ignore[assignment]
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """End a request; called by the parser."""
        self._in_body = False
        if self._deadline is not None:  # of the rest of a body
            self._no_longer_await()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End a response; the rest of a body that was not read must end soon, too."""
        super().on_response_complete()
        if self._in_body and not self.transport.is_closing():
            self._await()

    def abort(self) -> None:
        """Close the connection at once, without an answer."""
        self._no_longer_await()
        self.transport.abort()

    def _await(self) -> None:
        if self._deadline is None:
            self._awaited.add(self)
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.abort)

    def _no_longer_await(self) -> None:
        self._awaited.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
