"""Reports over real HTTP, honest and hostile, and the status that each one gets."""

import concurrent.futures
import contextlib
import dataclasses
import gc
import logging
import resource
import secrets
import socket
import time

import httpx
import pytest
from service.federation.rounds import (
    NUMBERS,
    http_pair,
    random_reports,
    sealed,
    seed_on_disk,
    signed_by,
    without_noise,
)
from service.federation.services import QUICK, Place, aggregators, in_thread

from tacit.service.federation import operator_client
from tacit.service.federation.aggregator import Aggregator, Limits
from tacit.service.federation.sealing import SealedReport, body_size
from tacit.service.federation.seed_batches import Closing
from tacit.service.federation.services import serve_aggregator
from tacit.service.federation.tickets import hand_out
from tacit.system_errors import DiskError

REPORTS = random_reports(24)
DAY = 86_400


def kind(found: httpx.Response) -> str:
    return found.json()["error"]["kind"]


@pytest.fixture
def opened(pair):
    return pair.open()


# --- Honest ---------------------------------------------------------------------------


def test_what_is_answered_200_is_in_the_sum_once(pair, opened):
    """Sent at once by many, and every third report twice."""
    bodies = [sealed(opened, one).body() for one in REPORTS]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        sent = [*bodies, *bodies[::3]]
        found = [*pool.map(lambda one: pair.post(opened, one), sent)]
    assert [one.status_code for one in found] == [200] * len(sent)
    assert {one.content for one in found} == {b""}
    assert pair.leader.status(opened.round_id).reports == len(REPORTS)
    assert (pair.plain_sum(opened) == REPORTS.sum(axis=0)).all()


def test_a_report_sent_again_is_acknowledged_at_any_time(pair, opened):
    first, late = (sealed(opened, one) for one in REPORTS[:2])
    assert pair.post(opened, first).status_code == 200
    assert pair.post(opened, first).status_code == 200
    assert (pair.plain_sum(opened) == REPORTS[0]).all()
    assert pair.post(opened, first).status_code == 200
    answer = pair.post(opened, late)
    assert (answer.status_code, kind(answer)) == (409, "Closed")
    pair.leader.delete(opened.round_id)
    assert pair.post(opened, first).status_code == 410


def test_a_client_that_hangs_up_is_counted_all_the_same(pair, opened):
    """It never learns so, and sends the same bytes again: 200, once in the sum."""
    body = sealed(opened, REPORTS[0]).body()
    with raw(pair) as sock:
        sock.sendall(head(opened, len(body)) + body)
    until = time.monotonic() + 10
    while pair.leader.status(opened.round_id).reports < 1:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert pair.post(opened, body).status_code == 200
    assert (pair.plain_sum(opened) == REPORTS[0]).all()


# --- Hostile: what is sent ------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "status"), [(-1, 400), (1, 413), (-(10**6), 400), (4, 413)]
)
def test_a_report_has_one_length(pair, opened, change, status):
    body = sealed(opened, REPORTS[0]).body()
    body = body[: max(0, len(body) + change)] + bytes(max(0, change))
    answer = pair.post(opened, body)
    assert answer.status_code == status
    assert "every report of this round has" in answer.text


def test_a_report_without_a_length_is_refused(pair, opened):
    def pieces():
        yield sealed(opened, REPORTS[0]).body()

    url = f"{pair.urls.reports}/v1/rounds/{opened.round_id.hex()}/reports"
    assert pair.http.post(url, content=pieces()).status_code == 411


def swapped(report: SealedReport) -> bytes:
    """Each half where the other one belongs, of the length that a report has."""
    body, n = report.body(), len(report.for_helper)
    return body[:48] + report.for_leader[:n] + report.for_helper + body[48 + 2 * n :]


