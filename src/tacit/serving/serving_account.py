"""What being served costs a user: the release of one query, and many over time.

release_of(queries, times)      the release, as plans, ledgers and cards read it
serving_terms(queries, times)   what a client agrees to: so many fresh queries
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from tacit import check
from tacit.codes import Code
from tacit.ledger.budget import Taken
from tacit.ledger.terms import Terms, agreed_terms
from tacit.release import CELLS, Adjacency, Cell, Release, Standing, Unit
from tacit.runtime.ledger import statements_of
from tacit.sampling import composed
from tacit.serving.query import Mode
from tacit.statement import Statement

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

HORIZONS = (1, 30, 365)  # fresh queries: one, and a daily one for a month or a year


class Queries(Protocol):
    """What an account needs to know of queries: a mechanism, or settings of one."""

    @property
    def mode(self) -> Mode:
        """The mode of the queries."""

    @property
    def reason(self) -> str:
        """Why their guarantee holds."""

    @property
    def claimed(self) -> float | None:
        """What a paper claims for one interaction and query; never called epsilon."""

    @property
    def assumes(self) -> tuple[Code, ...]:
        """What it rests on besides the client."""

    def event(self, unit: Unit) -> DpEvent:
        """What one of them costs."""


def release_of(queries: Queries, times: int = 1) -> Release:
    """The release of so many fresh queries, with its six cells.

    Every client protects its own query, so whoever looks sees the same.
    """
    check.count(times=times)
    cells = {(unit, view): _cell(queries, unit, times) for unit, view in CELLS}
    return Release(
        f"query for a list ({queries.mode})",
        "the server that ranks",
        "once per refresh period",
        cells,
        channel="direct",
    )


def _cell(queries: Queries, unit: Unit, times: int) -> Cell:
    """What is proven for this unit; beside it, for one interaction, a paper's claim."""
    from tacit.accounting.dp_events import NonPrivateDpEvent

    each, reason = queries.event(unit), f"{queries.reason} (docs/serving.md)"
    if isinstance(each, NonPrivateDpEvent):
        return Cell.none("bare_reports", reason)
    cell = Cell(
        Standing.PROVEN,
        reason,
        composed(each, times),
        Adjacency.REPLACE_ONE,
        queries.assumes,
        each=each,
        is_local=True,
    )
    # The claim is for one interaction; for a whole user there is none.
    return (
        cell if unit is Unit.USER else replace(cell, published_epsilon=queries.claimed)
    )


def serving_terms(queries: Queries, times: int) -> Terms:
    """What a client agrees to that is served with so many fresh queries at the most."""
    return Terms((release_of(queries, times),), rounds=times, most=times)


def run_name(queries: Queries) -> str:
    """A name for a ledger: queries that cost the same are counted under one."""
    text = agreed_terms(serving_terms(queries, 1))
    return f"serving {queries.mode} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def outlook(
    queries: Queries, *, before: Taken = (), horizons: Sequence[int] = HORIZONS
) -> tuple[Statement, ...]:
    """One statement per horizon, unit and view: so many queries, and what was before.

    `before` is what the user took part in, such as the rounds of a training.
    """
    return tuple(
        line
        for times in horizons
        for line in statements_of(
            [*before, (serving_terms(queries, times), range(times))],
            what=_said(times, trainings=len(before)),
        )
    )


def _said(times: int, *, trainings: int) -> str:
    queries = "one query" if times == 1 else f"{times} queries"
    if not trainings:
        return queries
    return f"{'training' if trainings == 1 else f'{trainings} trainings'} and {queries}"
