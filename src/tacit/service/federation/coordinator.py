"""Opens rounds, adds up what two aggregators publish, and publishes the model.

    planned ──▶ signed ──▶ open ──▶ leader closed ──▶ both closed ──▶ done ──▶ deleted
                                                            └──▶ void (garbage, too few)

Every step can be repeated: whoever is asked again gives the same answer, and what was
decided is on the disk before the next thing is asked. The ledger's line of a round is
written before it opens. A round whose sum no honest clients can have made is void, and
so is the run: the old model stays. It also stays if a metric was released that says
that the new one is worse than a list by the released counts (`Measured.shortfall`).

The coordinator sees both noisy sums and how many reported, never a report.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from tacit import check
from tacit.errors import BadMessage, Refused, TacitError
from tacit.method import Server
from tacit.runtime.run import RunDirectory
from tacit.service.database import Database
from tacit.service.federation.coordinated_run import CoordinatedRun, PublishedSum
from tacit.service.federation.manifest import Manifest, read_document, signed
from tacit.service.federation.operator_client import OperatorClient, Over
from tacit.service.federation.seed_batches import Closing
from tacit.service.http import LOG

PLANNED, SIGNED, OPEN = "planned", "signed", "open"
LEADER_CLOSED, BOTH_CLOSED = "leader closed", "both closed"
DONE, DELETED = "done", "deleted"
VOIDING, VOID = "voiding", "void"
_TABLES = """
CREATE TABLE rounds (number INTEGER PRIMARY KEY, state TEXT NOT NULL,
    document BLOB NOT NULL, signed BLOB, broadcast BLOB NOT NULL, reports INTEGER,
    closing BLOB, sum BLOB, why TEXT);
CREATE TABLE run (name BLOB NOT NULL, invitation BLOB NOT NULL, is_published INTEGER,
    is_retired INTEGER, metrics TEXT, withheld TEXT);
