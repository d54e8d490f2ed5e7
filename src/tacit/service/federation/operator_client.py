"""What coordinator and leader ask of an aggregator: the other end of its endpoints."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import ClassVar

import httpx

from tacit.errors import BadMessage, Refused, Unanswered
from tacit.service.http import PROTOCOL, PROTOCOL_HEADER
from tacit.service.signed_document import KEY_BYTES, SIGNATURE_BYTES
from tacit.text import shown

_LATER = (408, 429)  # and all from 500 on: the same may be asked again
_NEVER = (409, 410, 412)  # no asking again changes it
_MOST_BYTES = 32 * 2**20  # of an answer: a million batches, half a million numbers
_PAUSE = 0.1  # seconds between two tries
_GREETING = 5.0  # seconds for an answer to a greeting


class Over(Refused):
    """What an aggregator will never do of a round, with its reason."""


class Unknown(Refused):
    """A round that an operator has never heard of, or has lost."""


@dataclass(frozen=True)
class Status:
    """What an aggregator says of a round."""

    state: str
    reports: int


@dataclass(frozen=True)
class Peer:
    """Whether another service is there, as it was when it was last asked that."""

    answers: bool | None = None  # None: not asked yet
    seconds: float | None = None  # since its last answer; None: there was none


@dataclass(eq=False)
class OperatorClient:
    """One aggregator, reached at its private address with the secret of the pair.

    What it refuses raises `Refused` with its reason, and `Over` if that is so for ever.
    What cannot be had now, because nobody answers or it is asked to wait, raises
    `Unanswered`: the same call may succeed later, and all of them may be repeated.
    """

    name: str  # in messages: "leader" or "helper"
    url: str
    secret: bytes = field(repr=False)
    seconds: float = 30.0
    greeted: ClassVar[str] = "/v1/rounds"  # answers whoever has the secret

    def __post_init__(self) -> None:
        self._is_there: bool | None = None
        self._was_there: float | None = None  # by the monotonic clock
        headers = {
            "authorization": f"Bearer {self.secret.decode()}",
            PROTOCOL_HEADER: str(PROTOCOL),
        }
        self._http = httpx.Client(
            base_url=self.url.rstrip("/"),
            headers=headers,
            timeout=self.seconds,
            trust_env=False,  # the secret is for the other operator, not for a proxy
        )

    def close_connection(self) -> None:
        """Close the connection to the aggregator."""
        self._http.close()

    @property
    def peer(self) -> Peer:
        """Whether the service was there when `greet` last asked, and how long ago.

        No other request counts. When a leader asks its helper follows from when reports
        come, and the time of an answer is shown.
        """
        was = self._was_there
        return Peer(self._is_there, None if was is None else time.monotonic() - was)

    def greet(self) -> None:
        """Ask whether the service is there, and note it.

        Only an answer in our own form counts: a proxy in front of it answers as well.
        """
        until = time.monotonic() + _GREETING
        try:
            with self._http.stream("GET", self.greeted, timeout=_GREETING) as told:
                found = _Answer(told.status_code, self._read(told, until))
        except (httpx.HTTPError, Unanswered, BadMessage):
            self._is_there = False
            return
        self._is_there = found.status == HTTPStatus.OK or _message(found) is not None
        if self._is_there:
            self._was_there = time.monotonic()

    def round_key(self, run: bytes, number: int) -> bytes:
        """The public key of the operator for one round."""
        return self._sized("PUT", f"/v1/keys/{run.hex()}/{number}", KEY_BYTES)

    def sign(self, document: bytes) -> bytes:
        """The operator's signature on a manifest's JSON."""
        return self._sized("POST", "/v1/signatures", SIGNATURE_BYTES, document)

    def open(self, sent: bytes) -> bytes:
        """Open a round that both have signed; its id."""
        return self._sized("POST", "/v1/rounds", 32, sent)

    def status(self, round_id: bytes) -> Status:
        """The state of a round, and how many reports were counted."""
        found = self._asked("GET", f"/v1/rounds/{round_id.hex()}")
        try:
            told = json.loads(found.content)
            state, reports = str(told["state"]), told["reports"]
            if type(reports) is not int or not 0 <= reports < _MOST_REPORTS:
                raise ValueError("no count of reports")
            return Status(state, reports)
        except _NO_DOCUMENT as error:
            raise BadMessage(f"the {self.name} says nothing of a round") from error

    def put_batch(self, round_id: bytes, batch: bytes, body: bytes) -> bytes:
        """Hand a batch of sealed seeds to the helper; which of them it has taken."""
        path = f"/v1/rounds/{round_id.hex()}/batches/{batch.hex()}"
        return self._asked("PUT", path, body).content

    def close(self, round_id: bytes, chosen: bytes = b"") -> bytes | None:
        """What the operator publishes of a round; None while it computes."""
        found = self._asked("POST", f"/v1/rounds/{round_id.hex()}/close", chosen)
        return None if found.status == 202 else found.content

    def delete(self, round_id: bytes) -> None:
        """Have a round forgotten; one that is not known there is so already."""
        self._asked("DELETE", f"/v1/rounds/{round_id.hex()}", allowed=(200, 404))

    def _sized(self, method: str, path: str, size: int, body: bytes = b"") -> bytes:
        found = self._asked(method, path, body).content
        if len(found) != size:
            raise BadMessage(
                f"the {self.name} answered {path} with {len(found)} bytes; needed are "
                f"{size}"
            )
        return found

    def _asked(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        allowed: Collection[int] = (200, 202),
    ) -> _Answer:
        until = time.monotonic() + self.seconds
        try:
            with self._http.stream(method, path, content=body) as told:
                found = _Answer(told.status_code, self._read(told, until))
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise Unanswered(
                f"the {self.name} at {self.url} cannot be reached: {why}"
            ) from None
        if found.status in allowed:
            return found
        said = f"the {self.name} at {self.url}: {found.status}, {_reason(found)}"
        if found.status in _LATER or found.status >= 500:
            raise Unanswered(said)
        if found.status == HTTPStatus.NOT_FOUND:
            raise Unknown(said)
        raise (Over if found.status in _NEVER else Refused)(said)

    def _read(self, told: httpx.Response, until: float) -> bytes:
        """The body; a peer cannot fill the memory with it, or drip it for ever."""
        body = bytearray()
        for piece in told.iter_raw():
            body += piece
            if len(body) > _MOST_BYTES:
                raise BadMessage(f"the {self.name} sends more than {_MOST_BYTES} bytes")
            if time.monotonic() > until:
                raise Unanswered(
                    f"the {self.name} took longer than {self.seconds:g} seconds"
                )
        return bytes(body)


@dataclass(frozen=True)
class _Answer:
    status: int
    content: bytes = field(repr=False)


class Persistent:
    """Hands batches to a helper, and tries again for a while if it does not answer.

    After a failure the next batch is tried once: while the helper is away, nobody waits
    for it in vain.
    """

    def __init__(
        self,
        helper: OperatorClient,
        *,
        seconds: float = 10.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._helper, self._seconds, self._sleep = helper, seconds, sleep
        self._is_away = False

    def __call__(self, round_id: bytes, batch: bytes, body: bytes) -> bytes:
        """Which reports of the batch the helper has taken."""
        until = time.monotonic() + self._seconds
        while True:
            try:
                found = self._helper.put_batch(round_id, batch, body)
            except Unanswered:
                if self._is_away or time.monotonic() >= until:
                    self._is_away = True
                    raise
                self._sleep(_PAUSE)
            else:
                self._is_away = False
                return found


_MOST_REPORTS = 2**32  # more than any sum can hold
_NO_DOCUMENT = (ValueError, LookupError, TypeError, RecursionError)


def _reason(found: _Answer) -> str:
    """The message of a refusal, safe to be shown."""
    message = _message(found)
    return "without a message" if message is None else shown(message, longest=500)


def _message(found: _Answer) -> str | None:
    """The message of a refusal in our own form; None if it has another one."""
    try:
        return str(json.loads(found.content)["error"]["message"])
    except _NO_DOCUMENT:
        return None
