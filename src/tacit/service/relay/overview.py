"""What the operators of relay and collector may see of their own service.

It is the picture of a federation's services (`tacit.service.federation.overview`), for
the same page and the same metrics: nothing in it is about a person, counts are coarse,
and below the minimum of an epoch there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

from tacit.service.federation.coarse import (
    DISK_STEP,
    HOUR,
    down_to,
    floored,
    quantiles,
    queue_step,
)
from tacit.service.federation.overview import (
    Budget,
    Overview,
    RoundLine,
    Traffic,
    coarse_refusals,
    newest,
    outcome_of,
    spent_by,
    state_of,
)
from tacit.service.federation.stepwise_run import RunState
from tacit.service.relay.collector import Collector
from tacit.service.relay.forwarding import Forwarding
from tacit.service.relay.relay import Relay
from tacit.service.relay.relay_store import (
    DESTROYED,
    FORWARDED,
    FORWARDING,
    OPEN,
    OVER,
    SIGNED,
    VOID,
    EpochRow,
    upload_counts,
)

_MESSAGES = "messages"  # what is sent in an epoch
# Every status that a relay refuses uploads with, whether it did so or not.
REFUSALS: Mapping[str, str] = {
    "400": "another length or form than uploads of the round have",
    "401": "no ticket of this relay",
    "403": "a ticket that another upload has used",
    "404": "an unknown round or path",
    "408": "a body that took too long",
    "409": "the round is closed or full",
    "410": "the round is over",
    "413": "a body that is too long",
    "426": "a client of another protocol",
    "429": "too many at once",
    "500": "a bug of the service",
    "503": "queue full, disk full, or too early",
    "other": "something else",
}


_MEANINGS: Mapping[str, str] = {  # of the states that a round has at a relay
    SIGNED: "signed, not open yet",
    OPEN: "open",
    FORWARDING: "closed; its reports go to the collector",
    FORWARDED: "finished; its reports are forwarded, and erased here",
    DESTROYED: "void; its reports are erased, and none is forwarded any more",
    VOID: "void; its reports are erased",
}


def of_relay(
    relay: Relay, forwarding: Forwarding, *, queued: Callable[[], int] = lambda: 0
) -> Overview:
    """A relay; `queued` gives the bytes that wait to be kept."""
    store, tally = relay.store, relay.tally
    with closing(store.reading()) as file:
        rows = [EpochRow(*row) for row in file.execute("SELECT * FROM epochs")]
        [(starts,)] = file.execute("SELECT starts FROM store")
        counts = upload_counts(file)
    lines = newest(_line(row, counts.get(row.id)) for row in rows)
    least = max(
        relay.limits.least_uploads, max((line.least for line in lines), default=1)
    )
    last = tally.last_commit
    sizes = (row.manifest.fields.body_bytes for row in rows)
    step = queue_step(max(sizes, default=0))
    return Overview(
        role="relay",
        title="",
        rounds=lines,
        starts=starts,
        disk_free=down_to(DISK_STEP, store.free_bytes),
        peers={"collector": forwarding.collector.peer},
        state=_state(lines, forwarding.trouble),
        traffic=Traffic(
            refusals=coarse_refusals(tally.refused, least, REFUSALS),
            batches=floored(tally.batches, least),
            last_commit=None if last is None else down_to(HOUR, last),
            commit_seconds=quantiles(tally.commits, tally.batches),
            queue_bytes=down_to(step, queued()),
            queue_step=step,
            reasons=REFUSALS,
        ),
    )


def of_collector(collector: Collector) -> Overview:
    """A collector, with what its run promises and has spent."""
    run = collector.run
    least = run.invitation.least_reports
    lines = newest(
        RoundLine(
            run=run.invitation.run.hex()[:8],
            number=row.number,
            state=row.state,
            meaning=collector.meanings[row.state],
            leaf=_MESSAGES,
            opens=row.manifest.opens,
            closes=row.manifest.closes,
            reports=floored(row.uploads, least),
            least=least,
            why=row.why or "",
        )
        for row in collector.epochs()
    )
    return Overview(
        role="collector",
        title=run.invitation.title,
        rounds=lines,
        starts=collector.starts,
        disk_free=down_to(DISK_STEP, collector.database.free_bytes),
        peers={"relay": collector.relay.peer},
        state=collector.state,
        budget=Budget(
            run.assembled.simulation.account.totals, spent_by(collector.published_run)
        ),
        outcome=outcome_of(collector),
    )


def _state(lines: Sequence[RoundLine], trouble: str) -> RunState:
    found = state_of(lines, opens="the collector")
    if not trouble:
        return found
    return RunState(f"{found.text}. Nothing goes on: {trouble}", is_well=False)


def _line(row: EpochRow, counted: int | None) -> RoundLine:
    manifest = row.manifest
    is_forgotten = row.state in OVER
    return RoundLine(
        run=row.run.hex()[:8],
        number=row.number,
        state=row.state,
        meaning=_MEANINGS[row.state],
        leaf=_MESSAGES,
        opens=manifest.opens,
        closes=manifest.closes,
        reports=floored(None if is_forgotten else counted, manifest.least_reports),
        least=manifest.least_reports,
        is_forgotten=is_forgotten,
    )
