"""Room for what clients send: held before a byte arrives, refused when it is full."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tacit.service.http import Failure

_LONGEST = 60  # seconds: the longest that a client is told to wait for an opening


class IntakeRoom:
    """So many bytes and so many requests at once; for one event loop."""

    def __init__(self, what: str, *, bytes: int, requests: int) -> None:
        self.what = what  # in the plural
        self.most_bytes, self.most_requests = bytes, requests
        self.bytes = self.requests = 0

    @contextlib.contextmanager
    def held(self, size: int) -> Iterator[None]:
        """Hold room for a body of this size; refuses it if there is none."""
        if self.requests >= self.most_requests:
            said = f"too many {self.what} at once; send the same bytes again"
            raise Failure(429, "Busy", said, retry_after=1, connection="close")
        if self.bytes + size > self.most_bytes:
            said = f"too many {self.what} wait; send the same bytes again"
            raise Failure(503, "Queue", said, retry_after=1, connection="close")
        self.bytes += size
        self.requests += 1
        try:
            yield
        finally:
            self.bytes -= size
            self.requests -= 1


def refuse_early(noun: str, opens: float, now: float) -> None:
    """Refuse for now what comes before a round opens, by the clock of this machine.

    What comes late may have been counted before, so that is decided elsewhere.
    """
    if now < opens:
        wait = min(int(opens - now) + 1, _LONGEST)
        said = f"the {noun} is not open yet; send the same bytes again"
        raise Failure(503, "Early", said, retry_after=wait)
