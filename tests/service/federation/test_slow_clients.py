"""One address that sends next to nothing, on many connections, keeps nobody out.

Each test opens all its connections again while the honest report is on its way, as an
attacker would whose connections are closed.
"""

import contextlib
import socket
import threading
import time

import pytest
from service.federation.rounds import NUMBERS, http_pair, random_reports, sealed
from service.federation.services import Place

from tacit.service.federation.intake import IntakeLimits
from tacit.service.federation.sealing import body_size

REPORTS = random_reports(12)
HALF_HEAD = b"POST / HTTP/1.1\r\nX: y\r\n"


@contextlib.contextmanager
def idle_connections(url, count, sent):
    """Connections that sent this and send no more; new ones follow without end."""
    port, over = int(url.rsplit(":", 1)[1]), threading.Event()
    connections = []

    def connect():
        connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        connection.sendall(sent)
        connections.append(connection)

    def connect_on():
        while not over.is_set():
            with contextlib.suppress(OSError):
                connect()
            connections.pop(0).close()
            time.sleep(0.002)

    for _ in range(count):
        connect()
    attacker = threading.Thread(target=connect_on)
    attacker.start()
    try:
        yield
    finally:
        over.set()
        attacker.join()
        for connection in connections:
            connection.close()


def seconds_until_counted(pair, manifest, report):
    began = time.monotonic()
    while pair.post(manifest, report).status_code != 200:
        assert time.monotonic() - began < 30
        time.sleep(0.1)
    return time.monotonic() - began


@pytest.mark.parametrize(
    "count", [pytest.param(300), pytest.param(2500, marks=pytest.mark.slow)]
)
def test_bodies_that_are_announced_and_not_sent(tmp_path, count):
    """Room for fewer bodies than are announced, in bytes and in requests."""
    size = body_size(NUMBERS)
    limits = IntakeLimits(queue_bytes=20 * size, open=min(200, count))
    with http_pair(Place(tmp_path), leader={"intake": limits}) as pair:
        manifest = pair.open()
        path = f"/v1/rounds/{manifest.round_id.hex()}/reports"
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
        with idle_connections(pair.urls.reports, count, head.encode()):
            for report in REPORTS[:2]:
                report = sealed(manifest, report)
                assert seconds_until_counted(pair, manifest, report) < 5


@pytest.mark.slow
def test_heads_that_do_not_end(tmp_path):
    with http_pair(Place(tmp_path)) as pair:
        manifest = pair.open()
        with idle_connections(pair.urls.reports, 4150, HALF_HEAD):
            for report in REPORTS[:2]:
                report = sealed(manifest, report)
                assert seconds_until_counted(pair, manifest, report) < 5
