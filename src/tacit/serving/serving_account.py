"""What being served costs a user: the release of one query, and many over time.

release_of(mechanism, times)    the release, as plans, ledgers and cards read it
serving_terms(mechanism, times) what a client agrees to: so many fresh queries
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tacit import check
from tacit.ledger.budget import Taken
from tacit.ledger.terms import Terms, write_terms
from tacit.release import CELLS, Adjacency, Cell, Release, Standing
from tacit.runtime.ledger import statements_of
from tacit.sampling import composed
from tacit.serving.query_mechanism import QueryMechanism
from tacit.statement import Statement

HORIZONS = (1, 30, 365)  # fresh queries: one, and a daily one for a month or a year


def release_of(mechanism: QueryMechanism, times: int = 1) -> Release:
    """The release of so many fresh queries, with its six cells.

    Every client protects its own query, so whoever looks sees the same.
    """
    check.count(times=times)
    cells = {}
    for unit, view in CELLS:
        each = mechanism.event(unit)
        cells[unit, view] = Cell(
            Standing.PROVEN,
            f"{mechanism.reason} (docs/serving.md)",
            composed(each, times),
            Adjacency.REPLACE_ONE,
            mechanism.assumes,
            each=each,
            is_local=True,
        )
    return Release(
        f"query for a list ({mechanism.mode})",
        "the server that ranks",
        "once per refresh period",
        cells,
    )


def serving_terms(mechanism: QueryMechanism, times: int) -> Terms:
    """What a client agrees to that is served with so many fresh queries at the most."""
    return Terms((release_of(mechanism, times),), rounds=times, most=times)


def run_name(mechanism: QueryMechanism) -> str:
    """A name for a ledger: queries that cost the same are counted under one."""
    text = write_terms(serving_terms(mechanism, 1))
    return f"serving {mechanism.mode} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def outlook(
    mechanism: QueryMechanism, *, before: Taken = (), horizons: Sequence[int] = HORIZONS
) -> tuple[Statement, ...]:
    """One statement per horizon, unit and view: so many queries, and what was before.

    `before` is what the user took part in, such as the rounds of a training.
    """
    return tuple(
        line
        for times in horizons
        for line in statements_of(
            [*before, (serving_terms(mechanism, times), range(times))],
            what=_said(times, has_trained=bool(before)),
        )
    )


def _said(times: int, *, has_trained: bool) -> str:
    queries = "one query" if times == 1 else f"{times} queries"
    return f"training and {queries}" if has_trained else queries
