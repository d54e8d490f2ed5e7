"""What a client fetches and sends, with a limit on the size of everything it reads.

No cookie is kept and no redirect followed: whoever answers learns the address, and
nothing by which two requests could be told to come from one client. A ticket is sent to
the leader alone.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType

from tacit import check
from tacit.errors import BadMessage, BadValue, MissingExtra, Refused, Unanswered
from tacit.text import shown

try:
    import httpx

    from tacit.service.http import PROTOCOL, PROTOCOL_HEADER
except ImportError as error:
    raise MissingExtra("httpx or starlette", "serve") from error

TICKET_BYTES = 16
_MOST_ERROR = 1 << 16  # bytes of an answer that is an error
_LONGEST_SENTENCE = 500  # characters of it that are shown


class Fate(StrEnum):
    """What becomes of a report after the leader's answer."""

    DELIVERED = "delivered"
    DROPPED = "dropped"  # it is not wanted, and a new one would be another report
    GIVEN_UP = "given up"  # it came too late
    AGAIN = "again"  # the same bytes, later


FATES = {  # by status; all others: again
    200: Fate.DELIVERED,
    202: Fate.DELIVERED,  # by a relay, which forwards it later
    **dict.fromkeys((400, 401, 403, 413), Fate.DROPPED),
    **dict.fromkeys((404, 409, 410), Fate.GIVEN_UP),
}


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
        nobody = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._http = httpx.Client(
            timeout=seconds,
            cookies=nobody,
            headers={PROTOCOL_HEADER: str(PROTOCOL)},
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections to coordinator and leaders."""
        self._http.close()

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
        until = time.monotonic() + self.seconds
        with _reached(url), self._http.stream("GET", url) as found:
            limit = most if found.status_code == 200 else _MOST_ERROR
            body = bytearray()
            for piece in found.iter_raw():  # not unpacked: a small body stays small
                body += piece
                if len(body) > limit:
                    raise BadMessage(f"{url} has more than the {limit:,} bytes allowed")
                if time.monotonic() > until:
                    raise Unanswered(f"{url} took longer than {self.seconds:g} seconds")
        if found.status_code == 404:
            return None
        if found.status_code in (410, 426):  # final: the run is over, or not for us
            raise Refused(_sentence(bytes(body)))
        if found.status_code != 200:
            said = _sentence(bytes(body))
            raise Unanswered(f"{url}: status {found.status_code}, {said}")
        return bytes(body)

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
        url = leader + path
        headers = {"content-type": content_type}
        if ticket is not None:
            headers["authorization"] = f"Bearer {ticket.hex()}"
        try:
            with self._http.stream("POST", url, content=body, headers=headers) as found:
                said = bytearray()
                for piece in found.iter_raw():
                    said += piece[: _MOST_ERROR - len(said)]
                    if len(said) >= _MOST_ERROR:
                        break
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            return Answered(Fate.AGAIN, f"{leader} cannot be reached: {why}")
        sentence = _sentence(bytes(said))
        if found.status_code == 426:
            raise Refused(sentence)
        fate = FATES.get(found.status_code, Fate.AGAIN)
        told = found.headers.get("retry-after", "")
        seconds = float(told[:6]) if told.isascii() and told.isdigit() else 1.0
        return Answered(fate, f"status {found.status_code}, {sentence}", seconds)


def checked_url(url: str) -> str:
    """The beginning of a server's URLs, without a slash at its end."""
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        found = httpx.URL("")
    if found.scheme not in ("http", "https") or not found.host or found.query:
        raise BadValue(f"url={url!r} must be like https://host or http://host:8000")
    return url.rstrip("/")


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


@contextlib.contextmanager
def _reached(url: str) -> Iterator[None]:
    try:
        yield
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
        raise Unanswered(f"{url} cannot be reached: {why}") from error


def _sentence(body: bytes) -> str:
    """What a server says of its refusal, safe to be shown."""
    try:
        said = json.loads(body)["error"]["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "without a message"
    return shown(str(said), longest=_LONGEST_SENTENCE)
