"""One run on the disk, step by step: what coordinator and collector share.

    planned ──▶ signed ──▶ open ──▶ the role's own steps ──▶ over ──▶ planned ...
                             └──▶ voiding ──▶ void ──▶ planned ..., or the end

A void round stays spent, and no client is asked for it again. The run goes on without
it as long as each phase of its method keeps another round (`goes_on_without`); else it
ends, and the earlier model stays. It ends too if an operator has lost its file, since
that one signs no round that follows.

Every step can be repeated: whoever is asked again gives the same answer, and what was
decided is on the disk before the next thing is asked. A step changes a round only if it
is still in the state that the step began with, so a run that is retired meanwhile stays
retired. The ledger's line of a round is written before the round opens.
"""

from __future__ import annotations

import abc
import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from tacit import check
from tacit.errors import Refused, TacitError
from tacit.method import Server
from tacit.runtime.run import RunDirectory
from tacit.service.federation.invited_run import InvitedRun
from tacit.service.federation.public_rounds import (
    OPEN,
    PLANNED,
    SIGNED,
    VOID,
    VOIDING,
    PublicRounds,
    Round,
    moment,
)
from tacit.service.http import LOG
from tacit.storage.store import Store

SOON, LATER = 0.0, 1.0  # seconds until the next step
LOST = "the {} has lost its file, and {} of this round with it"
RETIRED = "the run was retired"
_RUN = """
CREATE TABLE run (name BLOB NOT NULL, invitation BLOB NOT NULL, is_published INTEGER,
    is_retired INTEGER, metrics TEXT, withheld TEXT);
"""
AnyRound = TypeVar("AnyRound", bound=Round)


@dataclass(frozen=True)
class Schedule:
    """When rounds open, and how often somebody looks at them."""

    window: int = 3600  # seconds
    pause: float = 0.0  # seconds between two rounds
    poll: float = 1.0  # seconds between two looks at an open round

    def __post_init__(self) -> None:
        check.count(window=self.window)
        check.not_negative(pause=self.pause)
        check.positive(poll=self.poll)


@dataclass(frozen=True)
class RunState:
    """Where a run or a service stands, in sentences for its operator."""

    text: str
    is_well: bool = True


class RunStore(Store):
    """The file of one run."""

    remedy = (
        "the rounds of its run are lost with it. Put it back, or begin another run in "
        "another folder"
    )


