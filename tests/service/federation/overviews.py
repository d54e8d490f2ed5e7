"""Overviews of services in the middle of a round, for pages and metrics."""

from dataclasses import replace

from tacit.release import EVERYONE, Adjacency, Standing, Unit, View
from tacit.service.federation.operator_client import Peer
from tacit.service.federation.overview import (
    REFUSALS,
    Budget,
    Outcome,
    Overview,
    RoundLine,
    Traffic,
)
from tacit.service.federation.stepwise_run import RunState
from tacit.statement import Statement

OPENS = 1_790_000_000
HOUR = OPENS - OPENS % 3600


def a_round(**changes) -> RoundLine:
    made = RoundLine(
        *("8c1f00aa", 1, "open", "open", "relations"),
        *(OPENS, OPENS + 86_400, 1200, 1000),
    )
    return replace(made, **changes)


A_VOID = a_round(
    number=0, state="void", meaning="void; its halves are erased", why="too few reports"
)


def a_leader(**changes) -> Overview:
    refusals = {**dict.fromkeys(REFUSALS), "503": 1050}
    made = Overview(
        role="leader",
        title="",
        rounds=(
            a_round(),
            a_round(
                number=0,
                state="deleted",
                meaning="finished; its halves are erased",
                reports=None,
                is_forgotten=True,
            ),
        ),
        starts=3,
        disk_free=40 * 2**30,
        peers={"helper": Peer(True, 12.3)},
        state=RunState("Round 1 is open; it waits for reports until then"),
        traffic=Traffic(
            refusals, 1050, OPENS - OPENS % 3600, (0.012, 0.09), 32 * 2**20, 16 * 2**20
        ),
    )
    return replace(made, **changes)


def a_coordinator(**changes) -> Overview:
    made = Overview(
        role="coordinator",
        title="A small shop",
        rounds=(a_round(), A_VOID),
        starts=1,
        disk_free=2**30,
        peers={"leader": Peer(True, 4.0), "helper": Peer(False, 181.0)},
        state=RunState(f"The model is published; its SHA-256 is {'ab' * 32}"),
        budget=Budget(statements(), statements()),
        outcome=Outcome(
            ("ab" * 32,),
            ({"name": "hr@20", "value": 0.25, "low": 0.2, "high": 0.3, "people": 990},),
        ),
    )
    return replace(made, **changes)


def statements() -> tuple[Statement, ...]:
    made = Statement(
        *("everything", "the server", EVERYONE),
        *(Unit.USER, Adjacency.ZERO_OUT, View.SERVER),
        *(1e-6, "3 rounds", "pld", Standing.PROVEN, "the other aggregator is honest"),
        *(8.0, "docs/two_servers.md"),
    )
    none = replace(made, view=View.COLLUSION, standing=Standing.NONE, epsilon=None)
    return (made, replace(none, delta=None, reason="together they open every report"))
