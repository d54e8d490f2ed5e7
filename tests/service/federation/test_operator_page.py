"""The operator's page: what it says, and how it looks at a desk and on a phone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import page_checks
import pytest
from service.federation.overviews import (
    a_coordinator,
    a_leader,
    a_round,
    statements,
)

from tacit.service.federation.operator_page import OperatorPage, operator_page
from tacit.service.federation.overview import Budget, Overview
from tacit.service.federation.stepwise_run import RunState

CHROMIUM = page_checks.chromium()


def test_a_leaders_page():
    page = operator_page(a_leader())
    for said in ("relations", "1,200", "1,050", "12 ms", "90 ms", "32 MiB"):
        assert said in page
    assert "hidden: too few" in page
    assert "answered 12 s ago" in page
    assert "finished; its halves are erased" in page
    assert "<dd>erased</dd>" not in page  # of the newest round, which is open
    assert "<script" not in page
    assert "2026-09-21 14:13 UTC" in page  # of the window, which is public


def test_times_that_arrivals_have_are_whole_hours():
    page = operator_page(a_leader())
    assert "2026-09-21, 14 h UTC" in page


def test_a_coordinators_page_has_every_epsilon_with_its_terms():
    page = operator_page(a_coordinator())
    assert "8.0000 (zero_out, delta 1e-06; 3 rounds; pld)" in page
    for said in (
        "PROVEN",
        "NONE",
        "who looks",
        "planned",
        "spent",
        "the server&#x27;s operator",
    ):
        assert said in page
    assert page.count("<table") == 2  # of rounds, and of all that is about epsilon
    assert "hr@20 0.2500, between 0.2000 and 0.3000" in page
    assert "Round 1 is void: too few reports" in page
    assert "No answer from the helper for 3 min" in page


@pytest.mark.parametrize("is_well", [True, False])
def test_the_state_comes_before_all_else(is_well):
    digest = "ab" * 32
    state = RunState(f"The model is published; its SHA-256 is {digest}", is_well)
    _, page = operator_page(a_coordinator(state=state)).split("</h1>")
    first = page.split("</div>")[0]
    assert digest in first
    assert ('class="notice good"' in first) == is_well
    assert page.count(digest) == 1


def test_what_is_spent_stands_beside_what_was_planned():
    """Before the first round nothing is, and figures that differ are both shown."""
    planned = statements()
    cheaper = tuple(replace(one, epsilon=one.epsilon and 2.5) for one in planned)
    for spent, said in ((), "nothing before the first round"), (cheaper, "2.5000"):
        page = operator_page(a_coordinator(budget=Budget(planned, spent)))
        assert said in page
        assert "8.0000" in page


def test_before_the_first_round():
    page = operator_page(a_leader(rounds=()))
    assert "No round has been opened yet." in page


def test_text_from_outside_is_escaped():
    page = operator_page(a_coordinator(title="<script>alert(1)</script>"))
    assert "<script" not in page


# --- In Chromium ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright.sync_api", reason="needs playwright, of dev")
    pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")
    if CHROMIUM is None:
        pytest.skip(f"needs a browser: {', '.join(page_checks.NAMES)}")
    with page_checks.started(CHROMIUM) as found:
        yield found


LONG = "a helper of another operator at https://helper.a-very-long-name.example:8443"


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(a_leader(), marks=pytest.mark.slow),
        a_leader(rounds=(), traffic=None, role="helper", peers={}),
        pytest.param(a_coordinator(), marks=pytest.mark.slow),
        a_coordinator(state=RunState(f"Nothing goes on: {LONG}", is_well=False)),
    ],
    ids=["leader", "fresh", "coordinator", "trouble"],
)
def test_nothing_is_wrong_with_it_in_a_browser(browser, seen: Overview, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(operator_page(replace(seen, rounds=(*seen.rounds, a_round()))))
    assert page_checks.problems(browser, file) == []


@pytest.mark.parametrize("path", ["/", "/still", "/metrics"])
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8201", 200),
        ("[::1]:8201", 200),
        ("10.1.2.3", 200),
        ("localhost:8201", 200),
        ("leader:8201", 200),
        ("Leader", 200),
        ("evil.example:8201", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("a@localhost", 421),
        ("", 421),
    ],
)
def test_a_page_is_served_under_its_own_names_alone(path, host, status):
    """Another name that resolves to this machine would read it in a browser."""
    application, sent = OperatorPage(a_leader, ["leader"]).application, []
    scope = {"type": "http", "method": "GET", "path": path}
    scope["headers"] = [(b"host", host.encode())]

    async def send(message):
        sent.append(message)

    with ThreadPoolExecutor(1) as beside:  # where no other loop runs
        beside.submit(asyncio.run, application(scope, None, send)).result()
    assert sent[0]["status"] == status
