"""What operators see of real services: crowds, and nothing of anybody."""

from __future__ import annotations

import os

import httpx
import pytest
from service.federation import services
from service.federation.services import Place, Urls

from tacit.release import Standing, View
from tacit.service.federation.manifest import read_manifest
from tacit.service.federation.overview import REFUSALS, of_coordinator
from tacit.service.federation.sealing import sealed_report
from tacit.service.federation.services import serve_coordinator

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
    manifest = read_manifest(signed, **keys)
    path = f"{urls.reports}/v1/rounds/{manifest.round_id.hex()}/reports"
    found = []
    with httpx.Client() as http:
        for n in range(count):
            report = sealed_report(
                os.urandom(32),
                bytes(4 * manifest.numbers),
                round_id=manifest.round_id,
                leader=manifest.leader_key,
                helper=manifest.helper_key,
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
        assert after.answers == {"leader": True, "helper": True}
        found.close()
    assert before.budget is not None
    assert after.budget is not None
    assert before.budget.spent == ()
    assert before.answers == {"leader": None, "helper": None}
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
    with pytest.raises(Exception, match="cannot be reached"):
        found.step()
    assert of_coordinator(found).answers == {"leader": False, "helper": None}
    found.close()


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
