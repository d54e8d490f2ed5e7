"""Many reports over few connections, for whoever plays many clients at once.

httpx takes 15 milliseconds of a processor per request where 128 are open at a time, and
sealing a report takes less than one; streams of asyncio with the parser of httptools
take 0.1. A real client sends one report per round, with httpx (`exchange`).
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from tacit.errors import MissingExtra
from tacit.service.urls import checked_url

try:
    import httptools

    from tacit.service.http import PROTOCOL, PROTOCOL_HEADER
except ImportError as error:
    raise MissingExtra("httptools", "serve") from error

_MOST_BYTES = 1 << 16  # of an answer
_AT_ONCE = 1 << 16
NO_ANSWER = (OSError, TimeoutError, EOFError, httptools.HttpParserError)


@dataclass(frozen=True)
class Posted:
    """The status of an answer, and how long to wait before the next try."""

    status: int
    seconds: float = 1.0


class Posting:
    """One kept-alive connection to a server; it is opened when it is needed."""

    def __init__(self, url: str, *, seconds: float = 60.0) -> None:
        told = urlsplit(checked_url(url))
        self._path, self._seconds = told.path, seconds
        self._secure = ssl.create_default_context() if told.scheme == "https" else None
        self._host = told.hostname or ""
        self._port = told.port or (443 if self._secure else 80)
        self._named = told.netloc.rpartition("@")[2]
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: bytes, *, ticket: str = "") -> Posted:
        """Send a body and wait for the answer; raises one of `NO_ANSWER` if none.

        `ticket`, in hexadecimal, goes along where the operator asks for one.
        """
        try:
            async with asyncio.timeout(self._seconds):
                return await self._post(path, body, ticket)
        except BaseException:
            self.close()  # half of an answer may still come
            raise

    async def _post(self, path: str, body: bytes, ticket: str) -> Posted:
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_connection(
                self._host, self._port, ssl=self._secure
            )
        allowed = f"authorization: Bearer {ticket}\r\n" if ticket else ""
        head = (
            f"POST {self._path}{path} HTTP/1.1\r\nhost: {self._named}\r\n"
            f"{PROTOCOL_HEADER.lower()}: {PROTOCOL}\r\n"
            f"{allowed}"
            "content-type: application/octet-stream\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode("ascii"))
        self._writer.write(body)
        await self._writer.drain()
        return await self._answer(self._reader)

    async def _answer(self, reader: asyncio.StreamReader) -> Posted:
        found, read = _Answer(), 0
        parser = found.parser = httptools.HttpResponseParser(found)
        while not found.is_whole:
            data = await reader.read(_AT_ONCE)
            read += len(data)
            if not data or read > _MOST_BYTES:
                raise EOFError("the answer has no end")
            parser.feed_data(data)
        if not found.is_kept:
            self.close()
        return Posted(found.status, found.seconds)

    def close(self) -> None:
        """Close the connection; the next report opens another."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


class _Answer:
    """What the parser finds: the status, the header that counts, and the end."""

    def __init__(self) -> None:
        self.parser: httptools.HttpResponseParser | None = None
        self.is_whole, self.is_kept = False, False
        self.status, self.seconds = 0, 1.0

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after" and value.isdigit():
            self.seconds = float(value[:6])

    def on_message_complete(self) -> None:
        assert self.parser is not None
        # Asked here: after its end the parser is ready for another answer.
        self.is_whole, self.status = True, self.parser.get_status_code()
        self.is_kept = self.parser.should_keep_alive()