def test_a_half_opens_in_its_place_alone(pair, opened):
    """Swapped, of another id, of another round, sealed to the other operator."""
    one, two = (sealed(opened, report) for report in REPORTS[:2])
    other = pair.open(run=opened.run, round=1, previous=opened.round_id)
    elsewhere = sealed(other, REPORTS[0], report_id=one.report_id)
    crossed = sealed(
        opened, REPORTS[0], leader=opened.keys["helper"], helper=opened.keys["leader"]
    )
    hostile = {
        "swapped": swapped(one),
        "another id": dataclasses.replace(one, report_id=two.report_id).body(),
        "leader's of another": dataclasses.replace(
            one, for_leader=two.for_leader
        ).body(),
        "helper's of another": dataclasses.replace(
            one, for_helper=two.for_helper
        ).body(),
        "leader's of another round": dataclasses.replace(
            one, for_leader=elsewhere.for_leader
        ).body(),
        "helper's of another round": dataclasses.replace(
            one, for_helper=elsewhere.for_helper
        ).body(),
        "sealed to the other operator": crossed.body(),
        "zeros": bytes(32) + bytes(body_size(NUMBERS) - 32),
        "random": opened.round_id + secrets.token_bytes(body_size(NUMBERS) - 32),
    }
    for name, body in hostile.items():
        answer = pair.post(opened, body)
        assert answer.status_code == 400, name
    assert pair.leader.status(opened.round_id).reports == 0
    assert pair.post(opened, one).status_code == 200  # an id is not used up by them
    assert (pair.plain_sum(opened) == REPORTS[0]).all()


def test_a_report_of_another_round_is_refused_in_both(pair, opened):
    """A replay across rounds: under its own name, and under the other one's."""
    other = pair.open(run=opened.run, round=1, previous=opened.round_id)
    report = sealed(opened, REPORTS[0])
    answer = pair.post(other, report)
    assert (answer.status_code, kind(answer)) == (400, "OtherRound")
    renamed = dataclasses.replace(report, round_id=other.round_id)
    answer = pair.post(other, renamed)
    assert (answer.status_code, kind(answer)) == (400, "Unopened")


@pytest.mark.parametrize("name", ["00" * 32, "00", "zz" * 32, "../" * 4])
def test_an_unknown_round_is_told_so(pair, name):
    url = f"{pair.urls.reports}/v1/rounds/{name}/reports"
    assert pair.http.post(url, content=b"x").status_code == 404


def test_a_round_that_is_signed_and_not_open_is_unknown(pair):
    manifest = pair.manifest()
    signed_by(pair.leader, pair.helper, manifest)
    assert pair.post(manifest, sealed(manifest, REPORTS[0])).status_code == 404


