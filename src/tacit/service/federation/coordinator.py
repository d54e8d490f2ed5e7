"""Opens rounds, adds up what two aggregators publish, and publishes the model.

    planned ──▶ signed ──▶ open ──▶ leader closed ──▶ both closed ──▶ done ──▶ deleted
                                                            └──▶ void (garbage, too few)

A round whose sum no honest clients can have made is void. The run goes on without it if
its phase has another round; else it ends, and the earlier model stays. That one also
stays if a metric was released that says that the new one is worse than a list by the
released counts (`Measured.shortfall`). How steps are made, repeated and kept is told in
`stepwise_run`.

The coordinator sees both noisy sums and how many reported, never a report.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from tacit import check
from tacit.errors import BadMessage
from tacit.method import Server
from tacit.service.federation.coordinated_run import CoordinatedRun, PublishedSum
from tacit.service.federation.operator_client import OperatorClient, Over, Unknown
from tacit.service.federation.public_rounds import (
    OPEN,
    PLANNED,
    SIGNED,
    VOID,
    VOIDING,
)
from tacit.service.federation.sealing import SumFields, SumManifest
from tacit.service.federation.seed_batches import Closing
from tacit.service.federation.stepwise_run import LOST, SOON, Schedule, StepwiseRun
from tacit.service.manifest import Manifest, attach_signatures, read_document

LEADER_CLOSED, BOTH_CLOSED = "leader closed", "both closed"
DONE, DELETED = "done", "deleted"
_TABLES = """
CREATE TABLE rounds (number INTEGER PRIMARY KEY, state TEXT NOT NULL,
    document BLOB NOT NULL, signed BLOB, broadcast BLOB NOT NULL, reports INTEGER,
    closing BLOB, sum BLOB, why TEXT);
