"""Opens epochs, takes shuffled batches, opens seals, aggregates, publishes the model.

    planned ──▶ signed ──▶ open ──batches, closing──▶ closed ──▶ folded ──▶ done
                             └──▶ void (the relay destroyed it, or broke its promise)

The collector holds the private key of an epoch until its messages are folded into the
model; from then on late or copied reports cannot be read by anybody. It sees messages
in random order, and how many clients sent them: neither an address nor a time nor which
messages came together, and nothing at all of an epoch with too few.

Every step can be repeated. The ledger's line of an epoch is written before it opens.
The messages of an epoch are deleted in the transaction that keeps what was learnt.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from tacit import check
from tacit.errors import BadMessage, Refused, Unanswered
from tacit.files import make_folders, write_atomically
from tacit.method import Server
from tacit.plans import TICKETS
from tacit.service import hpke
from tacit.service.database import Database
from tacit.service.federation.coordinator import PublicRounds
from tacit.service.http import LOG, Failure
from tacit.service.relay.batches import Closing, batch_count, batch_epoch
from tacit.service.relay.collected_run import CollectedRun
from tacit.service.relay.manifest import EpochManifest, read_document, signed
from tacit.service.relay.opening import Opened, open_all
from tacit.service.relay.relay import EpochSigner
from tacit.service.relay.relay_client import RelayClient
from tacit.service.relay.relay_store import DESTROYED, FORWARDED
from tacit.service.relay.relay_store import VOID as RELAY_VOID
from tacit.service.relay.uploads import sealed_size
from tacit.service.signed_document import signature
from tacit.system_errors import explained

PLANNED, SIGNED, OPEN, CLOSED = "planned", "signed", "open", "closed"
FOLDED, DONE = "folded", "done"
VOIDING, VOID = "voiding", "void"
FILE_NAME = "collector.db"
_TABLES = """
CREATE TABLE epochs (number INTEGER PRIMARY KEY, state TEXT NOT NULL,
    document BLOB NOT NULL, signed BLOB, broadcast BLOB NOT NULL, uploads INTEGER,
    closing BLOB, messages INTEGER, dropped INTEGER, learnt BLOB, why TEXT);
CREATE TABLE batches (epoch BLOB, batch BLOB, count INTEGER NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (epoch, batch)) WITHOUT ROWID;
CREATE TABLE run (name BLOB NOT NULL, invitation BLOB NOT NULL, is_published INTEGER,
    is_retired INTEGER);