@pytest.mark.parametrize("version", ["0", "2", "x"])
def test_another_protocol_is_told_so(pair, opened, version):
    answer = pair.post(opened, sealed(opened, REPORTS[0]), tacit_protocol=version)
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "tacit/1")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/keys/" + "00" * 16 + "/0"),
        ("POST", "/v1/signatures"),
        ("POST", "/v1/rounds"),
        ("GET", "/v1/rounds/{id}"),
        ("DELETE", "/v1/rounds/{id}"),
        ("POST", "/v1/rounds/{id}/close"),
        ("PUT", "/v1/rounds/{id}/batches/" + "00" * 16),
        ("GET", "/metrics"),
        ("GET", "/"),
    ],
)
def test_what_operators_ask_is_not_where_clients_come_in(pair, opened, method, path):
    """Also with the secret."""
    secret = pair.place.secret("leader").read_text().strip()
    answer = pair.http.request(
        method,
        pair.urls.reports + path.format(id=opened.round_id.hex()),
        headers={"authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == 404


# --- Hostile: when it is sent ---------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "status"),
    [(-DAY, 503), (0, 200), (DAY, 409)],
    ids=["early", "now", "late"],
)
def test_the_window_is_that_of_the_leaders_clock(pair, opened, clock, ahead, status):
    """A day early the same bytes count later; a day late they do not."""
    body = sealed(opened, REPORTS[0]).body()
    clock.ahead = ahead
    try:
        answer = pair.post(opened, body)
    finally:
        clock.ahead = 0.0
    assert answer.status_code == status
    if status == 503:
        assert 0 < int(answer.headers["retry-after"]) <= 60
        assert pair.post(opened, body).status_code == 200


def raw(pair) -> socket.socket:
    url = httpx.URL(pair.urls.reports)
    return socket.create_connection((url.host, url.port), timeout=20)


def head(manifest, length: int) -> bytes:
    path = f"/v1/rounds/{manifest.round_id.hex()}/reports"
    said = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
    return said.encode()


def test_a_body_of_100_mb_is_refused_and_not_kept(pair, opened):
    """Declared, or sent beyond what was declared; memory does not grow with it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    piece, n = bytes(2**20), 100
    with raw(pair) as sock, contextlib.suppress(ConnectionError):
        sock.sendall(head(opened, n * len(piece)))
        answer = sock.recv(4096)
        assert b"413" in answer.splitlines()[0]
        assert b"connection: close" in answer.lower()
        for _ in range(n):
            sock.sendall(piece)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # in kilobytes
    assert grown < 30_000
    assert pair.post(opened, sealed(opened, REPORTS[0])).status_code == 200


def test_refusals_are_not_remembered(pair, opened):
    """Ten thousand of them would be a way to fill the memory."""
    report = sealed(opened, REPORTS[0])
    pair.post(opened, report)
    pair.close(opened)
    late = sealed(opened, REPORTS[1]).body()
    kept = []
    for _ in range(2):
        for _ in range(20):
            assert pair.post(opened, late).status_code == 409
        gc.collect()
        kept.append(sum(isinstance(one, SealedReport) for one in gc.get_objects()))
    assert kept[1] <= kept[0]


# --- Settings of its own --------------------------------------------------------------


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_a_slow_body_is_late_and_holds_nobody_up(place):
    limits = dataclasses.replace(QUICK, seconds=1.5)  # a report arrives at once
    with http_pair(place, leader={"intake": limits}) as pair:
        manifest = pair.open()
        body = sealed(manifest, REPORTS[0]).body()
        with raw(pair) as sock:
            sock.sendall(head(manifest, len(body)) + body[:-1])
            assert pair.post(manifest, sealed(manifest, REPORTS[1])).status_code == 200
            answer = sock.recv(4096)
        assert b"408" in answer.splitlines()[0]
        assert pair.post(manifest, body).status_code == 200
        assert (pair.plain_sum(manifest) == REPORTS[:2].sum(axis=0)).all()


@pytest.mark.parametrize(
    ("limits", "status"), [({"open": 1}, 429), ({"queue_bytes": 300}, 503)]
)
def test_more_than_a_leader_takes_on_waits(place, limits, status):
    """One report is under way, so another one is told to come again."""
    small = dataclasses.replace(QUICK, **limits)
    with http_pair(place, leader={"intake": small}) as pair:
        manifest = pair.open()
        first, second = (sealed(manifest, one).body() for one in REPORTS[:2])
        assert len(first) < 300 < 2 * len(first)
        with raw(pair) as sock:
            sock.sendall(head(manifest, len(first)) + first[:-1])
            until = time.monotonic() + 10
            while (answer := pair.post(manifest, second)).status_code == 200:
                second = sealed(manifest, REPORTS[1]).body()
                assert time.monotonic() < until
            assert answer.status_code == status
            assert int(answer.headers["retry-after"]) >= 1
            sock.sendall(first[-1:])
            assert b"200" in sock.recv(4096).splitlines()[0]
        assert pair.post(manifest, second).status_code == 200


def test_a_report_needs_a_ticket_and_a_ticket_reports_once(place):
    limits = Limits(0.01, free_bytes=0, needs_tickets=True)
    with http_pair(place, leader={"limits": limits}) as pair:
        ticket, other = hand_out(place.folder / "leader", 2)
        manifest = pair.open()
        first, second = (sealed(manifest, one) for one in REPORTS[:2])

        def status(report, **headers) -> int:
            return pair.post(manifest, report, **headers).status_code

        assert status(first) == 401
        assert status(first, authorization=f"Bearer {'00' * 16}") == 401
        assert status(first, authorization=f"Basic {ticket}") == 401
        assert status(first, authorization=f"Bearer {ticket}") == 200
        assert status(first, authorization=f"Bearer {ticket}") == 200
        assert status(second, authorization=f"Bearer {ticket}") == 403
        assert status(second, authorization=f"Bearer {other}") == 200


def test_without_a_ticket_no_byte_of_a_body_is_awaited(place):
    limits = Limits(0.01, free_bytes=0, needs_tickets=True)
    with http_pair(place, leader={"limits": limits}) as pair:
        manifest = pair.open()
        with raw(pair) as sock:
            sock.sendall(head(manifest, body_size(NUMBERS)))
            assert b"401" in sock.recv(4096).splitlines()[0]


def test_a_full_disk_is_told_and_the_same_bytes_count_later(place):
    full = Limits(0.01, free_bytes=2**62)
    bodies = []
    with http_pair(place, leader={"limits": full}) as pair:
        manifest = pair.open()
        bodies = [sealed(manifest, one).body() for one in REPORTS[:3]]
        for body in bodies:
            answer = pair.post(manifest, body)
            assert (answer.status_code, kind(answer)) == (503, "Disk")
            assert int(answer.headers["retry-after"]) > 0
        assert pair.leader.status(manifest.round_id).reports == 0
    with http_pair(place) as pair:
        assert [pair.post(manifest, one).status_code for one in bodies] == [200] * 3
        assert (pair.plain_sum(manifest) == REPORTS[:3].sum(axis=0)).all()


@pytest.mark.parametrize("error", [DiskError(None, "canary"), KeyError("canary")])
def test_a_batch_that_fails_is_told_and_the_same_bytes_count_later(
    pair, opened, monkeypatch, caplog, error
):
    """A disk that fails, or a bug: nobody hears 200, and nobody is dropped."""
    body = sealed(opened, REPORTS[0]).body()

    def fails(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Aggregator, "_count", fails)
        answer = pair.post(opened, body)
    assert (answer.status_code, kind(answer)) == (503, "NotCounted")
    assert int(answer.headers["retry-after"]) > 0
    assert "canary" not in answer.text + caplog.text
    assert pair.post(opened, body).status_code == 200
    assert (pair.plain_sum(opened) == REPORTS[0]).all()


def test_a_helper_that_is_away_is_waited_for_with_the_same_bytes(place, monkeypatch):
    """Stopped and started again on its port, with batches in between."""
    monkeypatch.setattr(operator_client, "_PAUSE", 0.01)
    bodies = []
    with contextlib.ExitStack() as both:
        helper = both.enter_context(contextlib.ExitStack())
        with aggregators_apart(place, helper) as (pair, address):
            manifest = pair.open()
            bodies = [sealed(manifest, one).body() for one in REPORTS[:6]]
            assert pair.post(manifest, bodies[0]).status_code == 200
            helper.close()  # away
            for _ in range(3):
                answer = pair.post(manifest, bodies[1])
                assert (answer.status_code, kind(answer)) == (503, "HelperAway")
                assert int(answer.headers["retry-after"]) > 0
            assert pair.leader.status(manifest.round_id).reports == 1
            settings = place.aggregator("helper", private=address)
            both.enter_context(in_thread(serve_aggregator, settings))
            found = [pair.post(manifest, one).status_code for one in bodies]
            assert found == [200] * 6
            assert (pair.plain_sum(manifest) == REPORTS[:6].sum(axis=0)).all()


@contextlib.contextmanager
def aggregators_apart(place, helper):
    """A pair whose helper ends with a stack of its own; and the helper's address."""
    from service.federation.rounds import Pair
    from service.federation.services import Urls

    from tacit.service.federation.operator_client import OperatorClient, Persistent
    from tacit.service.server import Address, listen

    ports = []
    for _ in range(2):
        with listen(Address(port=0)) as probe:
            ports.append(probe.getsockname()[1])
    own, other = (f"127.0.0.1:{one}" for one in ports)
    real = Persistent.__init__

    def impatient(self, client: OperatorClient, **settings) -> None:
        real(self, client, **{**settings, "seconds": 0.1})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Persistent, "__init__", impatient)
        helper.enter_context(
            in_thread(serve_aggregator, place.aggregator("helper", private=other))
        )
        url, helpers = f"http://{own}", f"http://{other}"
        settings = place.aggregator("leader", public=own, url=url, helper_url=helpers)
        with in_thread(serve_aggregator, settings) as urls, httpx.Client() as http:
            found = Urls(url, urls["private"], helpers)
            clients = [
                place.client_of("leader", found.leader),
                place.client_of("helper", helpers),
                place.client_of("pair", helpers),
            ]
            yield Pair(place, found, *clients, http), other
            for one in clients:
                one.close_connection()