"""
_FORMAT = 2  # of the tables; the first had no checksum


@dataclass(frozen=True)
class CoordinatorSchedule(Schedule):
    """When rounds open and close, and by whose word.

    A round closes when its window is over, or as soon as `enough` reports are counted.
    By hand, it opens and closes when somebody says so.
    """

    enough: int | None = None
    by_hand: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.enough is not None:
            check.count(enough=self.enough)


@dataclass(frozen=True)
class RoundState:
    """One row of `rounds`."""

    number: int
    state: str
    document: bytes = field(repr=False)
    signed: bytes | None = field(repr=False)
    broadcast: bytes = field(repr=False)
    reports: int | None
    closing: bytes | None = field(repr=False)
    sum: bytes | None = field(repr=False)
    why: str | None

    @property
    def manifest(self) -> SumManifest:
        """The manifest of the round."""
        return read_document(self.document, SumFields)


class Coordinator(StepwiseRun[RoundState]):
    """One run, from its first round to its published model."""

    name, noun, over, row = "coordinator", "round", DELETED, RoundState
    meanings: ClassVar[Mapping[str, str]] = {
        PLANNED: "planned, not signed yet",
        SIGNED: "signed, not open yet",
        OPEN: "open",
        LEADER_CLOSED: "closed by the leader",
        BOTH_CLOSED: "closed by both",
        DONE: "added up; its halves are not erased yet",
        DELETED: "finished; its halves are erased",
        VOIDING: "void; its halves are not erased yet",
        VOID: "void; its halves are erased",
    }
    waits: ClassVar[Mapping[str, str]] = {
        PLANNED: "the signatures of leader and helper",
        SIGNED: "leader and helper to open it",
        LEADER_CLOSED: "the helper's half of the sum",
        BOTH_CLOSED: "both halves to be added up",
        DONE: "leader and helper to erase their halves",
        VOIDING: "leader and helper to erase their halves",
    }
    run: CoordinatedRun
    schedule: CoordinatorSchedule

    def __init__(
        self,
        run: CoordinatedRun,
        folder: Path,
        *,
        leader: OperatorClient,
        helper: OperatorClient,
        leader_url: str,
        schedule: CoordinatorSchedule,
        passing: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.leader, self.helper, self.leader_url = leader, helper, leader_url
        self._wanted: set[str] = set()  # by hand: "open", "close", "publish"
        super().__init__(
            *(run, folder),
            tables=_TABLES,
            format=_FORMAT,
            schedule=schedule,
            passing=passing,
            clock=clock,
        )

    def close(self) -> None:
        """Close the file of the run and the connections; nothing steps any more."""
        super().close()
        for one in self._operators:
            one.close_connection()

    @property
    def _operators(self) -> tuple[OperatorClient, OperatorClient]:
        return self.leader, self.helper

    def rounds(self) -> list[RoundState]:
        """All rounds so far."""
        return self._rows()

    @property
    def _for_next(self) -> str:
        if not self.schedule.by_hand:
            return super()._for_next
        return "`tacit round open`, or `tacit round publish` after the last one"

    @property
    def _for_reports(self) -> str:
        schedule = self.schedule
        if schedule.by_hand:
            return "reports until `tacit round close`, or"
        if schedule.enough is None:
            return super()._for_reports
        return f"{schedule.enough:,} reports, or"

    def want(self, what: str) -> None:
        """Have a round opened or closed, or the model published, at the next step."""
        check.one_of(["open", "close", "publish"], what=what)
        self._wanted.add(what)

    # steps

    @property
    def _steps(self) -> Mapping[str, Callable[[RoundState], float]]:
        return {
            OPEN: self._close_leader,
            LEADER_CLOSED: self._close_helper,
            BOTH_CLOSED: self._learn,
            DONE: self._delete,
            VOIDING: self._delete,
        }

    def _is_early(self, rows: list[RoundState]) -> bool:
        if self.schedule.by_hand:
            return "open" not in self._wanted
        return super()._is_early(rows)

    def _plan(self, server: Server, rows: list[RoundState]) -> None:
        """Fix the manifest of the next round; the keys are asked of both operators."""
        run = self.run.invitation.run
        number, broadcast = server.round, self.run.broadcast(server)
        keys = {one.name: one.round_key(run, number) for one in self._operators}
        opens = int(self.clock())
        manifest = Manifest(
            run=run,
            round=number,
            fields=self.run.form(server).fields,
            least_reports=self.run.invitation.least_reports,
            most_reports=self.run.invitation.plan.population,
            opens=opens,
            closes=opens + self.schedule.window,
            broadcast=sha256(broadcast).digest(),
            url=self.leader_url,
            keys=keys,
            previous=rows[-1].manifest.round_id if rows else b"",
        )
        self._insert(number, manifest.document(), broadcast)
        self._wanted.discard("open")

    def _signed(self, row: RoundState) -> bytes:
        signatures = {one.name: one.sign(row.document) for one in self._operators}
        return attach_signatures(row.manifest, signatures)

    def _is_unopened(self, row: RoundState) -> bool:
        for one in self._operators:
            with contextlib.suppress(Unknown):
                if one.status(row.manifest.round_id).state != SIGNED:
                    return False
        return True

    def _open_everywhere(self, signed: bytes) -> None:
        for one in self._operators:
            one.open(signed)

    def _close_leader(self, row: RoundState) -> float:
        round_id = row.manifest.round_id
        try:
            reports = self.leader.status(round_id).reports
        except Unknown:
            reports = row.reports or 0
            self._void(
                row, LOST.format("leader", f"{reports:,} reports"), ends_run=True
            )
            return SOON
        if reports < (row.reports or 0):  # a copy of its file, put back meanwhile
            said = (
                "the leader has fewer reports than before: acknowledged ones are lost"
            )
            self._void(row, said)
            return SOON
        if reports != row.reports:
            self._change(row, OPEN, reports=reports)
        if not self._is_time(row.manifest, reports):
            return self.schedule.poll
        try:
            closing = self.leader.close(round_id)
        except Over as error:
            self._void(row, str(error))
            return SOON
        if closing is None:
            return min(0.2, self.schedule.poll)
        Closing.read(
            closing, numbers=row.manifest.fields.numbers
        )  # refuses another form
        # The count again: the last reports may have come in since.
        reports = self.leader.status(round_id).reports
        self._change(row, LEADER_CLOSED, closing=closing, reports=reports)
        self._wanted.discard("close")
        return SOON

    def _is_time(self, manifest: SumManifest, reports: int) -> bool:
        if self.clock() >= manifest.closes or "close" in self._wanted:
            return True
        enough = self.schedule.enough
        return not self.schedule.by_hand and enough is not None and reports >= enough

    def _close_helper(self, row: RoundState) -> float:
        assert row.closing is not None
        manifest = row.manifest
        chosen = Closing.read(row.closing, numbers=manifest.fields.numbers).batches
        try:
            found = self.helper.close(manifest.round_id, b"".join(chosen))
        except Unknown:
            self._void(row, LOST.format("helper", "its halves"), ends_run=True)
            return SOON
        except Over as error:
            self._void(row, str(error))
            return SOON
        if found is None:
            return min(0.2, self.schedule.poll)
        self._change(row, BOTH_CLOSED, sum=found)
        return SOON

    def _learn(self, row: RoundState) -> float:
        """Add both up; a sum that honest clients cannot have made voids the round."""
        self.passing("coordinator_added")
        try:
            before = self._now(self.rounds()[: row.number])
            self._server = self.run.next(before, _sum_of(row))
        except BadMessage as error:
            self._void(row, str(error))
            return SOON
        self._change(row, DONE)
        return SOON

    def _delete(self, row: RoundState) -> float:
        for one in self._operators:
            one.delete(row.manifest.round_id)
        self._change(row, VOID if row.state == VOIDING else DELETED)
        self._finished_at = self.clock()
        self.passing("deleted")
        return SOON

    def _publish(self, server: Server) -> float:
        if self.schedule.by_hand and "publish" not in self._wanted:
            return self.schedule.poll
        return super()._publish(server)

    def _now(self, rows: list[RoundState]) -> Server:
        if self._server is None or self._server.round != len(rows):
            sums = [None if row.state == VOID else _sum_of(row) for row in rows]
            self._server = self.run.after(sums)
        return self._server


def _sum_of(row: RoundState) -> PublishedSum:
    """What both published of a round that both have closed."""
    assert row.closing is not None
    assert row.sum is not None
    closing = Closing.read(row.closing, numbers=row.manifest.fields.numbers)
    return PublishedSum(closing.published, row.sum, row.reports or 0)
