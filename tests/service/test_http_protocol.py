"""Bodies arrive whole, and slow clients keep nobody out."""

import asyncio
import contextlib
import os
import socket
import threading
from contextlib import contextmanager

import httpx
import pytest

from tacit.service import http_protocol
from tacit.service.http_protocol import HttpProtocol
from tacit.service.server import Address, listen, serve


def slow(pieces, seconds):
    async def application(scope, receive, send):
        more = True
        while more:
            await asyncio.sleep(seconds)
            message = await receive()
            pieces.append(message["body"])
            more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return application


@contextmanager
def served(application):
    listening = listen(Address(port=0))
    port, servers, begun = listening.getsockname()[1], [], threading.Event()

    def started(server):
        servers.append(server)
        begun.set()

    thread = threading.Thread(
        target=serve, args=(application, listening), kwargs={"started": started}
    )
    thread.start()
    begun.wait(10)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        servers[0].stop()
        thread.join(10)


@pytest.mark.parametrize("seconds", [0.0, 0.003])
@pytest.mark.parametrize("size", [0, 1, 65_536, 3_000_001])
def test_a_body_arrives_as_it_was_sent(size, seconds):
    """Two on one connection: nothing of the first is left for the second."""
    body, pieces = os.urandom(size), []
    with served(slow(pieces, seconds)) as url, httpx.Client() as http:
        for _ in range(2):
            pieces.clear()
            assert http.post(url, content=body).status_code == 200
            assert b"".join(pieces) == body
    assert all(type(one) is bytes for one in pieces)


def test_a_piece_is_handed_on_without_a_copy():
    class Cycle:
        response_complete, body = False, bytearray()
        message_event = asyncio.Event()

    protocol = HttpProtocol.__new__(HttpProtocol)
    protocol.cycle = Cycle()
    piece = os.urandom(1000)
    protocol.on_body(piece)
    assert bytes(protocol.cycle.body) is piece
    protocol.on_body(piece)
    assert protocol.cycle.body == piece + piece


# --- Clients that are slow or send too much -----------------------------------------


def connect(url):
    port = int(url.rsplit(":", 1)[1])
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def is_closed(connection):
    connection.settimeout(10)
    try:
        return connection.recv(4096) == b""
    except ConnectionError:
        return True


HALF = b"POST / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize("sent", [b"", b"\r\n", HALF])
def test_a_head_has_a_deadline(monkeypatch, sent):
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    with served(slow([], 0)) as url, connect(url) as connection:
        connection.sendall(sent)
        assert is_closed(connection)


def test_a_second_head_has_a_deadline_too(monkeypatch):
    """The first one has all its time: a busy machine may need more than a moment."""
    whole = HALF + b"Content-Length: 1\r\n\r\nx"
    with served(slow([], 0)) as url, connect(url) as connection:
        connection.sendall(whole)
        assert b"200 OK" in connection.recv(4096)
        monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
        connection.sendall(HALF)
        assert is_closed(connection)


def test_the_rest_of_a_body_that_was_answered_has_a_deadline(monkeypatch):
    async def refuse(scope, receive, send):
        # Not before: the head has all its time, also on a busy machine.
        monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with served(refuse) as url, connect(url) as connection:
        connection.sendall(HALF + b"Content-Length: 1000\r\n\r\n")
        assert b"404" in connection.recv(4096)
        assert is_closed(connection)


def test_an_honest_request_is_answered_beside_many_half_heads():
    """The oldest of too many gives way."""
    with served(slow([], 0)) as url, contextlib.ExitStack() as stack:
        held = [
            stack.enter_context(connect(url)) for _ in range(http_protocol.MOST_AWAITED)
        ]
        for connection in held:
            connection.sendall(HALF)
        with httpx.Client() as http:
            assert http.post(url, content=b"x").status_code == 200
        assert is_closed(held[0])
        held[-1].sendall(b"Content-Length: 1\r\n\r\nx")
        assert b"200 OK" in held[-1].recv(4096)


@pytest.mark.parametrize("piece", [100, 10**6])
def test_a_head_of_more_than_its_limit_is_refused(piece):
    """In pieces and at once; nothing more of it is kept."""
    head = HALF + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 90) for i in range(400))
    with served(slow([], 0)) as url, connect(url) as connection:
        with contextlib.suppress(ConnectionError):
            for i in range(0, len(head), piece):
                connection.sendall(head[i : i + piece])
            connection.sendall(b"\r\n")
        assert b"431" in connection.recv(4096)


def test_what_is_no_request_leaves_no_line_in_a_log(caplog):
    with served(slow([], 0)) as url, connect(url) as connection:
        connection.sendall(b"no request\r\n\r\n")
        assert b"400" in connection.recv(4096)
    assert caplog.records == []
