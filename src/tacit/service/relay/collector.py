"""Opens epochs, takes shuffled batches, opens seals, aggregates, publishes the model.

    planned ──▶ signed ──▶ open ──batches, closing──▶ closed ──▶ folded ──▶ done
                             └──▶ void (the relay destroyed it, or broke its promise)

The collector holds the private key of an epoch until its messages are folded into the
model; from then on late or copied reports cannot be read by anybody. It sees messages
in random order, and how many clients sent them: neither an address nor a time nor which
messages came together, and nothing at all of an epoch with too few.

The messages of an epoch are deleted in the transaction that keeps what was learnt. What
was learnt may hold reports itself, if a method learns from all of them at the end; that
is deleted when the run is over. How steps are made, repeated and kept is told in
`stepwise_run`.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from tacit.errors import BadMessage, Refused
from tacit.method import Server
from tacit.service import hpke
from tacit.service.federation.operator_client import Unknown
from tacit.service.federation.public_rounds import (
    OPEN,
    PLANNED,
    SIGNED,
    VOID,
    VOIDING,
    PublicRounds,
)
from tacit.service.federation.round_keys import RoundKeys
from tacit.service.federation.stepwise_run import LOST, SOON, Schedule, StepwiseRun
from tacit.service.http import LOG, Failure
from tacit.service.manifest import Manifest, attach_signatures, read_document
from tacit.service.relay.batches import Closing, batch_count, batch_epoch
from tacit.service.relay.collected_run import CollectedRun
from tacit.service.relay.opening import Opened, open_all
from tacit.service.relay.relay_client import RelayClient
from tacit.service.relay.relay_store import DESTROYED, FORWARDED
from tacit.service.relay.relay_store import SIGNED as RELAY_SIGNED
from tacit.service.relay.relay_store import VOID as RELAY_VOID
from tacit.service.relay.uploads import EpochManifest, MessageFields
from tacit.service.signed_document import signature
from tacit.service.signing import Signer

CLOSED, FOLDED, DONE = "closed", "folded", "done"
_TABLES = """
CREATE TABLE epochs (number INTEGER PRIMARY KEY, state TEXT NOT NULL,
    document BLOB NOT NULL, signed BLOB, broadcast BLOB NOT NULL, uploads INTEGER,
    closing BLOB, messages INTEGER, dropped INTEGER, learnt BLOB, why TEXT);
