"""What an operator may see of a service: one picture for the page and for metrics.

    aggregator    rounds, refusals, batches, disk and queue, reach of the helper
    coordinator   rounds, reach of both, epsilon planned and spent, what is released

Nothing in it is about a person: no address, no id of a report, no ticket, no time of an
arrival, and counts as `coarse` has them. It is made beside the thread that counts
reports, which may be waiting for a helper that is away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.experiment.run_ledger import RunLedger
from tacit.runtime.run import RunDirectory
from tacit.service.federation.aggregator import Aggregator
from tacit.service.federation.coarse import (
    DISK_STEP,
    HOUR,
    down_to,
    floored,
    quantiles,
    queue_step,
)
from tacit.service.federation.coordinator import Coordinator
from tacit.service.federation.operator_client import OperatorClient, Peer
from tacit.service.federation.public_rounds import OPEN, moment
from tacit.service.federation.sealing import Role
from tacit.service.federation.stepwise_run import RunState, StepwiseRun
from tacit.service.federation.store import (
    CLOSED,
    CLOSING,
    DELETED,
    SIGNED,
    VOID,
    RoundRow,
)
from tacit.statement import Statement
from tacit.text import nth_round

_MOST_ROUNDS = 20  # the newest ones
# Every status that a leader refuses with, whether it did so or not: that a line appears
# would tell when the first one came.
REFUSALS: Mapping[str, str] = {
    "400": "a wrong length, or a half that does not open",
    "401": "no ticket of this operator",
    "403": "a ticket that another report has used",
    "404": "an unknown round or path",
    "408": "a body that took too long",
    "409": "the round is closed or full",
    "410": "the round is over",
    "413": "a body that is too long",
    "426": "a client of another protocol",
    "429": "too many at once",
    "500": "a bug of the service",
    "503": "queue full, helper away, disk full, or too early",
    "other": "something else",
}

_MEANINGS: Mapping[str, str] = {  # of the states that a round has at an aggregator
    SIGNED: "signed, not open yet",
    OPEN: "open",
    CLOSING: "closing",
    CLOSED: "closed; its halves are not erased yet",
    DELETED: "finished; its halves are erased",
    VOID: "void; its halves are erased",
}


@dataclass(frozen=True)
class RoundLine:
    """One round as an operator sees it."""

    run: str  # the beginning of its name
    number: int
    state: str
    meaning: str  # what the state says, in words
    leaf: str  # what is added up
    opens: int  # seconds since 1970
    closes: int
    reports: int | None  # None: hidden, or forgotten with the round
    least: int  # below which nothing is published, and nothing shown
    why: str = ""  # of a void one
    is_forgotten: bool = False  # with its count


@dataclass(frozen=True)
class Traffic:
    """What an aggregator has done since it was started."""

    refusals: Mapping[str, int | None]
    batches: int | None
    last_commit: int | None  # the hour of it, in seconds since 1970
    commit_seconds: tuple[float, float] | None  # median and 99th percentile
    queue_bytes: int
    queue_step: int  # bytes; down to which the queue is shown
    reasons: Mapping[str, str] = field(default_factory=lambda: REFUSALS)  # by status


@dataclass(frozen=True)
class Budget:
    """What was promised to users, and what is spent of it."""

    planned: tuple[Statement, ...]
    spent: tuple[Statement, ...]


@dataclass(frozen=True)
class Outcome:
    """What a run released, or why it released no model."""

    models: tuple[str, ...] = ()  # SHA-256 of each, in hexadecimal
    metrics: tuple[Mapping[str, Any], ...] = ()
    withheld: str = ""


@dataclass(frozen=True)
class Overview:
    """One service as its operator sees it."""

    role: str
    title: str
    rounds: tuple[RoundLine, ...]  # the newest first
    starts: int
    disk_free: int  # bytes
    peers: Mapping[str, Peer]  # the other services
    state: RunState
    traffic: Traffic | None = None
    budget: Budget | None = None
    outcome: Outcome | None = None


def of_aggregator(
    aggregator: Aggregator,
    helper: OperatorClient | None,
    *,
    queued: Callable[[], int] = lambda: 0,
) -> Overview:
    """A leader with its helper, or a helper.

    `queued` gives the bytes that wait to be counted.
    """
    store, tally = aggregator.store, aggregator.tally
    with closing(store.reading()) as file:
        rows = [RoundRow(*row) for row in file.execute("SELECT * FROM rounds")]
        [(starts,)] = file.execute("SELECT starts FROM store")
        table = "totals" if aggregator.role is Role.LEADER else "batches"
        query = f"SELECT round, sum(reports) FROM {table} GROUP BY round"
        counts: dict[bytes, int] = dict(file.execute(query).fetchall())
    lines = newest(_aggregators_line(row, counts.get(row.id)) for row in rows)
    least = max((line.least for line in lines), default=1)
    least = max(least, aggregator.limits.least_reports)
    last = tally.last_commit
    sizes = (row.manifest.fields.body_bytes for row in rows)
    step = queue_step(max(sizes, default=0))
    return Overview(
        role=aggregator.role.name.lower(),
        title="",
        rounds=lines,
        starts=starts,
        disk_free=down_to(DISK_STEP, store.free_bytes),
        peers={} if helper is None else {helper.name: helper.peer},
        state=state_of(lines, opens="the coordinator"),
        traffic=Traffic(
            refusals=coarse_refusals(tally.refused, least) if table == "totals" else {},
            batches=floored(tally.batches, least),
            last_commit=None if last is None else down_to(HOUR, last),
            commit_seconds=quantiles(tally.commits, tally.batches),
            queue_bytes=down_to(step, queued()),
            queue_step=step,
        ),
    )


def of_coordinator(coordinator: Coordinator) -> Overview:
    """A coordinator, with what its run promises and has released."""
    run = coordinator.run
    name, least = run.invitation.run.hex(), run.invitation.least_reports
    lines = newest(
        RoundLine(
            run=name[:8],
            number=row.number,
            state=row.state,
            meaning=coordinator.meanings[row.state],
            leaf=row.manifest.fields.leaf,
            opens=row.manifest.opens,
            closes=row.manifest.closes,
            reports=floored(row.reports, least),
            least=least,
            why=row.why or "",
        )
        for row in coordinator.rounds()
    )
    return Overview(
        role="coordinator",
        title=run.invitation.title,
        rounds=lines,
        starts=coordinator.starts,
        disk_free=down_to(DISK_STEP, coordinator.database.free_bytes),
        peers={one.name: one.peer for one in (coordinator.leader, coordinator.helper)},
        state=coordinator.state,
        budget=Budget(
            run.assembled.simulation.account.totals, spent_by(coordinator.published_run)
        ),
        outcome=outcome_of(coordinator),
    )


def _aggregators_line(row: RoundRow, counted: int | None) -> RoundLine:
    manifest = row.manifest
    is_forgotten = row.state in (DELETED, VOID)
    return RoundLine(
        run=row.run.hex()[:8],
        number=row.number,
        state=row.state,
        meaning=_MEANINGS[row.state],
        leaf=manifest.fields.leaf,
        opens=manifest.opens,
        closes=manifest.closes,
        reports=floored(None if is_forgotten else counted, manifest.least_reports),
        least=manifest.least_reports,
        is_forgotten=is_forgotten,
    )


def state_of(rounds: Sequence[RoundLine], *, opens: str) -> RunState:
    """Where a service stands that has rounds of any run; `opens` is who opens them."""
    if not rounds:
        return RunState(f"No round is open yet; the service waits for {opens}")
    newest = rounds[0]
    which = nth_round(newest.number).capitalize()
    if newest.state == OPEN:
        closes = moment(newest.closes)
        said = f"{which} is open; the service waits for reports until"
        return RunState(f"{said} {closes}")
    said = f"{which} is {newest.meaning}"
    is_well = newest.state != VOID
    return RunState(f"{said}. The service waits for {opens}", is_well)


def outcome_of(run: StepwiseRun[Any]) -> Outcome:
    """What a run has released so far, or why it released no model."""
    return Outcome(run.models, run.released_metrics, run.withheld)


def newest(lines: Iterable[RoundLine]) -> tuple[RoundLine, ...]:
    """The newest rounds, the very newest first."""
    found = sorted(lines, key=lambda line: (line.opens, line.number), reverse=True)
    return tuple(found[:_MOST_ROUNDS])


def coarse_refusals(
    refused: Mapping[str, int], least: int, reasons: Mapping[str, str] = REFUSALS
) -> dict[str, int | None]:
    """Refusals by status as an operator sees them; `reasons` has every status."""
    counts = dict.fromkeys(reasons, 0)
    for status, count in dict(refused).items():
        counts[status if status in reasons else "other"] += count
    return {status: floored(count, least) for status, count in counts.items()}


def spent_by(published_run: Path) -> tuple[Statement, ...]:
    """What the ledger of the run says; nothing before its first round."""
    ledger = RunDirectory(published_run).ledger
    if not ledger.exists():
        return ()
    return RunLedger.at(ledger).spent
