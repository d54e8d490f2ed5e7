"""A report with something of everything in it, some of it hostile."""

from __future__ import annotations

import pytest

from tacit.plans import Plan
from tacit.privacy.guarantees import unprotected
from tacit.release import Release
from tacit.reporting.report_data import (
    Contender,
    Costs,
    Curve,
    Estimate,
    Lead,
    Paired,
    Report,
    Tradeoff,
    User,
)
from tacit.reporting.verdict import Choice, Reason, Verdict
from tacit.statement import account

HOSTILE = '<script>alert("$x_1$ & more")</script>'
CHOICE = Choice(1.0, HOSTILE, HOSTILE, 0.25, False, Reason.ONLY)
VOTES = Release("votes", "server", "each round", unprotected("sent as they are"))


def contenders() -> tuple[Contender, ...]:
    ours = {"NDCG@10": Estimate(0.25, 0.01), "HR@10": Estimate(0.5)}
    return (
        Contender(HOSTILE, ours, is_this_run=True),
        Contender("_hidden", {"NDCG@10": Estimate(0.125)}),
    )


@pytest.fixture
def report() -> Report:
    methods = {HOSTILE: Estimate(0.25, 0.01), "random": Estimate(0.01)}
    return Report(
        title=HOSTILE,
        command=f"tacit report {HOSTILE}",
        simulation=True,
        lead=(Lead("people", "12", HOSTILE),),
        facts=((HOSTILE, HOSTILE),),
        statements=account(Plan(12), (VOTES,)).releases,
        comparison=contenders(),
        tradeoff=Tradeoff("NDCG@10", {HOSTILE: ((1.0, Estimate(0.2)),)}, methods),
        differences=(Paired(HOSTILE, "random", "NDCG@10", 0.24, 0.2, 0.3, 0.001),),
        verdict=Verdict(HOSTILE, "NDCG@10", 12, 1, 1, (CHOICE,), unproven=(HOSTILE,)),
        costs=(Costs(HOSTILE, 1e3, 2e6, 0.1, 3.0, None),),
        curve=Curve("NDCG@10", (1, 2, 3), tuple(map(Estimate, (0.1, 0.2, 0.25)))),
        groups={HOSTILE: {"NDCG@10": methods}, "many": {"NDCG@10": methods}},
        user=User(HOSTILE, (HOSTILE, "tea"), ((HOSTILE, 0.5), ("milk", 0.25))),
    )
