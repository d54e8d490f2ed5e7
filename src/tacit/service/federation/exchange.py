"""What a client fetches and sends, with a limit on the size and time of everything.

No cookie is kept and no redirect followed: whoever answers learns the address, and
nothing by which two requests could be told to come from one client. A ticket is sent to
the leader alone. Proxies of the environment carry what leaves this machine, since some
networks have no other way out; it is encrypted then (`service.urls`).

Whatever a server does, a request has an end: connecting, sending, headers and body
together take `seconds` at the most, also where they come drop by drop.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, TypeVar

from tacit import check
from tacit.errors import BadMessage, BadValue, MissingExtra, Refused, Unanswered
from tacit.text import shown

try:
    import httpx

    from tacit.service.connections import HEADERS, may_use_proxy, no_cookies
except ImportError as error:
    raise MissingExtra("httpx or starlette", "serve") from error

TICKET_BYTES = 16
_MOST_ERROR = 1 << 16  # bytes of an answer that is an error
_LONGEST_SENTENCE = 500  # characters of it that are shown
T = TypeVar("T")


class Fate(StrEnum):
    """What becomes of a report after the leader's answer."""

    DELIVERED = "delivered"
    DROPPED = "dropped"  # it is not wanted, and a new one would be another report
    GIVEN_UP = "given up"  # it came too late
    AGAIN = "again"  # the same bytes, later


_FATES = {
    200: Fate.DELIVERED,
    202: Fate.DELIVERED,  # by a relay, which forwards it later
    **dict.fromkeys((400, 401, 403, 411, 413), Fate.DROPPED),
    **dict.fromkeys((404, 405, 409, 410), Fate.GIVEN_UP),
    # A slow connection, a proxy that wants its own password, another server's or too
    # early a turn, a program that is too old or too new, too many at once.
    **dict.fromkeys((407, 408, 421, 425, 426, 429), Fate.AGAIN),
}
_UNKNOWN = (400, 500)  # statuses from here on, below there: what was sent is refused


def fate_of(status: int) -> Fate:
    """What becomes of a report that was answered with this status.

    Statuses that no leader sends come from somebody on the way. Those that refuse the
    request drop it, because the same bytes would be refused for ever; after all others,
    such as a redirect to a page where one logs in, the same bytes are sent again.
    """
    first, end = _UNKNOWN
    other = Fate.DROPPED if first <= status < end else Fate.AGAIN
    return _FATES.get(status, other)


@dataclass(frozen=True)
class Answered:
    """The leader's answer: what becomes of the report, and why."""

    fate: Fate
    said: str
    seconds: float = 1.0  # to wait before the same bytes are sent again


class Exchange:
    """Connections to a coordinator and to leaders; close them, or use it as a context.

    `seconds` is the most that one request may take, from its beginning to its end.
    """

    def __init__(self, *, seconds: float = 30.0) -> None:
        check.positive(seconds=seconds)
        self.seconds = seconds
        self._clients: dict[bool, httpx.AsyncClient] = {}  # by whether proxies are used
        # A loop can give up a request at any moment, which sockets that wait cannot; it
        # has a thread of its own, because whoever calls may have a loop, too.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="exchange", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Close the connections to coordinator and leaders."""
        if self._loop.is_closed():
            return
        for one in self._clients.values():
            self._done(one.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Exchange:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def get(self, url: str, *, most: int) -> bytes | None:
        """What is there, of at most so many bytes; None if nothing is there yet."""
        found = self._done(self._asked("GET", url, most=most))
        if isinstance(found, str):
            raise Unanswered(f"{url} {found}")
        if found.is_cut:
            limit = most if found.status == 200 else _MOST_ERROR
            raise BadMessage(f"{url} has more than the {limit:,} bytes allowed")
        if found.status == 404:
            return None
        if found.status in (410, 426):  # final: the run is over, or not for us
            raise Refused(_sentence(found.body))
        if found.status != 200:
            said = _sentence(found.body)
            raise Unanswered(f"{url}: status {found.status}, {said}")
        return found.body

    def post_report(
        self,
        leader: str,
        body: bytes,
        *,
        path: str,
        content_type: str = "application/octet-stream",
        ticket: bytes | None = None,
    ) -> Answered:
        """Send a sealed report to the leader of its round, or to its relay."""
        headers = {"content-type": content_type}
        if ticket is not None:
            headers["authorization"] = f"Bearer {ticket.hex()}"
        found = self._done(
            self._asked(
                "POST", leader + path, most=_MOST_ERROR, headers=headers, body=body
            )
        )
        if isinstance(found, str):
            return Answered(Fate.AGAIN, f"{leader} {found}")
        sentence = _sentence(found.body)
        if found.status == 426:
            raise Refused(sentence)
        said = f"status {found.status}, {sentence}"
        return Answered(fate_of(found.status), said, found.seconds)

    # one request

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        """What the loop makes of this; it is given up if somebody interrupts."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def _asked(
        self,
        method: str,
        url: str,
        *,
        most: int,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> _Found | str:
        """The answer to one request, or why there is none."""
        try:
            async with (
                asyncio.timeout(self.seconds),
                self._client(url).stream(
                    method, url, headers=headers, content=body
                ) as told,
            ):
                limit = most if told.status_code == 200 else _MOST_ERROR
                found = bytearray()
                async for piece in told.aiter_raw():  # not unpacked: small stays small
                    found += piece
                    if len(found) > limit:
                        break
                return _Found(
                    told.status_code,
                    bytes(found[:limit]),
                    _seconds(told.headers.get("retry-after", "")),
                    is_cut=len(found) > limit,
                )
        except TimeoutError:
            return f"took longer than {self.seconds:g} seconds"
        except httpx.HTTPError as error:
            return f"cannot be reached: {str(error) or type(error).__name__}"

    def _client(self, url: str) -> httpx.AsyncClient:
        uses_proxy = may_use_proxy(url)
        if uses_proxy not in self._clients:
            self._clients[uses_proxy] = httpx.AsyncClient(
                timeout=None,  # of one read or write; all of them together have one
                cookies=no_cookies(),
                headers=HEADERS,
                follow_redirects=False,
                trust_env=uses_proxy,
            )
        return self._clients[uses_proxy]


@dataclass(frozen=True)
class _Found:
    """An answer, and what was read of its body."""

    status: int
    body: bytes
    seconds: float  # as Retry-After tells
    is_cut: bool


def read_ticket(text: str) -> bytes:
    """The bytes of a ticket that is written in hexadecimal."""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != TICKET_BYTES:
        raise BadValue(
            f"a ticket has {2 * TICKET_BYTES} hexadecimal digits, as the operator "
            "gave them to this client"
        )
    return found


def _seconds(told: str) -> float:
    return float(told[:6]) if told.isascii() and told.isdigit() else 1.0


def _sentence(body: bytes) -> str:
    """What a server says of its refusal, safe to be shown."""
    try:
        said = json.loads(body)["error"]["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "without a message"
    return shown(str(said), longest=_LONGEST_SENTENCE)
