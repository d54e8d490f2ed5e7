"""Sealed reports on a file, and a cheap process that sends them to a leader.

The sender is one loop over kept-alive connections that writes bytes as they lie in the
file and reads nothing but statuses: it costs the machine as little as possible beside
the services that are measured.
"""

from __future__ import annotations

import json
import mmap
import os
import selectors
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tacit.service.federation.sealing import SumManifest, sealed_report
from tacit.transport.shared_sum import Numbers, explicit, modulo, to_bytes

CONNECTIONS = 64  # at most, and
IN_FLIGHT = 64 * 2**20  # no more bytes at once: a leader's queue has 96 MiB
_LARGEST = 50  # number of a report
_CHUNK = 1 << 20  # bytes that are handed to the kernel at once
_STALLED = 60.0  # seconds without any answer after which a sender gives up


@dataclass
class Sealer:
    """Writes distinct sealed reports to a file, and knows what they add up to."""

    manifest: SumManifest
    path: Path
    total: Numbers = field(init=False)
    sealed: int = 0

    def __post_init__(self) -> None:
        numbers = self.manifest.fields.numbers
        self.total = np.zeros(numbers, np.uint32)
        draw = np.random.default_rng(0)
        self._first = draw.integers(-_LARGEST, _LARGEST + 1, numbers)

    def write(self, count: int) -> None:
        """The next reports, each with an id, a seed and seals of its own."""
        made = self.manifest
        with self.path.open("wb") as file:
            for _ in range(count):
                numbers = np.roll(self._first, self.sealed)
                seed = os.urandom(32)
                report = sealed_report(
                    seed,
                    to_bytes(explicit(numbers, seed)),
                    round_id=made.round_id,
                    leader=made.keys["leader"],
                    helper=made.keys["helper"],
                )
                file.write(report.body())
                self.total += modulo(numbers)
                self.sealed += 1


@dataclass(frozen=True)
class Answers:
    """What a sender saw: statuses, and the milliseconds of each answer."""

    seconds: float
    statuses: dict[str, int]
    latencies: list[float]

    def percentile(self, percent: float) -> float:
        """Milliseconds within which so many percent of all answers came."""
        return float(np.percentile(self.latencies, percent))


@dataclass
class _Line:
    """One connection: what is left to write of a request, and when it was due."""

    socket: socket.socket
    left: deque[memoryview] = field(default_factory=deque)
    due: float = 0.0
    is_busy: bool = False


def send(
    path: Path, manifest: SumManifest, port: int, *, rate: float | None = None
) -> Answers:
    """Send every report of a file, from a process of its own.

    With a rate (per second) the reports are sent at even distances, and a latency
    counts from the moment at which the report was due; without, each connection sends
    the next report when the last one was answered.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reader)
            found = _sent(path, manifest, port, rate)
            with open(writer, "w") as pipe:
                json.dump(vars(found), pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader) as pipe:
        told = pipe.read()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise RuntimeError("the sender failed")
    return Answers(**json.loads(told))


def _sent(path: Path, manifest: SumManifest, port: int, rate: float | None) -> Answers:
    size = manifest.fields.body_bytes
    head = memoryview(_head(manifest.round_id, size))
    with path.open("rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    bodies = memoryview(whole)
    return _Sender(bodies, size, head, port, rate).run()


class _Sender:
    def __init__(
        self,
        bodies: memoryview,
        size: int,
        head: memoryview,
        port: int,
        rate: float | None,
    ) -> None:
        self.bodies, self.size, self.head, self.rate = bodies, size, head, rate
        self.count, self.next, self.answered = len(bodies) // size, 0, 0
        self.statuses: dict[str, int] = {}
        self.latencies: list[float] = []
        self.selector = selectors.DefaultSelector()
        self.idle: deque[_Line] = deque()
        for _ in range(min(CONNECTIONS, self.count, IN_FLIGHT // size)):
            line = _Line(socket.create_connection(("127.0.0.1", port)))
            line.socket.setblocking(False)
            self.selector.register(line.socket, selectors.EVENT_READ, line)
            self.idle.append(line)

    def run(self) -> Answers:
        self.began = last = time.monotonic()
        while self.answered < self.count:
            wait = self._begin()
            before = self.answered
            for key, events in self.selector.select(wait):
                if events & selectors.EVENT_WRITE:
                    self._write(key.data)
                if events & selectors.EVENT_READ:
                    self._read(key.data)
            now = time.monotonic()
            last = now if self.answered > before else last
            if now - last > _STALLED:
                raise TimeoutError("no answers")
        seconds = time.monotonic() - self.began
        return Answers(seconds, self.statuses, self.latencies)

    def _begin(self) -> float:
        """Hand reports that are due to idle connections; seconds until the next."""
        while self.idle and self.next < self.count:
            now = time.monotonic()
            due = now if self.rate is None else self.began + self.next / self.rate
            if due > now:
                return due - now
            line = self.idle.popleft()
            start = self.next * self.size
            line.left = deque([self.head, self.bodies[start : start + self.size]])
            line.due, line.is_busy = due, True
            self.next += 1
            self._write(line)
        return 1.0

    def _write(self, line: _Line) -> None:
        both = selectors.EVENT_READ | selectors.EVENT_WRITE
        try:
            while line.left:
                piece = line.left[0]
                n = line.socket.send(piece[:_CHUNK])
                line.left[0] = piece[n:]
                if n == len(piece):
                    line.left.popleft()
            if self.selector.get_key(line.socket).events == both:
                self.selector.modify(line.socket, selectors.EVENT_READ, line)
        except BlockingIOError:
            if self.selector.get_key(line.socket).events != both:
                self.selector.modify(line.socket, both, line)

    def _read(self, line: _Line) -> None:
        said = line.socket.recv(65536)
        if not said:
            raise ConnectionError("the leader hung up")
        if not said.startswith(b"HTTP/1.1 "):
            return  # the body of an answer whose head is counted
        status = said[9:12].decode()
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.latencies.append(1e3 * (time.monotonic() - line.due))
        self.answered += 1
        line.is_busy = False
        self.idle.append(line)


def _head(round_id: bytes, size: int) -> bytes:
    lines = (
        f"POST /v1/rounds/{round_id.hex()}/reports HTTP/1.1\r\nhost: leader\r\n"
        f"content-type: application/octet-stream\r\ncontent-length: {size}\r\n\r\n"
    )
    return lines.encode()
