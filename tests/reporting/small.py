"""A report with something of everything in it, some of it hostile, and a finding."""

from __future__ import annotations

from typing import Any

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
PAIR = Paired(HOSTILE, "random", "NDCG@10", 0.24, 0.2, 0.3, 0.001, 500, True)
CHOICE = Choice(1.0, HOSTILE, HOSTILE, 0.25, False, Reason.ONLY)
VOTES = Release("votes", "server", "each round", unprotected("bare_reports"))


def contenders() -> tuple[Contender, ...]:
    ours = {"NDCG@10": Estimate(0.25, 0.01), "HR@10": Estimate(0.5)}
    return (
        Contender(HOSTILE, ours, is_this_run=True),
        Contender("_hidden", {"NDCG@10": Estimate(0.125)}),
    )


def report() -> Report:
    """A page of all sections."""
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
        differences=(
            Paired(HOSTILE, "random", "NDCG@10", 0.24, 0.2, 0.3, 0.001, 500, True),
        ),
        verdict=Verdict(HOSTILE, "NDCG@10", 12, 1, 1, (CHOICE,), unproven=(HOSTILE,)),
        costs=(Costs(HOSTILE, 1e3, 2e6, 0.1, 3.0, None),),
        curve=Curve("NDCG@10", (1, 2, 3), tuple(map(Estimate, (0.1, 0.2, 0.25)))),
        groups={HOSTILE: {"NDCG@10": methods}, "many": {"NDCG@10": methods}},
        user=User(HOSTILE, (HOSTILE, "tea"), ((HOSTILE, 0.5), ("milk", 0.25))),
    )


def finding() -> dict[str, Any]:
    """An attack with the mechanism off and on, as a document has it."""
    line = {
        "what": "gradient",
        "seen_by": "server",
        "group": "everyone",
        "unit": "user",
        "adjacency": "replace_one",
        "view": "server",
        "delta": 0.0,
        "horizon": "once, 1 rounds planned",
        "accountant": "basic composition",
        "standing": "PROVEN",
        "assumes": "nothing",
        "epsilon": 1.0,
        "reason": "a theorem",
        "published_epsilon": None,
    }
    bare = line | {"standing": "NONE", "epsilon": None, "reason": HOSTILE}
    score = {"mean": 1.0, "se": None, "chance": 0.25, "most": None}
    return {
        "name": "item_gradient",
        "question": HOSTILE,
        "source": "synthetic",
        "users": 1200,
        "items": 30,
        "seed": 0,
        "attempts": [
            {
                "mechanism": HOSTILE,
                "statement": bare,
                "is_protected": False,
                "scores": {"found": score},
            },
            {
                "mechanism": "noise",
                "statement": line,
                "is_protected": True,
                "scores": {"found": score | {"mean": 0.3, "se": 0.01, "most": 0.6}},
            },
        ],
    }
