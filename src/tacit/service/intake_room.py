"""Limits what a listener receives at once; the slowest gives way to who comes next.

Bytes are counted when they have arrived, not when they are announced: a connection that
announces a body and sends none takes no room. Where there is none left, the body that
is furthest behind is refused, if it is a second behind; and else the one that needs it.
A refusal here never means that a report is lost: the client sends the same bytes again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from itertools import islice

from tacit.service.http import Failure, IncomingBody

_LONGEST = 60  # seconds: the longest that a client is told to wait for an opening
_BEHIND = 1.0  # seconds behind, from which a body gives way
_LOOKED_AT = 256  # bodies, the oldest ones, of which one gives way


class IntakeRoom:
    """The bodies that one event loop receives or works on, and their bytes."""

    def __init__(self, what: str, *, bytes: int, requests: int) -> None:
        self.what = what  # in the plural
        self.most_bytes, self.most_requests = bytes, requests
        self.bytes = 0
        self._bodies: dict[IncomingBody, int] = {}  # bytes of each, the oldest first
        self._by_owner: dict[object, IncomingBody] = {}

    @property
    def requests(self) -> int:
        """How many bodies are there."""
        return len(self._bodies)

    @contextlib.contextmanager
    def hold(self, body: IncomingBody, owner: object = None) -> Iterator[None]:
        """Receive a body and count its bytes until the end of the block.

        An owner has one body on its way: a second one takes the place of the first.
        """
        if self.requests >= self.most_requests and not self._push_out():
            said = f"too many {self.what} at once; send the same bytes again"
            raise Failure(429, "Busy", said, retry_after=1, connection="close")
        if owner is not None:
            if (earlier := self._by_owner.get(owner)) is not None:
                earlier.refuse(self._no_room())
            self._by_owner[owner] = body
        self._bodies[body] = 0
        body.on_piece = self._count
        try:
            yield
        finally:
            self._forget(body)
            if self._by_owner.get(owner) is body:
                del self._by_owner[owner]

    def _count(self, body: IncomingBody, size: int) -> None:
        while self.bytes + size > self.most_bytes:
            if not self._push_out(needed_by=body):
                raise self._no_room()
        if body in self._bodies:  # else it has given way to another one
            self._bodies[body] += size
            self.bytes += size

    def _push_out(self, needed_by: IncomingBody | None = None) -> bool:
        """Refuse the body that is furthest behind; whether there was one.

        The body that needs the room is not refused here but by its caller: its task is
        running, and a task that cancels itself with its last piece reads to the end.
        """
        now = asyncio.get_running_loop().time()
        oldest = islice(self._bodies, _LOOKED_AT)
        slowest = max(oldest, key=lambda body: body.lateness(now), default=None)
        if slowest is None or slowest is needed_by or slowest.lateness(now) < _BEHIND:
            return False
        slowest.refuse(self._no_room())
        self._forget(slowest)
        return True

    def _forget(self, body: IncomingBody) -> None:
        self.bytes -= self._bodies.pop(body, 0)

    def _no_room(self) -> Failure:
        said = f"too many {self.what} wait; send the same bytes again"
        return Failure(503, "Queue", said, retry_after=1, connection="close")


def refuse_early(noun: str, opens: float, now: float) -> None:
    """Refuse for now what comes before a round opens, by the clock of this machine.

    What comes late may have been counted before, so that is decided elsewhere.
    """
    if now < opens:
        wait = min(int(opens - now) + 1, _LONGEST)
        said = f"the {noun} is not open yet; send the same bytes again"
        raise Failure(503, "Early", said, retry_after=wait)
