from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent

from tacit.codes import Code
from tacit.plans import Plan
from tacit.privacy.guarantees import local, summed, unprotected
from tacit.release import Cells, Release
from tacit.reporting.html import SOME_PROVEN
from tacit.reporting.plain_words import sentence
from tacit.reporting.privacy_card import render
from tacit.statement import account

HOSTILE = "<script>alert(1)</script>"


def card(cells: Cells, plan: Plan) -> dict[str, Any]:
    releases = (Release("votes", "server", "each round", cells),)
    told = account(plan, releases)
    again = account(plan, releases, runs=2).totals
    return {
        "tacit": "0",
        "simulation": False,
        "title": HOSTILE,
        "data": {
            "source": HOSTILE,
            "people": 1000,
            "items": 3,
            "kinds": [{"what": HOSTILE, "personal": True, "held_by": "the client"}],
        },
        "method": {"name": "m"},
        "leaves": [
            {"what": "votes", "seen_by": HOSTILE, "when": "once", "group": "everyone"}
        ],
        "releases": [asdict(line) for line in told.releases],
        "totals": [asdict(line) for line in told.totals],
        "budget": {
            "target_epsilon": None,
            "delta": plan.delta,
            "channel": plan.channel,
            "sampler": "Everyone",
            "cohort_size": 1000.0,
            "rounds": 1,
            "most_participations": 1,
            "retraining": [asdict(line) | {"runs": 2} for line in again],
        },
        "rounds_begun": 0,
        "audit": None,
        "contact": HOSTILE,
    }


@pytest.fixture
def plan() -> Plan:
    return Plan(1000, channel="secure_sum", delta=1e-6)


def test_nothing_promised_is_said_so(plan: Plan) -> None:
    page = render(card(unprotected("bare_reports", "sent as they are"), plan))
    assert "This run makes no promise." in page
    assert "There is no promise, so nothing is assumed." in page


def test_a_central_promise_names_whom_it_trusts(plan: Plan) -> None:
    cells = summed(plan, GaussianDpEvent(4.0), reason="a theorem")
    page = render(card(cells, plan))
    assert SOME_PROVEN in page
    assert sentence(str(Code("trusted_aggregator"))) in page


def test_a_local_promise_trusts_nobody(plan: Plan) -> None:
    page = render(card(local(plan, GaussianDpEvent(4.0), reason="a theorem"), plan))
    assert "A proven promise covers every observer" in page
    assert "rest on mathematics alone" in page


def test_an_audit_is_shown_as_it_went(plan: Plan) -> None:
    shown = card(unprotected("bare_reports", "bare"), plan)
    check = {"name": "noise", "claimed": 2.00001, "measured": None, "ok": True}
    check |= {"subject": "votes"}
    page = render(shown | {"audit": {"ok": True, "checks": [check]}})
    assert "All 1 checks passed" in page
    for cell in (">2.0001</td>", ">not finite</td>", ">passed</td>"):
        assert cell in page
    assert "votes: noise" in page
    assert "looked at" not in page  # an audit of an earlier version
    scope = {"not_looked_at": [{"subject": "v", "kind": "serving", "name": "krr"}]}
    scoped = {"ok": True, "checks": [check], "scope": scope}
    assert "not looked at: v: serving: krr" in render(shown | {"audit": scoped})
    empty = render(shown | {"audit": {"ok": False, "checks": []}})
    assert "The audit made no check." in empty


def test_text_from_outside_is_escaped(plan: Plan) -> None:
    page = render(card(unprotected("bare_reports", HOSTILE), plan))
    assert HOSTILE not in page
    assert "simulation" not in page.partition("<main>")[2]