@pytest.mark.parametrize("role", ["leader", "helper"])
def test_a_restored_aggregator_gives_up_its_open_rounds(place, role):
    """The other one does not: but nothing of the round is ever published whole."""
    with http_pair(place) as pair:
        manifest = pair.open()
        assert pair.post(manifest, sealed(manifest, REPORTS[0])).status_code == 200
    with restored(place, role) as pair:
        answer = pair.post(manifest, sealed(manifest, REPORTS[1]))
        assert answer.status_code == (410 if role == "leader" else 503)
        assert getattr(pair, role).status(manifest.round_id).state == "void"
        url = pair.urls.leader if role == "leader" else pair.urls.helper
        secret = place.secret(role).read_text().strip()
        closing = pair.http.post(
            f"{url}/v1/rounds/{manifest.round_id.hex()}/close",
            headers={"authorization": f"Bearer {secret}"},
        )
        assert closing.status_code == 410
        assert seed_on_disk(place.folder / role, manifest.round_id) is None


@contextlib.contextmanager
def restored(place, role):
    """Both started again, one of them as put back from a backup."""
    from tacit.service.federation.store import AggregatorStore

    AggregatorStore(place.folder / role, role, is_restored=True).close()
    with http_pair(place) as pair:
        yield pair


# --- What is left of a report ---------------------------------------------------------


