"""Uploads over HTTP: every status that a relay answers, and what it never writes."""

import contextlib
import logging
import re
import socket

import httpx
import pytest
from service.relay.places import QUICK, Clock, Place, both, experiment, patiently

from tacit.service.federation.tickets import hand_out
from tacit.service.manifest import read_manifest
from tacit.service.relay.relay import RelayLimits
from tacit.service.relay.relay_intake import RelayIntakeLimits
from tacit.service.relay.relay_store import FILE_NAME, RelayStore
from tacit.service.relay.uploads import MessageFields, upload

CANARY = "canary-5f3a"


class World:
    """A relay with an open epoch, reached over HTTP."""

    def __init__(self, place, urls):
        self.place, self.urls = place, urls
        keys = {name: bytes.fromhex(key) for name, key in place.keys.items()}
        sent = patiently(self._sent)
        self.manifest = read_manifest(sent, MessageFields, keys)

    def _sent(self):
        found = httpx.get(f"{self.urls.public}/v1/manifest")
        return found.content if found.status_code == 200 else None

    def body(self, n=0):
        size = self.manifest.fields.report_bytes
        messages = [
            bytes([n, i]) + bytes(size - 2)
            for i in range(self.manifest.fields.reports_per_user)
        ]
        return upload(messages, self.manifest)

    def post(self, body, ticket="", **headers):
        if ticket:
            headers["authorization"] = f"Bearer {ticket}"
        return httpx.post(
            f"{self.urls.reports}/v1/reports", content=body, headers=headers, timeout=30
        )


@pytest.fixture
def world(tmp_path):
    place = Place(tmp_path)
    with both(place, place.run(experiment())) as urls:
        yield World(place, urls)


def test_kept_then_known(world):
    body = world.body()
    assert len(body) == world.manifest.fields.body_bytes
    first = world.post(body)
    assert (first.status_code, first.json()) == (202, {"stored": 6})
    assert world.post(body).status_code == 200
    assert "set-cookie" not in first.headers
    assert first.headers["cache-control"] == "no-store"


def test_every_refusal_has_its_status(world):
    body = world.body()
    other = body[:4] + bytes(32) + body[36:]
    assert world.post(body[:-1]).status_code == 400
    assert world.post(body + b"\0").status_code == 413
    assert world.post(bytes(2**25 + 1)).status_code == 413
    assert world.post(b"").status_code == 404
    assert world.post(other).status_code == 404  # another epoch's
    assert world.post(b"XXXX" + body[4:]).status_code == 400
    assert httpx.get(f"{world.urls.reports}/v1/reports").status_code == 405
    assert httpx.post(f"{world.urls.reports}/v1/epochs", content=b"").status_code == 404
    found = world.post(body, **{"Tacit-Protocol": "9"})
    assert found.status_code == 426
    chunked = httpx.post(f"{world.urls.reports}/v1/reports", content=iter([body]))
    assert chunked.status_code == 411


def test_the_collectors_paths_need_the_secret_of_the_pair(world):
    epoch = world.manifest.round_id.hex()
    for url, method, path in (
        (world.urls.relay, "GET", f"/v1/epochs/{epoch}"),
        (world.urls.relay, "DELETE", f"/v1/epochs/{epoch}"),
        (world.urls.relay, "POST", "/v1/signatures"),
        (world.urls.relay, "POST", "/v1/epochs"),
        (world.urls.collector, "PUT", f"/v1/batches/{bytes(16).hex()}"),
        (world.urls.collector, "POST", f"/v1/epochs/{epoch}/closing"),
        (world.urls.collector, "GET", "/v1/status"),
    ):
        found = httpx.request(method, url + path, content=b"")
        assert found.status_code == 401, path


def test_a_ticket_is_spent_by_one_upload(tmp_path):
    limits = RelayLimits(most_delay=0.0, free_bytes=0, needs_tickets=True)
    place = Place(tmp_path)
    run = place.run(experiment(privacy={"counted_by": "tickets"}))
    with both(place, run, relay={"limits": limits}) as urls:
        world = World(place, urls)
        assert world.manifest.fields.needs_tickets
        one, two = hand_out(tmp_path / "relay", 2, file_name=FILE_NAME)
        body = world.body()
        assert world.post(body).status_code == 401
        assert world.post(body, "00" * 16).status_code == 401
        assert world.post(body, one).status_code == 202
        assert world.post(body, one).status_code == 200
        assert world.post(world.body(1), one).status_code == 403
        assert world.post(world.body(2), two).status_code == 202


