"""What operators see of real services: crowds, and nothing of anybody."""

from __future__ import annotations

import contextlib
import http.server
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import httpx
import pytest
from service.federation import services
from service.federation.services import Place, Urls
from service.ports import free_ports

from tacit.release import Standing, View
from tacit.service.federation.operator_client import OperatorClient, Peer
from tacit.service.federation.overview import REFUSALS, of_coordinator
from tacit.service.federation.sealing import SumFields, sealed_report
from tacit.service.federation.services import serve_coordinator
from tacit.service.federation.settings import read_secret
from tacit.service.federation.trial import wait_for, write_toml
from tacit.service.manifest import read_manifest

LEAST, REPORTS = 60, 110
CANARY = b"canary report id"  # sixteen bytes
TICKET = "ca4a4711" * 4
MADE = services.experiment(
    data={"population": 150}, privacy={"min_contributors": LEAST}
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Place(tmp_path)


def send(urls: Urls, signed: bytes, place: Place, count: int) -> list[int]:
    """The answers to so many reports of zeros; the first has an id to look for."""
    keys = {role: bytes.fromhex(key) for role, key in place.keys.items()}
    manifest = read_manifest(signed, SumFields, keys)
    path = f"{urls.reports}/v1/rounds/{manifest.round_id.hex()}/reports"
    found = []
    with httpx.Client() as http:
        for n in range(count):
            report = sealed_report(
                os.urandom(32),
                bytes(4 * manifest.fields.numbers),
                round_id=manifest.round_id,
                leader=manifest.keys["leader"],
                helper=manifest.keys["helper"],
                report_id=CANARY if n == 0 else None,
            )
            headers = {"authorization": f"Bearer {TICKET}"}
            answer = http.post(path, content=report.body(), headers=headers)
            found.append(answer.status_code)
    return found


def texts(page: str) -> list[str]:
    return [httpx.get(f"{page}{path}").text for path in ("/", "/still", "/metrics")]


def test_counts_of_real_services_are_hidden_and_then_floored(place, caplog):
    run = services.a_run(place, MADE)
    with services.aggregators(place) as urls:
        found = services.coordinator(place, urls, run)
        services.step_until(found, "open")
        [row] = found.rounds()
        pages = (urls.leader_page, urls.helper_page)
        assert {*send(urls, row.signed, place, LEAST - 5)} == {200}
        found.step()
        early = [*map(texts, pages)]
        assert all("hidden: too few" in page for page, _, _ in early)
        assert not any("tacit_round_reports" in metrics for _, _, metrics in early)
        assert of_coordinator(found).rounds[0].reports is None
        more = send(urls, row.signed, place, REPORTS - LEAST + 6)
        assert {*more} == {200}  # the first once more, which counts once
        found.step()
        late = [*map(texts, pages)]
        assert all("\ntacit_round_reports 100\n" in metrics for _, _, metrics in late)
        assert of_coordinator(found).rounds[0].reports == 100
        found.close()
    for text in (text for some in (*early, *late) for text in some):
        for secret in (CANARY.decode(), CANARY.hex(), TICKET, "127.0.0.1"):
            assert secret not in text
    assert CANARY.hex() not in caplog.text
    assert TICKET not in caplog.text


def test_refusals_are_floored_and_their_lines_are_always_there(place):
    with services.aggregators(place, leader={"page": services.ANY}) as urls:
        _, before, _ = texts(urls.leader_page)
        path = f"{urls.reports}/v1/rounds/{'0' * 64}/reports"
        with httpx.Client() as http:
            for _ in range(73):
                assert http.post(path, content=b"x").status_code == 404
        _, after, metrics = texts(urls.leader_page)
    assert all(before.count(reason) == after.count(reason) for reason in REFUSALS)
    assert '\ntacit_refusals{status="404"} 50\n' in metrics
    assert '\ntacit_refusals{status="400"} 0\n' not in metrics  # below the least: 1


def test_a_coordinators_epsilon_is_planned_and_then_spent(place):
    run = services.a_run(place, MADE)
    with services.aggregators(place) as urls:
        found = services.coordinator(place, urls, run)
        before = of_coordinator(found)
        services.step_until(found, "open")
        after = of_coordinator(found)
        assert after.state.is_well
        assert "is open; the run waits for reports until" in after.state.text
        found.close()
    assert before.budget is not None
    assert after.budget is not None
    assert before.budget.spent == ()
    assert before.peers == {"leader": Peer(), "helper": Peer()}
    assert before.state.text.startswith("No round is open yet")
    views = {line.view: line for line in after.budget.spent if line.unit == "user"}
    assert views[View.SERVER].standing is Standing.PROVEN
    assert views[View.SERVER].epsilon == pytest.approx(8.0, abs=0.01)
    assert views[View.COLLUSION].standing is Standing.NONE


def test_an_aggregator_that_is_away_is_told(place):
    found = services.coordinator(
        place,
        Urls("http://127.0.0.1:1", "http://127.0.0.1:1", "http://127.0.0.1:1"),
        services.a_run(place, MADE),
    )
    stop = threading.Event()
    stop.wait = lambda _: stop.set()  # after the first step, however long it takes
    found.play(stop=stop)
    found.leader.greet()
    seen = of_coordinator(found)
    assert not seen.state.is_well
    assert "cannot be reached" in seen.state.text
    assert seen.peers == {"leader": Peer(answers=False), "helper": Peer()}
    found.close()


@contextlib.contextmanager
def a_helpers_process(place: Place):
    """A real helper and its private address."""
    private, page = (f"127.0.0.1:{port}" for port in free_ports(2))
    table = {
        "role": "helper",
        "folder": str(place.folder / "helper"),
        "signing_key": str(place.folder / "helper" / "keys" / "signing.key"),
        **{f"{role}_key": key for role, key in place.keys.items()},
        "coordinator_secret": str(place.secret("helper")),
        "pair_secret": str(place.secret("pair")),
        **{"private": private, "page": page, "limits": {"least_multiplier": 0.01}},
    }
    config = place.folder / "helper.toml"
    write_toml(config, table)
    command = (sys.executable, "-m", "tacit", "serve", "helper", "--config", config)
    log = place.folder / "log"
    with log.open("wb") as out, subprocess.Popen(command, stderr=out) as process:
        try:
            wait_for(process, config)
            yield process, f"http://{private}"
        finally:
            process.kill()


def wait_until(is_so: Callable[[], bool], *, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def answering(status: int, body: bytes) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    return Handler


def test_a_helper_that_is_killed_is_told_while_nothing_is_asked_of_it(place):
    """A real process; the run of the coordinator is retired, so that it asks nothing.

    The page is looked at like an operator would, and greetings come quickly.
    """
    run = services.a_run(place, MADE)
    with contextlib.ExitStack() as closing:
        helper, url = closing.enter_context(a_helpers_process(place))
        settings = place.coordinator(helper_url=url)
        serving = services.in_thread(serve_coordinator, settings, run, greetings=0.05)
        urls = closing.enter_context(serving)
        secret = read_secret(place.secret("own")).decode()
        retire = f"{urls['private']}/v1/retire"
        httpx.post(retire, headers={"authorization": f"Bearer {secret}"})
        wait_until(lambda: "answered 0 s ago" in texts(urls["page"])[0])
        helper.kill()
        helper.wait()
        wait_until(lambda: "No answer from the helper for" in texts(urls["page"])[0])
        page, _, metrics = texts(urls["page"])
        assert "The run is retired" in page
        assert '\ntacit_peer_answers{peer="helper"} 0\n' in metrics
        assert 'tacit_peer_answer_age_seconds{peer="helper"}' in metrics


@pytest.mark.parametrize(
    ("status", "body", "answers"),
    [
        (200, b"{}", True),
        (404, b'{"error": {"kind": "NotFound", "message": "not known here"}}', True),
        (404, b"", False),  # of a proxy that has another path
        (502, b"bad gateway", False),  # of one whose service is away
    ],
)
def test_an_answer_of_a_proxy_is_none_of_the_helper(status, body, answers):
    server = http.server.HTTPServer(("127.0.0.1", 0), answering(status, body))
    with server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        client = OperatorClient("helper", url, b"secret")
        client.greet()
        thread.join()
        client.close_connection()
    assert client.peer.answers is answers
    assert (client.peer.seconds is None) != answers


def test_a_coordinator_serves_its_page_on_a_listener_of_its_own(place):
    run = services.a_run(place, MADE, title="A small shop")
    settings = place.coordinator()
    with services.in_thread(serve_coordinator, settings, run) as urls:
        page, still, metrics = texts(urls["page"])
        fresh = httpx.get(urls["page"])
        assert fresh.headers["refresh"] == "30"
        assert "refresh" not in httpx.get(f"{urls['page']}/still").headers
        for name in ("public", "private"):
            assert httpx.get(f"{urls[name]}/metrics").status_code == 404
    assert "Coordinator: A small shop" in page
    assert "Keep it as it is" in page
    assert "Refresh it" in still
    assert 'tacit_epsilon{kind="planned",view="server"' in metrics