def test_neither_log_nor_error_nor_file_name_has_an_id_a_ticket_or_an_address(
    place, caplog
):
    limits = Limits(0.01, free_bytes=0, needs_tickets=True)
    texts = []
    with (
        caplog.at_level(logging.DEBUG),
        http_pair(place, leader={"limits": limits}) as pair,
    ):
        [ticket] = hand_out(place.folder / "leader", 1)
        manifest = pair.open()
        report = sealed(manifest, REPORTS[0])
        broken = dataclasses.replace(sealed(manifest, REPORTS[1]), for_helper=bytes(80))
        canaries = [
            report.report_id.hex(),
            broken.report_id.hex(),
            ticket,
            "203.0.113.7",
        ]
        headers = {"authorization": f"Bearer {ticket}", "x_forwarded_for": canaries[-1]}
        bodies = [broken, report, report, report.body()[:-1]]
        bodies.append(sealed(manifest, REPORTS[2]))
        texts += [pair.post(manifest, one, **headers).text for one in bodies]
        texts.append(pair.http.get(pair.urls.leader + f"/v1/{ticket[:2]}").text)
        leader, helper = pair.close(manifest)
        texts.append(str(pair.leader.status(manifest.round_id)))
    records = [
        f"{one.getMessage()} {one.args} {one.exc_info}"
        for one in caplog.records
        if one.name.startswith(("tacit", "uvicorn", "asyncio"))
    ]
    names = [str(one.relative_to(place.folder)) for one in place.folder.rglob("*")]
    for canary in canaries:
        for text in (*records, *texts, *names):
            assert canary not in text
    disk = b"".join(
        one.read_bytes()
        for one in (place.folder / "leader").rglob("*")
        if one.is_file()
    )
    assert ticket.encode() not in disk  # a digest of it is
    assert bytes.fromhex(ticket) not in disk
    assert b"203.0.113.7" not in disk
    assert len(helper) == 4 * NUMBERS
    assert isinstance(leader, Closing)


def test_services_connect_to_nobody_but_loopback(place, monkeypatch):
    """Every connection of the process while a round is played over HTTP."""
    real, seen = socket.socket.connect, []

    def noted(self, address):
        seen.append(address)
        return real(self, address)

    monkeypatch.setattr(socket.socket, "connect", noted)
    with aggregators(place) as urls:
        assert urls.reports.startswith("http://127.0.0.1:")
    with http_pair(place) as pair:
        manifest = pair.open()
        for one in REPORTS[:3]:
            assert pair.post(manifest, sealed(manifest, one)).status_code == 200
        leader, helper = pair.close(manifest)
    found = without_noise(manifest, [leader.published, helper])
    assert (found == REPORTS[:3].sum(axis=0)).all()
    assert seen
    assert {host for host, *_ in seen} == {"127.0.0.1"}