def test_no_more_room_is_held_than_an_open_epoch_can_need(tmp_path):
    """Three that announce much and send nothing would keep everybody else out."""
    place = Place(tmp_path)
    with both(place, place.run()) as urls, contextlib.ExitStack() as stack:
        world = World(place, urls)
        host, port = urls.reports.removeprefix("http://").split(":")
        answers = []
        for _ in range(3):
            made = socket.create_connection((host, int(port)), timeout=20)
            stack.callback(made.close)
            head = "POST /v1/reports HTTP/1.1\r\nhost: a\r\ncontent-length: 33554432"
            made.sendall(f"{head}\r\n\r\n".encode())
            answers.append(made.recv(15))
        assert all(one.startswith(b"HTTP/1.1 413") for one in answers)
        assert world.post(world.body()).status_code == 202


def test_too_much_at_once_is_told_to_come_again(tmp_path):
    place = Place(tmp_path)
    for intake, status in (
        (RelayIntakeLimits(open=0), 429),
        (RelayIntakeLimits(queue_bytes=10), 503),
    ):
        folder = tmp_path / str(status)
        folder.mkdir()
        place = Place(folder)
        with both(place, place.run(), relay={"intake": intake}) as urls:
            found = World(place, urls).post(b"x" * 400)
            assert found.status_code == status
            assert found.headers["retry-after"] == "1"


def test_a_full_disk_is_told_to_come_again(tmp_path, monkeypatch):
    place = Place(tmp_path)
    with both(
        place, place.run(), relay={"limits": RelayLimits(needs_tickets=False)}
    ) as urls:
        world = World(place, urls)
        monkeypatch.setattr(RelayStore, "free_bytes", 0)
        found = world.post(world.body())
        assert (found.status_code, found.headers["retry-after"]) == (503, "30")


def test_late_uploads_come_in_vain_and_too_few_are_destroyed(tmp_path, monkeypatch):
    place, clock = Place(tmp_path), Clock(monkeypatch)
    with both(place, place.run()) as urls:
        world = World(place, urls)
        body = world.body()
        assert world.post(body).status_code == 202
        late = world.body(1)
        clock.ahead = 600
        patiently(lambda: world.post(late).status_code in (409, 410))
        patiently(lambda: world.post(body).status_code == 410)


def test_no_canary_is_in_a_log_a_file_or_an_answer(tmp_path, caplog):
    """Whatever a request says of its sender is nowhere afterwards."""
    caplog.set_level(logging.DEBUG)
    place = Place(tmp_path)
    with both(place, place.run(), relay={"limits": QUICK}) as urls:
        world = World(place, urls)
        headers = {
            "user-agent": CANARY,
            "x-forwarded-for": CANARY,
            "referer": f"http://{CANARY}",
            "cookie": CANARY,
        }
        bodies = [world.body(), world.body(1)[:-1], CANARY.encode() * 50]
        answers = [world.post(one, CANARY, **headers) for one in bodies]
        for url in (urls.reports, urls.relay, urls.public, urls.collector):
            httpx.get(f"{url}/{CANARY}?{CANARY}", headers=headers)
            httpx.post(f"{url}/v1/reports", content=CANARY, headers=headers)
        for path in ("manifest", "broadcast/00", "model", "status"):
            for url in (urls.public, urls.collector):
                httpx.get(f"{url}/v1/{path}?{CANARY}", headers=headers)
        batch = bytes.fromhex(CANARY.encode().hex().ljust(32, "0")[:32]).hex()
        secret = (tmp_path / "pair.secret").read_text().strip()
        own = {**headers, "authorization": f"Bearer {secret}"}
        body = world.manifest.round_id + CANARY.encode() * 20
        path = f"{urls.collector}/v1/batches/{batch}"
        answers.append(httpx.put(path, content=body, headers=own))
    assert [one.status_code for one in answers] == [202, 400, 404, 400]
    assert not any(CANARY in one.text for one in answers)
    # httpx, the client of this test, logs what it asks for; the services do not, nor
    # does what they are made of (uvicorn, asyncio).
    client = ("httpx", "httpcore")
    said = [one for one in caplog.records if not one.name.startswith(client)]
    assert not [one for one in said if CANARY in one.getMessage()]
    assert not [one for one in said if CANARY in str(one.exc_info)]
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        assert logging.getLogger(name).propagate or not logging.getLogger(name).handlers
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert CANARY.encode() not in content, path
            # Nobody's address: the only one is the relay's own, in the manifest.
            found = {*re.findall(rb"127\.0\.0\.1:\d+", content)}
            assert found <= {urls.reports.removeprefix("http://").encode()}, path
            assert content.count(b"127.0.0.1") == content.count(b"127.0.0.1:")
