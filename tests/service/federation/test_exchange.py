"""What is fetched and sent, at its edges; the rest is seen in `test_client`."""

import contextlib
import socket
import threading
import time

import pytest

from tacit.errors import BadValue, Unanswered
from tacit.service.federation.exchange import Exchange, Fate, fate_of, read_ticket

PATH = f"/v1/rounds/{bytes(32).hex()}/reports"


def test_a_ticket_has_sixteen_bytes():
    assert read_ticket("00" * 16) == bytes(16)
    for text in ("", "0" * 31, "g" * 32, "00" * 17):
        with pytest.raises(BadValue, match="32 hexadecimal digits"):
            read_ticket(text)


def test_who_is_not_there_is_tried_again():
    with Exchange(seconds=5.0) as exchange:
        found = exchange.post_report("http://127.0.0.1:9", b"sealed", path=PATH)
    assert found.fate is Fate.AGAIN
    assert "cannot be reached" in found.said


# --- What becomes of a report ---------------------------------------------------------


@pytest.mark.parametrize(
    ("fate", "statuses"),
    [
        (Fate.DELIVERED, (200, 202)),
        (Fate.DROPPED, (400, 401, 403, 411, 413)),
        (Fate.GIVEN_UP, (404, 405, 409, 410)),
        (Fate.AGAIN, (407, 408, 421, 425, 426, 429, 500, 502, 503, 504)),
        # What only somebody on the way says, and what nobody knows.
        (Fate.AGAIN, (204, 206, 301, 302, 307, 511, 599)),
        (Fate.DROPPED, (402, 406, 414, 415, 417, 422, 431, 451, 499)),
    ],
)
def test_every_status_has_a_fate(fate, statuses):
    assert {fate_of(status) for status in statuses} == {fate}


def test_every_status_that_leaders_and_relays_document_is_as_they_say():
    """The tables at the top of both intakes, which say what a client then does."""
    from tacit.service.federation import intake
    from tacit.service.relay import relay_intake

    fates = {"drops": Fate.DROPPED, "gives": Fate.GIVEN_UP, "sends": Fate.AGAIN}
    seen = set()
    for module in (intake, relay_intake):
        for line in (module.__doc__ or "").splitlines():
            cells = [one.strip() for one in line.split("|")[1:-1]]
            if len(cells) == 3 and cells[2].split()[0] in fates:
                statuses = {int(one) for one in cells[0].split(",")}
                assert {fate_of(one) for one in statuses} == {
                    fates[cells[2].split()[0]]
                }
                seen |= statuses
    assert {400, 401, 403, 404, 408, 409, 410, 413, 429, 503} <= seen


# --- Servers that take their time -----------------------------------------------------


@contextlib.contextmanager
def dripping(said: bytes, *, every: float = 0.05):
    """A server that reads nothing and answers one byte at a time, for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stop = threading.Event()

        def serve() -> None:
            with contextlib.suppress(OSError):
                taken, _ = listening.accept()
                with taken:
                    taken.sendall(said)
                    while not stop.wait(every):
                        taken.sendall(b"x")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stop.set()
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nx: ",
        b"HTTP/1.1 503 x\r\ncontent-length: 60000\r\n\r\n",
    ],
    ids=["no status", "headers", "body"],
)
def test_whoever_drips_is_given_up_in_time(said):
    with Exchange(seconds=0.5) as exchange:
        with dripping(said) as url:
            begun = time.monotonic()
            found = exchange.post_report(url, b"sealed", path=PATH)
            assert time.monotonic() - begun < 10
        assert found.fate is Fate.AGAIN
        if said:
            assert "took longer than 0.5 seconds" in found.said
        with dripping(said) as url, pytest.raises(Unanswered):
            exchange.get(url, most=100_000)


def test_a_server_that_reads_nothing_holds_nobody():
    """The body is larger than what the system keeps on its way."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with Exchange(seconds=0.5) as exchange:
            found = exchange.post_report(url, bytes(1 << 26), path=PATH)
    assert found.fate is Fate.AGAIN
    assert "took longer" in found.said


def test_it_works_where_a_loop_runs_already():
    """As in a notebook."""
    import asyncio

    async def inside() -> Fate:
        with Exchange(seconds=5.0) as exchange:
            return exchange.post_report("http://127.0.0.1:9", b"", path=PATH).fate

    assert asyncio.run(inside()) is Fate.AGAIN