CREATE TABLE batches (epoch BLOB, batch BLOB, count INTEGER NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (epoch, batch)) WITHOUT ROWID;
"""
_FORMAT = 3  # of the tables; the second had no checksum
_LOST = {  # by the state at the relay
    DESTROYED: "the relay destroyed the uploads of this epoch: too few came, or they "
    "could not be handed over",
    RELAY_VOID: "the relay was put back from a backup, and has lost what came since",
}
_FULL = 30  # seconds after which a relay may ask again if the disk is full
_MOST_TIMES = 2  # what a relay that was killed has left, and all of it again


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
        return read_document(self.document, MessageFields)


class Collector(StepwiseRun[EpochState]):
    """One run, from its first epoch to its published model."""

    name, noun, over, row = "collector", "epoch", DONE, EpochState
    meanings: ClassVar[Mapping[str, str]] = {
        PLANNED: "planned, not signed yet",
        SIGNED: "signed, not open yet",
        OPEN: "open",
        CLOSED: "handed over, not added up yet",
        FOLDED: "added up; its key is not erased yet",
        DONE: "finished; its messages and its key are erased",
        VOIDING: "void; its messages are not erased yet",
        VOID: "void; its messages and its key are erased",
    }
    waits: ClassVar[Mapping[str, str]] = {
        PLANNED: "the relay's signature",
        SIGNED: "the relay to open it",
        CLOSED: "its messages to be opened and added up",
        FOLDED: "its key to be erased",
        VOIDING: "relay and collector to erase its messages",
    }
    run: CollectedRun

    def __init__(
        self,
        run: CollectedRun,
        folder: Path,
        *,
        relay: RelayClient,
        relay_url: str,
        signer: Signer,
        schedule: Schedule,
        processes: int = 2,
        free_bytes: int = 0,
        passing: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.relay, self.relay_url, self.signer = relay, relay_url, signer
        self.processes = processes
        self.free_bytes = free_bytes  # with less room on the disk, nothing is taken
        self._keys = RoundKeys(folder / "keys")
        super().__init__(
            *(run, folder),
            tables=_TABLES,
            format=_FORMAT,
            schedule=schedule,
            passing=passing,
            clock=clock,
        )
        open_ones = [row for row in self.epochs() if row.state not in (DONE, VOID)]
        self._keys.delete_all_but([row.manifest.keys["collector"] for row in open_ones])

    def epochs(self) -> list[EpochState]:
        """All epochs so far."""
        return self._rows()

    # what the relay hands over

    def take(self, batch: bytes, body: bytes) -> int:
        """Keep a batch of sealed messages; 201, or 200 if it was kept before."""
        row = self._opened(batch_epoch(body))
        epoch = row.manifest.round_id
        try:
            count = batch_count(body, sealed_bytes=row.manifest.fields.sealed_bytes)
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
        most = _MOST_TIMES * manifest.most_reports * manifest.fields.reports_per_user
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
        if closing.uploads < manifest.least_reports:
            raise Failure(
                *(412, "TooFew"),
                f"fewer than {manifest.least_reports:,} uploads: nothing of this epoch "
                "is read",
            )
        if closing.uploads > manifest.most_reports:
            said = f"{closing.uploads:,} uploads; {manifest.most_reports:,} at the most"
            raise Failure(409, "TooMany", said)
        query = "SELECT batch, count FROM batches WHERE epoch = ?"
        with self._lock:
            found = dict(self.database.file.execute(query, (manifest.round_id,)))
        if not {*closing.batches} <= found.keys():
            said = "a batch of this epoch has not arrived; send it again"
            raise Failure(409, "MissingBatch", said)
        n = sum(found[batch] for batch in closing.batches)
        if n != closing.uploads * manifest.fields.reports_per_user:
            said = f"{n:,} messages are not {closing.uploads:,} times "
            said += f"{manifest.fields.reports_per_user}"
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
        """Do the next thing; when the run is over, delete what nobody needs."""
        wait = super().step()
        if self.is_over:
            self._forget()
        return wait

    def _forget(self) -> None:
        """Delete what was learnt, but for the weights of a model that is published.

        Whatever a collector is started for after that, it reads the published files.
        """
        query = "SELECT number, learnt FROM epochs WHERE learnt IS NOT NULL"
        with self._writing() as file:
            for number, learnt in file.execute(query).fetchall():
                kept = self.run.without_memory(learnt) if self.is_published else None
                if kept != learnt:
                    change = "UPDATE epochs SET learnt = ? WHERE number = ?"
                    file.execute(change, (kept, number))
        self._server = None
        with self._lock:
            self.database.tidy()

    @property
    def _steps(self) -> Mapping[str, Callable[[EpochState], float]]:
        return {
            OPEN: self._look,
            CLOSED: self._fold,
            FOLDED: self._delete_key,
            VOIDING: self._delete_key,
        }

    def _plan(self, server: Server, rows: list[EpochState]) -> None:
        """Fix the manifest of the next epoch, with a new key of its own."""
        invitation = self.run.invitation
        broadcast = self.run.broadcast(server)
        private = hpke.new_private_key()
        public = hpke.public_key(private)
        opens = int(self.clock())
        manifest = Manifest(
            run=invitation.run,
            round=server.round,
            fields=self.run.form(server).fields,
            least_reports=invitation.least_reports,
            most_reports=invitation.plan.population,
            opens=opens,
            closes=opens + self.schedule.window,
            broadcast=sha256(broadcast).digest(),
            url=self.relay_url,
            keys={"collector": public},
            previous=rows[-1].manifest.round_id if rows else b"",
        )
        # The key first: a manifest has one that is on the disk.
        self._keys.keep(public, private)
        try:
            is_kept = self._insert(server.round, manifest.document(), broadcast)
        except BaseException:
            self._keys.delete(public)
            raise
        if not is_kept:  # the run was retired
            self._keys.delete(public)
        self.passing("planned")

    def _plan_again(self, row: EpochState) -> None:
        super()._plan_again(row)  # first: no epoch opens without its key
        self._keys.delete(row.manifest.keys["collector"])

    def _signed(self, row: EpochState) -> bytes:
        relay = self.relay.sign(row.document)
        own = signature(row.manifest, self.signer.key)
        signatures = {"relay": relay, "collector": own}
        return attach_signatures(row.manifest, signatures)

    def _is_unopened(self, row: EpochState) -> bool:
        try:
            return self.relay.epoch(row.manifest.round_id).state == RELAY_SIGNED
        except Unknown:
            return True

    def _open_everywhere(self, signed: bytes) -> None:
        self.relay.open(signed)

    def _look(self, row: EpochState) -> float:
        """Wait for the relay; void what it has destroyed."""
        try:
            found = self.relay.epoch(row.manifest.round_id)
        except Unknown:
            self._void(row, LOST.format("relay", "the uploads"), ends_run=True)
            return SOON
        if found.state in _LOST:
            self._void(row, _LOST[found.state])
            return SOON
        # Looked at again: the closing may have come while the relay was asked.
        is_here = self._known(row.manifest.round_id).state != OPEN
        if found.state == FORWARDED and not is_here:
            self._void(row, "the relay has forwarded this epoch, and it is not here")
            return SOON
        return self.schedule.poll

    def _fold(self, row: EpochState) -> float:
        """Open everything, aggregate, keep what was learnt and delete the messages."""
        manifest, server = row.manifest, self._after(row.number)
        opened = self._opened_messages(row, server)
        self.passing("messages_opened")
        if not len(opened.rows):
            self._void(row, "no message of this epoch could be read")
            return SOON
        try:
            after = self.run.next(server, opened.rows, uploads=row.uploads or 0)
            learnt = self.run.to_bytes(after)
        except (OSError, MemoryError):  # this machine's, not the messages': again
            raise
        except Exception as error:  # its words may hold what somebody sent
            said = f"its messages could not be aggregated: {type(error).__name__}"
            LOG.error("epoch %d is void: %s", row.number, said)
            self._void(row, said)
            return SOON
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
                return SOON
            file.execute("DELETE FROM batches WHERE epoch = ?", (manifest.round_id,))
            # What was learnt before is in what was learnt now.
            file.execute(
                "UPDATE epochs SET learnt = NULL WHERE number < ?", (row.number,)
            )
        self._server = after
        self._show()
        self.passing("folded")
        return SOON

    def _opened_messages(self, row: EpochState, server: Server) -> Opened:
        assert row.closing is not None
        manifest, closing = row.manifest, Closing.read(row.closing)
        private = self._keys.get(manifest.keys["collector"])
        if private is None:
            raise Refused(
                f"the key of epoch {row.number} is not in {self._keys.folder}: its "
                "messages cannot be opened any more; retire the run and begin another"
            )
        file = self.database.reading()
        try:
            return open_all(
                _bodies(file, manifest.round_id, closing),
                manifest,
                private,
                self.run.legal(server),
                folder=self.folder,
                processes=self.processes,
                expected=closing.uploads * manifest.fields.reports_per_user,
            )
        finally:
            file.close()

    def _delete_key(self, row: EpochState) -> float:
        """Delete the private key: nobody opens a seal of this epoch any more."""
        self._keys.delete(row.manifest.keys["collector"])
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
        return SOON

    # details

    def _now(self, rows: list[EpochState]) -> Server:
        return self._after(len(rows))

    def _after(self, epochs: int) -> Server:
        """The server after so many epochs, all of which are over."""
        if self._server is None or self._server.round != epochs:
            server = self.run.start
            query = "SELECT number, learnt FROM epochs WHERE learnt IS NOT NULL "
            query += "AND number < ? ORDER BY number DESC LIMIT 1"
            with self._lock:
                rows = self.database.file.execute(query, (epochs,)).fetchall()
            for number, learnt in rows:
                server = self.run.from_bytes(learnt, round=number + 1)
            while server.round < epochs:  # what is void since then
                server = self.run.without(server)
            self._server = server
        return self._server

    def _large(self, name: str, number: int) -> bytes:
        """A large column of one epoch."""
        query = f"SELECT {name} FROM epochs WHERE number = ?"
        with self._lock:
            [(found,)] = self.database.file.execute(query, (number,))
        return bytes(found)

    def _now_public(self) -> PublicRounds:
        found, epochs = super()._now_public(), self.epochs()
        name = epochs[-1].manifest.broadcast.hex() if epochs else ""
        if name not in found.broadcasts:  # it was not opened
            return replace(found, broadcasts={})
        # Of the newest epoch alone: nobody answers an earlier one any more.
        message = self._public.broadcasts.get(name)
        message = message or self._large("broadcast", epochs[-1].number)
        return replace(found, broadcasts={name: message})


def _bodies(
    file: sqlite3.Connection, epoch: bytes, closing: Closing
) -> Iterator[bytes]:
    query = "SELECT body FROM batches WHERE epoch = ? AND batch = ?"
    for batch in closing.batches:
        [(body,)] = file.execute(query, (epoch, batch))
        yield body
