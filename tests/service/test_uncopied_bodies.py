"""Bodies that arrive in pieces are whole, however slowly the application takes them."""

import asyncio
import os
import threading
from contextlib import contextmanager

import httpx
import pytest

from tacit.service.server import Address, listen, serve
from tacit.service.uncopied_bodies import UncopiedBodies


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

    protocol = UncopiedBodies.__new__(UncopiedBodies)
    protocol.cycle = Cycle()
    piece = os.urandom(1000)
    protocol.on_body(piece)
    assert bytes(protocol.cycle.body) is piece
    protocol.on_body(piece)
    assert protocol.cycle.body == piece + piece