class StepwiseRun(abc.ABC, Generic[AnyRound]):
    """One run, from its first round to its published model.

    Of each role: its `name`, what it calls a round (`noun`, and the table of that name
    with an s) and its rows, and the state of a round that is behind it (`over`).
    `meanings` says of each state of a round what an operator reads, and `waits` what a
    round in that state waits for.
    """

    name: ClassVar[str]
    noun: ClassVar[str]
    over: ClassVar[str]
    row: ClassVar[type]  # its fields are columns of the table
    meanings: ClassVar[Mapping[str, str]]
    waits: ClassVar[Mapping[str, str]]
    run: InvitedRun
    schedule: Schedule

    def __init__(
        self,
        run: InvitedRun,
        folder: Path,
        *,
        tables: str,
        format: int,
        schedule: Schedule,
        passing: Callable[[str], None] | None,
        clock: Callable[[], float],
    ) -> None:
        self.run, self.folder, self.schedule = run, folder, schedule
        self.passing, self.clock = passing or (lambda _: None), clock
        self.trouble = ""  # why nothing goes on, for the operator
        path = folder / f"{self.name}.db"
        self.database = RunStore(path, self.name, tables + _RUN, format=format)
        self._lock = threading.RLock()  # one thread steps, others read or hand in
        self._server: Server | None = None
        self._finished_at = 0.0
        self._begin()
        self._public = PublicRounds()
        self._show()

    def close(self) -> None:
        """Close the file of the run; nothing steps any more."""
        self.database.close()

    # what everybody may read

    @property
    def published_run(self) -> Path:
        """The run directory with the published model."""
        return self.folder / "run"

    @property
    def public(self) -> PublicRounds:
        """What everybody may read of the rounds; it is there without the disk."""
        return self._public

    @property
    def is_published(self) -> bool:
        """Whether the model of the finished run is out."""
        return bool(self._of_run("is_published"))

    @property
    def is_retired(self) -> bool:
        """Whether the run was ended by its operator."""
        return bool(self._of_run("is_retired"))

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
        """How often the service was started, with this one."""
        with self._lock:
            return self.database.starts

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens: published, withheld, void or retired."""
        rows = self._rows()
        last = rows[-1].state if rows else self.over
        is_idle = last in (self.over, VOID)
        is_decided = self.is_published or bool(self.withheld)
        is_ended = self.is_retired or not self._goes_on(rows)
        return is_decided or (is_ended and is_idle)

    @property
    def state(self) -> RunState:
        """Where the run stands: published or not, or what it waits for."""
        rows = self._rows()
        newest = rows[-1] if rows else None
        void = [f"{row.number}, {row.why}" for row in rows if row.state == VOID]
        if self.is_published:
            digest = ", ".join(self.models)
            said = f"The model is published; its SHA-256 is {digest}"
            without = f". It was learnt without {self.noun} {'; '.join(void)}"
            return RunState(said + (without if void else ""))
        if self.withheld:
            said = f"The model is not published: {self.withheld}"
            return RunState(f"{said}. Clients keep the one that they have", False)
        is_void = newest is not None and newest.state == VOID
        if newest and self.is_over and is_void and newest.why != RETIRED:
            said = f"The run ended without a model: {self.noun} {newest.number} is void"
            return RunState(f"{said}, {newest.why}", False)
        if self.is_over:
            said = (
                f"The run is retired: no {self.noun} opens, and no model is published"
            )
            return RunState(said, False)
        said = self._waiting(newest)
        if self.trouble:
            return RunState(f"{said}. Nothing goes on: {self.trouble}", False)
        return RunState(said)

    def _waiting(self, newest: AnyRound | None) -> str:
        """What a run waits for that is neither published nor ended."""
        if newest is None:
            return f"No {self.noun} is open yet; the run waits for {self._for_next}"
        number, most = newest.number, self.run.invitation.plan.rounds
        which = f"{self.noun} {number + 1} of at most {most}".capitalize()
        if newest.state == OPEN:
            closes = moment(newest.manifest.closes)
            return f"{which} is open; the run waits for {self._for_reports} {closes}"
        if newest.state in (self.over, VOID):
            end = "void" if newest.state == VOID else "finished"
            return f"{which} is {end}; the run waits for {self._for_next}"
        return f"{which} waits for {self.waits[newest.state]}"

    @property
    def _for_next(self) -> str:
        """What the next round waits for."""
        return f"the next {self.noun}, or for the model after the last one"

    @property
    def _for_reports(self) -> str:
        """Which reports an open round waits for, up to the end of its window."""
        return "reports until"

    def retire(self) -> None:
        """End the run: an open round is void, and no other one opens.

        A step that is under way finds its round void and changes nothing of it.
        """
        with self._writing() as file:
            file.execute("UPDATE run SET is_retired = 1")
            file.execute(
                f"UPDATE {self._table} SET state = ?, why = ? "
                "WHERE state NOT IN (?, ?, ?)",
                (VOIDING, RETIRED, self.over, VOIDING, VOID),
            )
        self._show()

    # steps

    def step(self) -> float:
        """Do the next thing; the seconds until there may be another.

        `Unanswered` if an operator does not answer: the same step is tried again.
        """
        if self.is_over:
            return LATER
        rows = self._rows()
        row = rows[-1] if rows else None
        if row is None or row.state in (self.over, VOID):
            wait = self._between(rows)
        elif row.state == PLANNED:
            wait = self._sign(row)
        elif row.state == SIGNED:
            wait = self._open(row)
        else:
            wait = self._steps[row.state](row)
        self.trouble = ""
        return wait

    def play(self, *, stop: threading.Event) -> None:
        """Step until the run is over or somebody stops it.

        What goes wrong is told to the operator, and the same step is tried again.
        """
        while not stop.is_set():
            try:
                wait = self.step()
                if self.is_over:
                    return
            except TacitError as error:  # nobody answers, refuses, or has no room
                self.trouble, wait = str(error), min(LATER, self.schedule.poll)
            except Exception as error:  # its words may hold what somebody sent
                LOG.error("no step could be made: %s", type(error).__name__)
                self.trouble, wait = f"a failure: {type(error).__name__}", LATER
            stop.wait(wait)

    def _between(self, rows: list[AnyRound]) -> float:
        server = self._now(rows)
        if self.run.is_over(server):
            return self._publish(server)
        if self._is_early(rows):
            return min(self.schedule.poll, max(0.01, self.schedule.pause))
        self._plan(server, rows)
        return SOON

    def _is_early(self, rows: list[AnyRound]) -> bool:
        return bool(rows) and self.clock() < self._finished_at + self.schedule.pause

    def _sign(self, row: AnyRound) -> float:
        if row.manifest.closes <= self.clock():
            self._plan_again(row)
        else:
            self._change(row, SIGNED, signed=self._signed(row))
        return SOON

    def _open(self, row: AnyRound) -> float:
        """Open the round; clients hear of it when every operator has it.

        A round whose window went by meanwhile is planned again, unless an operator has
        opened it: that one signs no other manifest for it.
        """
        if row.manifest.closes <= self.clock():
            if self._is_unopened(row):
                self._plan_again(row)
            else:
                self._void(row, "its window went by while an operator was away")
            return SOON
        self.run.spend(self.published_run, row.number)
        self.passing("ledger_line")
        assert row.signed is not None
        self._open_everywhere(row.signed)
        self._change(row, OPEN)
        return SOON

    def _publish(self, server: Server) -> float:
        metrics = json.dumps(self.run.metrics(server))
        why = self.run.shortfall(server)
        if why is not None:
            with self._writing() as file:
                file.execute("UPDATE run SET metrics = ?, withheld = ?", (metrics, why))
            self._show()
            LOG.warning("the model is not published: %s", why)
            return SOON
        self.run.publish(self.published_run, server)
        self.passing("model_written")
        with self._writing() as file:
            file.execute(
                "UPDATE run SET is_published = 1, metrics = ? WHERE NOT is_retired",
                (metrics,),
            )
        self.passing("published")
        return SOON

    # of each role

    @property
    @abc.abstractmethod
    def _steps(self) -> Mapping[str, Callable[[AnyRound], float]]:
        """What is done next with an open round, by its state."""

    @abc.abstractmethod
    def _now(self, rows: list[AnyRound]) -> Server:
        """The server after these rounds, all of which are over."""

    @abc.abstractmethod
    def _plan(self, server: Server, rows: list[AnyRound]) -> None:
        """Fix the manifest of the next round."""

    @abc.abstractmethod
    def _signed(self, row: AnyRound) -> bytes:
        """The manifest with the signatures of both operators."""

    @abc.abstractmethod
    def _is_unopened(self, row: AnyRound) -> bool:
        """Whether no operator has opened a round that was signed."""

    @abc.abstractmethod
    def _open_everywhere(self, signed: bytes) -> None:
        """Open a round at every operator that takes reports."""

    # rows

    @property
    def _table(self) -> str:
        return f"{self.noun}s"

    def _rows(self) -> list[AnyRound]:
        names = ", ".join(one.name for one in fields(self.row))
        query = f"SELECT {names} FROM {self._table} ORDER BY number"
        with self._lock:
            return [self.row(*found) for found in self.database.file.execute(query)]

    def _insert(self, number: int, document: bytes, broadcast: bytes) -> bool:
        """Keep the plan of a round; not if the run was retired meanwhile."""
        with self._writing() as file:
            found = file.execute(
                f"INSERT INTO {self._table} (number, state, document, broadcast) "
                "SELECT ?, ?, ?, ? FROM run WHERE NOT is_retired",
                (number, PLANNED, document, broadcast),
            )
        return bool(found.rowcount)

    def _plan_again(self, row: AnyRound) -> None:
        """Forget a manifest that no client was shown, so that no report is for it."""
        with self._writing() as file:
            file.execute(
                f"DELETE FROM {self._table} WHERE number = ? AND state = ?",
                (row.number, row.state),
            )

    def _void(self, row: AnyRound, why: str, *, ends_run: bool = False) -> None:
        """Note that nothing of a round is used; it is forgotten in the next step."""
        with self._writing() as file:
            found = file.execute(
                f"UPDATE {self._table} SET state = ?, why = ? "
                "WHERE number = ? AND state = ?",
                (VOIDING, why, row.number, row.state),
            )
            if ends_run and found.rowcount:
                file.execute("UPDATE run SET is_retired = 1")
        LOG.warning("%s %d is void", self.noun, row.number)
        self._show()

    def _goes_on(self, rows: list[AnyRound]) -> bool:
        """Whether the run has a model without those of these rounds that are void."""
        void = [row.number for row in rows if row.state in (VOIDING, VOID)]
        return not void or self.run.goes_on_without(void)

    def _change(self, row: AnyRound, state: str, **values: object) -> None:
        names = "".join(f", {name} = ?" for name in values)
        with self._writing() as file:
            file.execute(
                f"UPDATE {self._table} SET state = ?{names} "
                "WHERE number = ? AND state = ?",
                (state, *values.values(), row.number, row.state),
            )
        if state != row.state:
            LOG.info("%s %d is %s", self.noun, row.number, state)
        self._show()

    def _show(self) -> None:
        """Let everybody read the rounds as they are now."""
        with self._lock:  # or what another thread has shown since would be replaced
            self._public = self._now_public()

    def _now_public(self) -> PublicRounds:
        rows = self._rows()
        return PublicRounds.of(
            rows,
            is_retired=self.is_retired,
            withheld=self.withheld,
            goes_on=not self.is_retired and self._goes_on(rows),
        )

    def _begin(self) -> None:
        name, invitation = self.run.invitation.run, self.run.invitation.encode()
        with self._writing() as file:
            found = file.execute("SELECT name, invitation FROM run").fetchone()
            if found is None:
                values = (name, invitation)
                file.execute("INSERT INTO run VALUES (?, ?, 0, 0, '[]', '')", values)
            elif found != (name, invitation):
                raise Refused(
                    f"{self.folder} is the folder of another run, with another "
                    "experiment or other operators; give each run a folder of its own"
                )

    def _of_run(self, name: str) -> Any:
        with self._lock:
            [(found,)] = self.database.file.execute(f"SELECT {name} FROM run")
        return found

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction, while no other thread reads."""
        with self._lock, self.database.writing() as file:
            yield file