"""
_SOON, _LATER = 0.0, 1.0  # seconds until the next step


@dataclass(frozen=True)
class Schedule:
    """When rounds open and close, and by whose word.

    A round closes when its window is over, or as soon as `enough` reports are counted.
    By hand, it opens and closes when somebody says so.
    """

    window: int = 3600  # seconds
    pause: float = 0.0  # seconds between two rounds
    enough: int | None = None
    by_hand: bool = False
    poll: float = 1.0  # seconds between two looks at an open round

    def __post_init__(self) -> None:
        check.count(window=self.window)
        check.not_negative(pause=self.pause)
        check.positive(poll=self.poll)
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
    def manifest(self) -> Manifest:
        """The manifest of the round."""
        return read_document(self.document)


class Named(Protocol):
    """A manifest by its name, and the digest of the broadcast that it is for."""

    @property
    def round_id(self) -> bytes: ...  # noqa: D102
    @property
    def broadcast(self) -> bytes: ...  # noqa: D102


class PublicRow(Protocol):
    """A round whose manifest, once signed and opened, everybody may read."""

    @property
    def number(self) -> int: ...  # noqa: D102
    @property
    def state(self) -> str: ...  # noqa: D102
    @property
    def signed(self) -> bytes | None: ...  # noqa: D102
    @property
    def broadcast(self) -> bytes: ...  # noqa: D102
    @property
    def manifest(self) -> Named: ...  # noqa: D102


@dataclass(frozen=True)
class PublicRounds:
    """The rounds as everybody may read them."""

    open: tuple[str, bytes] | None = None  # id and signed manifest of the open one
    manifests: Mapping[str, bytes] = field(default_factory=dict)  # of all, by id
    broadcasts: Mapping[str, bytes] = field(default_factory=dict)  # by SHA-256
    ended: str = ""  # why no round will ever be open again, if there is no model

    @classmethod
    def of(
        cls, rounds: Sequence[PublicRow], *, is_retired: bool, withheld: str = ""
    ) -> PublicRounds:
        """What may be read of these rounds: those that were opened."""
        ended = "its operator has retired it" if is_retired else withheld
        if rounds and rounds[-1].state in (VOIDING, VOID):
            ended = f"round {rounds[-1].number} is void"
        opened = [
            (row, row.manifest.round_id.hex(), row.signed)
            for row in rounds
            if row.signed is not None and row.state not in (PLANNED, SIGNED)
        ]
        still = [(id_, sent) for row, id_, sent in opened if row.state == OPEN]
        return cls(
            still[-1] if still else None,
            {id_: sent for _, id_, sent in opened},
            {row.manifest.broadcast.hex(): row.broadcast for row, _, _ in opened},
            ended,
        )


class Coordinator:
    """One run, from its first round to its published model."""

    def __init__(
        self,
        run: CoordinatedRun,
        folder: Path,
        *,
        leader: OperatorClient,
        helper: OperatorClient,
        leader_url: str,
        schedule: Schedule,
        passing: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.run: CoordinatedRun = run
        self.folder, self.schedule = folder, schedule
        self.leader, self.helper, self.leader_url = leader, helper, leader_url
        self.passing, self.clock = passing or (lambda _: None), clock
        self.trouble = ""  # why nothing goes on, for the operator
        self.database = Database(folder / "coordinator.db", "coordinator", _TABLES)
        self._lock = threading.Lock()  # one thread steps, others read
        self._server: Server | None = None
        self._wanted: set[str] = set()  # by hand: "open", "close", "publish"
        self._finished_at = 0.0
        self._begin()
        self._show()

    def close(self) -> None:
        """Close the file of the run and the connections; nothing steps any more."""
        self.database.close()
        for one in (self.leader, self.helper):
            one.close_connection()

    # what everybody may read

    @property
    def published_run(self) -> Path:
        """The run directory with the published model."""
        return self.folder / "run"

    @property
    def public(self) -> PublicRounds:
        """What everybody may read of the rounds; it is there without the disk."""
        return self._public

    def rounds(self) -> list[RoundState]:
        """All rounds so far."""
        query = "SELECT * FROM rounds ORDER BY number"
        with self._lock:
            return [RoundState(*row) for row in self.database.file.execute(query)]

    @property
    def is_published(self) -> bool:
        """Whether the model of the finished run is out."""
        return self._flag("is_published")

    @property
    def is_retired(self) -> bool:
        """Whether the run was ended by its operator."""
        return self._flag("is_retired")

    @property
    def withheld(self) -> str:
        """Why the model of the finished run is not published; empty if it is not so."""
        return str(self._of_run("withheld"))

    @property
    def released_metrics(self) -> tuple[dict[str, Any], ...]:
        """What was measured on users within their budget, once the rounds are over."""
        return tuple(json.loads(self._of_run("metrics")))

    @property
    def models(self) -> tuple[str, ...]:
        """The SHA-256 of each published model, in hexadecimal."""
        if not self.is_published:
            return ()
        return (
            sha256(RunDirectory(self.published_run).model.read_bytes()).hexdigest(),
        )

    @property
    def starts(self) -> int:
        """How often the coordinator was started, with this one."""
        with self._lock:
            return self.database.starts

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens: published, withheld, void or retired."""
        rounds = self.rounds()
        last = rounds[-1].state if rounds else DELETED
        is_idle = last in (DELETED, VOID)
        is_decided = self.is_published or bool(self.withheld)
        return last == VOID or is_decided or (self.is_retired and is_idle)

    # by hand

    def want(self, what: str) -> None:
        """Have a round opened or closed, or the model published, at the next step."""
        check.one_of(["open", "close", "publish"], what=what)
        self._wanted.add(what)

    def retire(self) -> None:
        """End the run: an open round is void, and no other one opens.

        A step that is under way finds its round void and changes nothing of it.
        """
        with self._writing() as file:
            file.execute("UPDATE run SET is_retired = 1")
            file.execute(
                "UPDATE rounds SET state = ?, why = ? WHERE state NOT IN (?, ?, ?)",
                (VOIDING, "the run was retired", DELETED, VOIDING, VOID),
            )
        self._show()

    # steps

    def step(self) -> float:
        """Do the next thing; the seconds until there may be another.

        `Unanswered` if an operator does not answer: the same step is tried again.
        """
        if self.is_over:
            return _LATER
        rounds = self.rounds()
        row = rounds[-1] if rounds else None
        if row is None or row.state == DELETED:
            return self._between_rounds(rounds)
        steps = {
            PLANNED: self._sign,
            SIGNED: self._open,
            OPEN: self._close_leader,
            LEADER_CLOSED: self._close_helper,
            BOTH_CLOSED: self._learn,
            DONE: self._delete,
            VOIDING: self._delete,
        }
        found = steps[row.state](row)
        self.trouble = ""
        return found

    def play(self, *, stop: threading.Event) -> None:
        """Step until the run is over or somebody stops it.

        What goes wrong is told to the operator, and the same step is tried again.
        """
        while not stop.is_set():
            try:
                wait = self.step()
            except TacitError as error:  # nobody answers, refuses, or has no room
                self.trouble, wait = str(error), min(_LATER, self.schedule.poll)
            except Exception as error:  # a bug; its message may hold what was sent
                LOG.error("a step failed: %s", type(error).__name__)
                self.trouble, wait = f"a failure: {type(error).__name__}", _LATER
            if self.is_over:
                return
            stop.wait(wait)

    def _between_rounds(self, rounds: list[RoundState]) -> float:
        server = self._now(rounds)
        if self.run.is_over(server):
            return self._publish(server)
        if self._is_early(rounds):
            return min(self.schedule.poll, max(0.01, self.schedule.pause))
        self._plan(server, rounds)
        return _SOON

    def _is_early(self, rounds: list[RoundState]) -> bool:
        if self.schedule.by_hand:
            return "open" not in self._wanted
        return bool(rounds) and self.clock() < self._finished_at + self.schedule.pause

    def _plan(self, server: Server, rounds: list[RoundState]) -> None:
        """Fix the manifest of the next round; the keys are asked of both operators."""
        run, shared = self.run.invitation.run, self.run.shared(server)
        number, broadcast = server.round, self.run.broadcast(server)
        keys = [one.round_key(run, number) for one in (self.leader, self.helper)]
        opens = int(self.clock())
        manifest = Manifest(
            run=run,
            round=number,
            leaf=shared.leaf,
            numbers=shared.size,
            steps=int(shared.steps),
            limit=shared.limit,
            sigma=shared.sigma,
            least_reports=self.run.invitation.least_reports,
            most_reports=shared.most_reports,
            opens=opens,
            closes=opens + self.schedule.window,
            broadcast=sha256(broadcast).digest(),
            leader_url=self.leader_url,
            leader_key=keys[0],
            helper_key=keys[1],
            previous=rounds[-1].manifest.round_id if rounds else b"",
        )
        with self._writing() as file:  # nothing, if it was retired meanwhile
            file.execute(
                "INSERT INTO rounds (number, state, document, broadcast) "
                "SELECT ?, ?, ?, ? FROM run WHERE NOT is_retired",
                (number, PLANNED, manifest.document(), broadcast),
            )
        self._wanted.discard("open")

    def _sign(self, row: RoundState) -> float:
        if row.manifest.closes <= self.clock():
            self._plan_again(row)
            return _SOON
        leader, helper = (one.sign(row.document) for one in (self.leader, self.helper))
        sent = signed(row.manifest, leader=leader, helper=helper)
        self._change(row, SIGNED, signed=sent)
        return _SOON

    def _plan_again(self, row: RoundState) -> None:
        """Forget a manifest that no client was shown, so that no report is for it."""
        with self._writing() as file:
            file.execute(
                "DELETE FROM rounds WHERE number = ? AND state = ?",
                (row.number, row.state),
            )

    def _open(self, row: RoundState) -> float:
        """Open the round at both; clients hear of it when both have it.

        A round whose window went by meanwhile is planned again, unless one of the two
        has opened it: that one signs no other manifest for it.
        """
        assert row.signed is not None
        if row.manifest.closes <= self.clock():
            both = (self.leader, self.helper)
            if any(one.status(row.manifest.round_id).state != SIGNED for one in both):
                self._void(row, "its window went by while an operator was away")
            else:
                self._plan_again(row)
            return _SOON
        self.run.spend(self.published_run, row.number)
        self.passing("ledger_line")
        for one in (self.leader, self.helper):
            one.open(row.signed)
        self._change(row, OPEN)
        return _SOON

    def _close_leader(self, row: RoundState) -> float:
        round_id = row.manifest.round_id
        reports = self.leader.status(round_id).reports
        if reports < (row.reports or 0):  # a copy of its file, put back meanwhile
            said = (
                "the leader has fewer reports than before: acknowledged ones are lost"
            )
            self._void(row, said)
            return _SOON
        if reports != row.reports:
            self._change(row, OPEN, reports=reports)
        if not self._is_time(row.manifest, reports):
            return self.schedule.poll
        try:
            closing = self.leader.close(round_id)
        except Over as error:
            self._void(row, str(error))
            return _SOON
        if closing is None:
            return min(0.2, self.schedule.poll)
        Closing.read(closing, numbers=row.manifest.numbers)  # refuses another form
        # The count again: the last reports may have come in since.
        reports = self.leader.status(round_id).reports
        self._change(row, LEADER_CLOSED, closing=closing, reports=reports)
        self._wanted.discard("close")
        return _SOON

    def _is_time(self, manifest: Manifest, reports: int) -> bool:
        if self.clock() >= manifest.closes or "close" in self._wanted:
            return True
        enough = self.schedule.enough
        return not self.schedule.by_hand and enough is not None and reports >= enough

    def _close_helper(self, row: RoundState) -> float:
        assert row.closing is not None
        manifest = row.manifest
        chosen = Closing.read(row.closing, numbers=manifest.numbers).batches
        try:
            found = self.helper.close(manifest.round_id, b"".join(chosen))
        except Over as error:
            self._void(row, str(error))
            return _SOON
        if found is None:
            return min(0.2, self.schedule.poll)
        self._change(row, BOTH_CLOSED, sum=found)
        return _SOON

    def _learn(self, row: RoundState) -> float:
        """Add both up; a sum that honest clients cannot have made voids the run."""
        self.passing("coordinator_added")
        try:
            before = self._now(self.rounds()[: row.number])
            self._server = self.run.next(before, _sum_of(row))
        except BadMessage as error:
            self._void(row, str(error))
            return _SOON
        self._change(row, DONE)
        return _SOON

    def _delete(self, row: RoundState) -> float:
        for one in (self.leader, self.helper):
            one.delete(row.manifest.round_id)
        self._change(row, VOID if row.state == VOIDING else DELETED)
        self._finished_at = self.clock()
        self.passing("deleted")
        return _SOON

    def _publish(self, server: Server) -> float:
        if self.schedule.by_hand and "publish" not in self._wanted:
            return self.schedule.poll
        metrics = json.dumps(self.run.metrics(server))
        why = self.run.shortfall(server)
        if why is not None:
            with self._writing() as file:
                file.execute("UPDATE run SET metrics = ?, withheld = ?", (metrics, why))
            self._show()
            LOG.warning("the model is not published: %s", why)
            return _SOON
        self.run.publish(self.published_run, server)
        self.passing("model_written")
        with self._writing() as file:
            file.execute(
                "UPDATE run SET is_published = 1, metrics = ? WHERE NOT is_retired",
                (metrics,),
            )
        self.passing("published")
        return _SOON

    # details

    def _begin(self) -> None:
        name = self.run.invitation.run
        with self._writing() as file:
            found = file.execute("SELECT name, invitation FROM run").fetchone()
            if found is None:
                file.execute(
                    "INSERT INTO run VALUES (?, ?, 0, 0, '[]', '')",
                    (name, self.run.invitation.encode()),
                )
            elif found != (name, self.run.invitation.encode()):
                raise Refused(
                    f"{self.folder} is the folder of another run, with another "
                    "experiment or other operators; give each run a folder of its own"
                )

    def _now(self, rounds: list[RoundState]) -> Server:
        """The server after these rounds, all of which are over."""
        if self._server is None or self._server.round != len(rounds):
            self._server = self.run.after([_sum_of(row) for row in rounds])
        return self._server

    def _void(self, row: RoundState, why: str) -> None:
        """Note that nothing of a round is used; both forget it in the next step."""
        self._change(row, VOIDING, why=why)

    def _change(self, row: RoundState, state: str, **values: object) -> None:
        names = "".join(f", {name} = ?" for name in values)
        with self._writing() as file:
            file.execute(
                f"UPDATE rounds SET state = ?{names} WHERE number = ? AND state = ?",
                (state, *values.values(), row.number, row.state),
            )
        if state != row.state:
            LOG.info("round %d is %s", row.number, state)
        self._show()

    def _show(self) -> None:
        """Let everybody read the rounds as they are now."""
        self._public = PublicRounds.of(
            self.rounds(), is_retired=self.is_retired, withheld=self.withheld
        )

    def _flag(self, name: str) -> bool:
        return bool(self._of_run(name))

    def _of_run(self, name: str) -> Any:
        with self._lock:
            [(found,)] = self.database.file.execute(f"SELECT {name} FROM run")
        return found

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction, while no other thread reads."""
        with self._lock, self.database.writing() as file:
            yield file


def _sum_of(row: RoundState) -> PublishedSum:
    """What both published of a round that both have closed."""
    assert row.closing is not None
    assert row.sum is not None
    closing = Closing.read(row.closing, numbers=row.manifest.numbers)
    return PublishedSum(closing.published, row.sum, row.reports or 0)