"""
_LOST = {  # by the state at the relay
    DESTROYED: "the relay destroyed the uploads of this epoch: too few came, or they "
    "could not be handed over",
    RELAY_VOID: "the relay was put back from a backup, and has lost what came since",
}
_SOON, _LATER = 0.0, 1.0  # seconds until the next step
_FULL = 30  # seconds after which a relay may ask again if the disk is full
_MOST_TIMES = 2  # what a relay that was killed has left, and all of it again


@dataclass(frozen=True)
class EpochSchedule:
    """When epochs open and close. The relay closes an epoch, by its own clock."""

    window: int = 3600  # seconds
    pause: float = 0.0  # seconds between two epochs
    poll: float = 1.0  # seconds between two looks at an open epoch

    def __post_init__(self) -> None:
        check.count(window=self.window)
        check.not_negative(pause=self.pause)
        check.positive(poll=self.poll)


@dataclass(frozen=True)
class EpochState:
    """One row of `epochs`, without its large columns."""

    number: int
    state: str
    document: bytes = field(repr=False)
    signed: bytes | None = field(repr=False)
    uploads: int | None
    closing: bytes | None = field(repr=False)
    messages: int | None  # that were folded
    dropped: int | None  # that did not open, or were no messages
    why: str | None

    broadcast: ClassVar[bytes] = b""  # that of the newest is read by itself

    @property
    def manifest(self) -> EpochManifest:
        """The manifest of the epoch."""
        return read_document(self.document)


class Collector:
    """One run, from its first epoch to its published model."""

    def __init__(
        self,
        run: CollectedRun,
        folder: Path,
        *,
        relay: RelayClient,
        relay_url: str,
        signer: EpochSigner,
        schedule: EpochSchedule,
        processes: int = 2,
        free_bytes: int = 0,
        passing: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.run: CollectedRun = run
        self.folder, self.schedule = folder, schedule
        self.relay, self.relay_url, self.signer = relay, relay_url, signer
        self.processes = processes
        self.free_bytes = free_bytes  # with less room on the disk, nothing is taken
        self.passing, self.clock = passing or (lambda _: None), clock
        self.trouble = ""  # why nothing goes on, for the operator
        self._keys = folder / "keys"
        self.database = Database(folder / FILE_NAME, "collector", _TABLES)
        self._lock = threading.RLock()  # one thread steps, others hand in batches
        self._server: Server | None = None
        self._finished_at = 0.0
        self._begin()
        self._public = PublicRounds()
        self._public = self._now_public()

    def close(self) -> None:
        """Close the file of the collector."""
        self.database.close()

    # what everybody may read

    @property
    def published_run(self) -> Path:
        """The run directory with the published model."""
        return self.folder / "run"

    @property
    def public(self) -> PublicRounds:
        """What everybody may read of the epochs; it is there without the disk."""
        return self._public

    def epochs(self) -> list[EpochState]:
        """All epochs so far."""
        names = ", ".join(one.name for one in fields(EpochState))
        query = f"SELECT {names} FROM epochs ORDER BY number"
        with self._lock:
            return [EpochState(*row) for row in self.database.file.execute(query)]

    @property
    def is_published(self) -> bool:
        """Whether the model of the finished run is out."""
        return self._flag("is_published")

    @property
    def is_retired(self) -> bool:
        """Whether the run was ended by its operator."""
        return self._flag("is_retired")

    @property
    def starts(self) -> int:
        """How often the service was started, with this one."""
        with self._lock:
            return self.database.starts

    @property
    def withheld(self) -> str:
        """Why a learnt model is not published: metrics are not released here."""
        return ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens: published, void or retired."""
        epochs = self.epochs()
        last = epochs[-1].state if epochs else DONE
        is_idle = last in (DONE, VOID)
        return last == VOID or self.is_published or (self.is_retired and is_idle)

    def retire(self) -> None:
        """End the run: an open epoch is void, and no other one opens."""
        with self._lock:  # no step changes the epoch in between
            epochs = self.epochs()
            with self._writing() as file:
                file.execute("UPDATE run SET is_retired = 1")
            self._public = self._now_public()
            if epochs and epochs[-1].state not in (DONE, VOIDING, VOID):
                self._void(epochs[-1], "the run was retired")

    # what the relay hands over

    def take(self, batch: bytes, body: bytes) -> int:
        """Keep a batch of sealed messages; 201, or 200 if it was kept before."""
        row = self._opened(batch_epoch(body))
        epoch = row.manifest.round_id
        try:
            count = batch_count(body, sealed_bytes=sealed_size(row.manifest))
        except BadMessage as error:
            raise Failure(400, "BadMessage", str(error)) from None
        with self._lock:
            query = "SELECT body FROM batches WHERE epoch = ? AND batch = ?"
            known = self.database.file.execute(query, (epoch, batch)).fetchone()
            if known is not None and known != (body,):
                said = "another batch was sent under this id before; use a new id"
                raise Failure(409, "OtherBatch", said)
            if known is not None:
                return 200
            if row.state != OPEN:
                said = "the epoch is closed, and this batch is not in it"
                raise Failure(409, "Closed", said)
            self._check_room(row.manifest, count)
            self.passing("before_commit")
            with self._writing() as file:
                file.execute(
                    "INSERT INTO batches VALUES (?, ?, ?, ?)",
                    (epoch, batch, count, body),
                )
            self.passing("after_commit")
        return 201

    def _check_room(self, manifest: EpochManifest, count: int) -> None:
        """Refuse more than an epoch can have, and all of it if the disk is full."""
        query = "SELECT sum(count) FROM batches WHERE epoch = ?"
        [(kept,)] = self.database.file.execute(query, (manifest.round_id,))
        most = _MOST_TIMES * manifest.most_uploads * manifest.reports_per_user
        if (kept or 0) + count > most:
            said = f"more than {most:,} messages of this epoch were handed over"
            raise Failure(409, "TooMany", said)
        if self.database.free_bytes < self.free_bytes:
            said = "there is too little room on the disk; send the same batch again"
            raise Failure(503, "Disk", said, retry_after=_FULL)

    def close_epoch(self, epoch: bytes, body: bytes) -> int:
        """Note that the relay has forwarded everything; 200 also for the same again.

        Refuses fewer uploads than were promised, batches that are not here, and
        another number of messages than so many uploads have.
        """
        try:
            closing = Closing.read(body)
        except BadMessage as error:
            raise Failure(400, "BadMessage", str(error)) from None
        row = self._known(epoch)
        if row.closing is not None:
            if row.closing != body:
                said = "the epoch was closed otherwise before"
                raise Failure(409, "OtherClosing", said)
            return 200
        if row.state != OPEN:
            raise Failure(410, "Gone", f"epoch {row.number} is over")
        self._check_closing(row.manifest, closing)
        self.passing("closing")
        self._change(row, CLOSED, closing=body, uploads=closing.uploads)
        self.passing("closed")
        return 200

    def _check_closing(self, manifest: EpochManifest, closing: Closing) -> None:
        if closing.uploads < manifest.least_uploads:
            raise Failure(
                *(412, "TooFew"),
                f"fewer than {manifest.least_uploads:,} uploads: nothing of this epoch "
                "is read",
            )
        if closing.uploads > manifest.most_uploads:
            said = f"{closing.uploads:,} uploads; {manifest.most_uploads:,} at the most"
            raise Failure(409, "TooMany", said)
        query = "SELECT batch, count FROM batches WHERE epoch = ?"
        with self._lock:
            found = dict(self.database.file.execute(query, (manifest.round_id,)))
        if not {*closing.batches} <= found.keys():
            said = "a batch of this epoch has not arrived; send it again"
            raise Failure(409, "MissingBatch", said)
        n = sum(found[batch] for batch in closing.batches)
        if n != closing.uploads * manifest.reports_per_user:
            said = f"{n:,} messages are not {closing.uploads:,} times "
            said += f"{manifest.reports_per_user}"
            raise Failure(409, "OtherCount", said)

    def _known(self, epoch: bytes) -> EpochState:
        for row in reversed(self.epochs()):
            if row.manifest.round_id == epoch:
                return row
        raise Failure(404, "UnknownRound", f"epoch {epoch.hex()} is not known here")

    def _opened(self, epoch: bytes) -> EpochState:
        row = self._known(epoch)
        if row.state in (FOLDED, DONE, VOIDING, VOID):
            raise Failure(410, "Gone", f"epoch {row.number} is over")
        return row

    # steps

    def step(self) -> float:
        """Do the next thing; the seconds until there may be another.

        `Unanswered` if the relay does not answer: the same step is tried again.
        """
        if self.is_over:
            return _LATER
        epochs = self.epochs()
        row = epochs[-1] if epochs else None
        if row is None or row.state == DONE:
            return self._between_epochs(epochs)
        steps = {
            PLANNED: self._sign,
            SIGNED: self._open,
            OPEN: self._look,
            CLOSED: self._fold,
            FOLDED: self._delete_key,
            VOIDING: self._delete_key,
        }
        found = steps[row.state](row)
        self.trouble = ""
        return found

    def play(self, *, stop: threading.Event) -> None:
        """Step until the run is over or somebody stops it."""
        while not stop.is_set():
            try:
                wait = self.step()
                if self.is_over:
                    return
            except (Unanswered, Refused) as error:
                self.trouble, wait = str(error), _LATER
            except Exception as error:  # its words may hold what somebody sent
                LOG.error("no step could be made: %s", type(error).__name__)
                self.trouble, wait = f"a failure: {type(error).__name__}", _LATER
            stop.wait(wait)

    def _between_epochs(self, epochs: list[EpochState]) -> float:
        server = self._now(len(epochs))
        if self.run.is_over(server):
            return self._publish(server)
        if epochs and self.clock() < self._finished_at + self.schedule.pause:
            return min(self.schedule.poll, max(0.01, self.schedule.pause))
        self._plan(server, epochs)
        return _SOON

    def _plan(self, server: Server, epochs: list[EpochState]) -> None:
        """Fix the manifest of the next epoch, with a new key of its own."""
        invitation, form = self.run.invitation, self.run.form(server)
        broadcast = self.run.broadcast(server)
        private = hpke.new_private_key()
        public = hpke.public_key(private)
        opens = int(self.clock())
        manifest = EpochManifest(
            run=invitation.run,
            round=server.round,
            report_bytes=form.message_bytes,
            reports_per_user=form.count,
            least_uploads=invitation.least_reports,
            most_uploads=invitation.plan.population,
            needs_tickets=invitation.plan.counted_by == TICKETS,
            opens=opens,
            closes=opens + self.schedule.window,
            broadcast=sha256(broadcast).digest(),
            relay_url=self.relay_url,
            collector_key=public,
            previous=epochs[-1].manifest.round_id if epochs else b"",
        )
        with explained():  # the key first: a manifest has one that is on the disk
            make_folders(self._keys)
            write_atomically(self._key_file(public), private, is_private=True)
        with self._writing() as file:
            file.execute(
                "INSERT INTO epochs (number, state, document, broadcast) "
                "VALUES (?, ?, ?, ?)",
                (server.round, PLANNED, manifest.document(), broadcast),
            )
        self.passing("planned")

    def _sign(self, row: EpochState) -> float:
        if row.manifest.closes <= self.clock():
            # Nobody has both signatures, so no upload was made for it.
            self._key_file(row.manifest.collector_key).unlink(missing_ok=True)
            with self._writing() as file:
                file.execute(
                    "DELETE FROM epochs WHERE number = ? AND state = ?",
                    (row.number, row.state),
                )
            return _SOON
        relay = self.relay.sign(row.document)
        own = signature(row.manifest, self.signer.key)
        sent = signed(row.manifest, relay=relay, collector=own)
        self._change(row, SIGNED, signed=sent)
        return _SOON

    def _open(self, row: EpochState) -> float:
        """Open the epoch at the relay; clients hear of it when the relay has it."""
        assert row.signed is not None
        self.run.spend(self.published_run, row.number)
        self.passing("ledger_line")
        self.relay.open(row.signed)
        self._change(row, OPEN)
        return _SOON

    def _look(self, row: EpochState) -> float:
        """Wait for the relay; void what it has destroyed."""
        found = self.relay.epoch(row.manifest.round_id)
        if found.state in _LOST:
            self._void(row, _LOST[found.state])
            return _SOON
        # Looked at again: the closing may have come while the relay was asked.
        is_here = self._known(row.manifest.round_id).state != OPEN
        if found.state == FORWARDED and not is_here:
            self._void(row, "the relay has forwarded this epoch, and it is not here")
            return _SOON
        return self.schedule.poll

    def _fold(self, row: EpochState) -> float:
        """Open everything, aggregate, keep what was learnt and delete the messages."""
        manifest, server = row.manifest, self._now(row.number)
        opened = self._opened_messages(row, server)
        self.passing("messages_opened")
        if not len(opened.rows):
            self._void(row, "no message of this epoch could be read")
            return _SOON
        try:
            after = self.run.next(server, opened.rows, uploads=row.uploads or 0)
            learnt = self.run.to_bytes(after)
        except (OSError, MemoryError):  # this machine's, not the messages': again
            raise
        except Exception as error:  # its words may hold what somebody sent
            said = f"its messages could not be aggregated: {type(error).__name__}"
            LOG.error("epoch %d is void: %s", row.number, said)
            self._void(row, said)
            return _SOON
        self.passing("aggregated")
        with self._writing() as file:
            found = file.execute(
                "UPDATE epochs SET state = ?, learnt = ?, messages = ?, dropped = ? "
                "WHERE number = ? AND state = ?",
                (
                    *(FOLDED, learnt, len(opened.rows)),
                    *(opened.dropped + opened.repeated, row.number, row.state),
                ),
            )
            if not found.rowcount:  # the run was retired meanwhile
                return _SOON
            file.execute("DELETE FROM batches WHERE epoch = ?", (manifest.round_id,))
            # What was learnt before is in what was learnt now.
            file.execute(
                "UPDATE epochs SET learnt = NULL WHERE number < ?", (row.number,)
            )
        self._server = after
        self._public = self._now_public()
        self.passing("folded")
        return _SOON

    def _opened_messages(self, row: EpochState, server: Server) -> Opened:
        assert row.closing is not None
        manifest, closing = row.manifest, Closing.read(row.closing)
        path = self._key_file(manifest.collector_key)
        if not path.is_file():
            raise Refused(
                f"the key of epoch {row.number} is not in {self._keys}: its messages "
                "cannot be opened any more; retire the run and begin another"
            )
        file = self.database.reading()
        try:
            return open_all(
                _bodies(file, manifest.round_id, closing),
                manifest,
                path.read_bytes(),
                self.run.legal(server),
                folder=self.folder,
                processes=self.processes,
                expected=closing.uploads * manifest.reports_per_user,
            )
        finally:
            file.close()

    def _delete_key(self, row: EpochState) -> float:
        """Delete the private key: nobody opens a seal of this epoch any more."""
        with explained():
            self._key_file(row.manifest.collector_key).unlink(missing_ok=True)
        self.passing("key_deleted")
        if row.state == VOIDING:
            with contextlib.suppress(Refused):  # it may never have heard of it
                self.relay.void(row.manifest.round_id)
        with self._writing() as file:
            epoch = row.manifest.round_id
            file.execute("DELETE FROM batches WHERE epoch = ?", (epoch,))
        self._change(row, VOID if row.state == VOIDING else DONE)
        with self._lock:
            self.database.tidy()
        self._finished_at = self.clock()
        self.passing("done")
        return _SOON

    def _publish(self, server: Server) -> float:
        self.run.publish(self.published_run, server)
        self.passing("model_written")
        with self._writing() as file:
            file.execute("UPDATE run SET is_published = 1")
        self.passing("published")
        return _SOON

    # details

    def _begin(self) -> None:
        name = self.run.invitation.run
        with self._writing() as file:
            found = file.execute("SELECT name, invitation FROM run").fetchone()
            if found is None:
                file.execute(
                    "INSERT INTO run VALUES (?, ?, 0, 0)",
                    (name, self.run.invitation.encode()),
                )
            elif found != (name, self.run.invitation.encode()):
                raise Refused(
                    f"{self.folder} is the folder of another run, with another "
                    "experiment or other operators; give each run a folder of its own"
                )

    def _now(self, epochs: int) -> Server:
        """The server after so many epochs, all of which are over."""
        if self._server is None or self._server.round != epochs:
            self._server = self.run.start
            if epochs:
                learnt = self._large("learnt", epochs - 1)
                self._server = self.run.from_bytes(learnt, round=epochs)
        return self._server

    def _large(self, name: str, number: int) -> bytes:
        """A large column of one epoch."""
        query = f"SELECT {name} FROM epochs WHERE number = ?"
        with self._lock:
            [(found,)] = self.database.file.execute(query, (number,))
        return bytes(found)

    def _key_file(self, public: bytes) -> Path:
        return self._keys / f"{public.hex()}.key"

    def _void(self, row: EpochState, why: str) -> None:
        """Note that nothing of an epoch is used; it is forgotten in the next step."""
        self._change(row, VOIDING, why=why)

    def _change(self, row: EpochState, state: str, **values: object) -> None:
        names = "".join(f", {name} = ?" for name in values)
        with self._writing() as file:
            file.execute(
                f"UPDATE epochs SET state = ?{names} WHERE number = ? AND state = ?",
                (state, *values.values(), row.number, row.state),
            )
        self._public = self._now_public()

    def _now_public(self) -> PublicRounds:
        epochs = self.epochs()
        found = PublicRounds.of(epochs, is_retired=self.is_retired)
        if not epochs:
            return found
        # Of the newest epoch alone: nobody answers an earlier one any more.
        name = epochs[-1].manifest.broadcast.hex()
        if name not in found.broadcasts:  # it was not opened
            return replace(found, broadcasts={})
        message = self._public.broadcasts.get(name)
        message = message or self._large("broadcast", epochs[-1].number)
        return replace(found, broadcasts={name: message})

    def _flag(self, name: str) -> bool:
        with self._lock:
            [(found,)] = self.database.file.execute(f"SELECT {name} FROM run")
        return bool(found)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction, while no other thread reads."""
        with self._lock, self.database.writing() as file:
            yield file


def _bodies(
    file: sqlite3.Connection, epoch: bytes, closing: Closing
) -> Iterator[bytes]:
    query = "SELECT body FROM batches WHERE epoch = ? AND batch = ?"
    for batch in closing.batches:
        [(body,)] = file.execute(query, (epoch, batch))
        yield body
