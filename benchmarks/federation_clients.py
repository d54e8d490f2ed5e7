"""Clients whose reports are known, sent to a leader that may be killed at any moment.

    honest      sends the same bytes until there is an answer that ends it
    twin        an honest one that sends its bytes over two connections at once
    replaying   an honest one that sends its bytes again after they were counted
    impatient   sends once and hangs up before there is an answer
    broken      a half that does not open, or a report that is too short

All are threads of one process, which nobody kills. `Sent` has what became of each.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from tacit.service.federation.sealing import SumFields, SumManifest, sealed_report
from tacit.service.manifest import read_document
from tacit.transport.shared_sum import explicit, to_bytes

HONEST, IMPATIENT, BROKEN = 10, 2, 3
_LARGEST = 50  # number of a report
_SPREAD = 0.06  # seconds in which the first sends fall
_AGAIN = (408, 429, 500, 503)
_PATIENCE = 30.0  # seconds until a client says that it never heard
_SEED_AT, _HALF_AT = 60, 200  # bytes of a body, in either seal


@dataclass
class Sent:
    """One report: what it says, and what became of it."""

    id: str
    numbers: list[int]
    kind: str
    answers: list[int] = field(default_factory=list)  # final statuses, in their order
    wrong: list[str] = field(default_factory=list)


def drive(
    url: str,
    leader: tuple[str, int],
    written: Path,
    *,
    number: int,
    seed: int,
    impatient: int = IMPATIENT,
) -> None:
    """Send the reports of one round, and write down what became of each."""
    draws = random.Random(seed)
    manifest = fetched(url, number)
    made = [_made(manifest, draws, kind) for kind in _kinds(impatient)]
    threads = []
    for sent, body in made:
        wait = _SPREAD * draws.random()
        for _ in range(1 + (sent.kind == "twin")):
            arguments = (sent, body, manifest, leader, wait)
            threads.append(threading.Thread(target=_ways[sent.kind], args=arguments))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = json.dumps([asdict(sent) for sent, _ in made])
    draft = written.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(written)


def read_sent(written: Path) -> list[Sent]:
    """What `drive` has written down."""
    return [Sent(**one) for one in json.loads(written.read_text())]


def fetched(url: str, number: int) -> SumManifest:
    """The manifest of a round, as soon as the coordinator has it."""
    until = time.monotonic() + _PATIENCE
    host, port = url.removeprefix("http://").split(":")
    while time.monotonic() < until:
        try:
            connection = http.client.HTTPConnection(host, int(port), timeout=5)
            connection.request("GET", "/v1/manifest")
            found = connection.getresponse()
            body = found.read()
            connection.close()
        except (OSError, http.client.HTTPException):
            body, found = b"", None
        if found is not None and found.status == 200:
            manifest = read_document(body[128:], SumFields)
            if manifest.round == number:
                return manifest
        time.sleep(0.01)
    raise TimeoutError(f"round {number} was never opened")


def _kinds(impatient: int) -> list[str]:
    few = ["twin", "replaying"]
    return [
        *["honest"] * (HONEST - len(few)),
        *few,
        *["impatient"] * impatient,
        *["broken"] * BROKEN,
    ]


def _made(manifest: SumManifest, draws: random.Random, kind: str) -> tuple[Sent, bytes]:
    """A report of small random numbers, and its bytes."""
    size = manifest.fields.numbers
    numbers = [draws.randint(-_LARGEST, _LARGEST) for _ in range(size)]
    seed = draws.randbytes(32)
    whole = np.array(numbers, np.int64)
    report = sealed_report(
        seed,
        to_bytes(explicit(whole, seed)),
        round_id=manifest.round_id,
        leader=manifest.keys["leader"],
        helper=manifest.keys["helper"],
    )
    body = bytearray(report.body())
    if kind == "broken":
        where = draws.choice([_SEED_AT, _HALF_AT, len(body)])
        if where == len(body):
            del body[-4:]
        else:
            body[where] ^= 1
    return Sent(report.report_id.hex(), numbers, kind), bytes(body)


# --- Ways to send --------------------------------------------------------------------


def _honestly(
    sent: Sent, body: bytes, manifest: SumManifest, leader: tuple[str, int], wait: float
) -> None:
    time.sleep(wait)
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        status = posted(leader, manifest.round_id, body)
        if status is not None and status not in _AGAIN:
            sent.answers.append(status)
            return
        time.sleep(random.uniform(0.005, 0.03))
    sent.wrong.append("never answered")


def _again(
    sent: Sent, body: bytes, manifest: SumManifest, leader: tuple[str, int], wait: float
) -> None:
    for _ in range(3):
        _honestly(sent, body, manifest, leader, wait)


def _impatiently(
    sent: Sent, body: bytes, manifest: SumManifest, leader: tuple[str, int], wait: float
) -> None:
    del sent  # there is never an answer
    time.sleep(wait)
    try:
        with socket.create_connection(leader, timeout=5) as connection:
            connection.sendall(_request(manifest.round_id, body))
            time.sleep(wait)
    except OSError:
        pass  # nobody was there


def posted(leader: tuple[str, int], round_id: bytes, body: bytes) -> int | None:
    """The status that a leader gives for a report; None if there was no answer."""
    try:
        connection = http.client.HTTPConnection(*leader, timeout=15)
        path = f"/v1/rounds/{round_id.hex()}/reports"
        connection.request("POST", path, body)
        found = connection.getresponse()
        found.read()
        connection.close()
        return found.status
    except (OSError, http.client.HTTPException):
        return None


def _request(round_id: bytes, body: bytes) -> bytes:
    head = (
        f"POST /v1/rounds/{round_id.hex()}/reports HTTP/1.1\r\nhost: leader\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


_ways: dict[str, Callable[..., None]] = {
    "honest": _honestly,
    "twin": _honestly,
    "replaying": _again,
    "impatient": _impatiently,
    "broken": _honestly,
}
