"""What a relay keeps on its disk: one SQLite file, and one file of messages per epoch.

    epochs     one row per epoch: manifest, state, secret, how much was forwarded
    staged     what came within the last seconds, one row per group of uploads
    scattered  which places of the epoch's own file are taken; digests of uploads that
               were acknowledged, keyed by the epoch's secret; tickets that were used
    tickets    digests of tickets that were handed out

Uploads are acknowledged once they are `staged`. Every few seconds `scatter` moves their
messages to random places of the epoch's own file (`scattered_file`), whose order is a
shuffle of the whole epoch and the order in which it is forwarded, and their digests and
tickets into sorted lists. First a mark says that the file is being written; then
messages are written and flushed; then one transaction notes their places and deletes
them here. Killed in between, they are still here, and whatever was written of them is
overwritten at the next start.

*What a copy of the disk says.* Of what has its place: nothing about when it came, or
with what. Of the last seconds: which messages, digests and tickets came in one group of
uploads, here and in the log of writes, which `settle` empties. Digests and their secret
lie on one disk, so a guess of which messages came together can be confirmed there.
Nothing on it names a person or a time, and a relay in operation sees all of this
anyway, with addresses.

In a file that was put back from a backup every epoch that is not over is void: what was
acknowledged since is not in it. The backup is noticed if anything was scattered since.
An epoch whose own file is gone is void as well.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np

from tacit.files import make_private_folder
from tacit.service.manifest import read_document
from tacit.service.relay.digests import Digests
from tacit.service.relay.scattered_file import (
    Bits,
    Rows,
    ScatteredFile,
    erase,
    mixed,
)
from tacit.service.relay.uploads import EpochManifest, MessageFields
from tacit.storage.anchor import Anchor
from tacit.storage.sqlite_file import PATIENCE, in_one_sentence
from tacit.storage.store import Store
from tacit.system_errors import explained

SIGNED, OPEN, FORWARDING = "signed", "open", "forwarding"
FORWARDED, DESTROYED, VOID = "forwarded", "destroyed", "void"
OVER = (FORWARDED, DESTROYED, VOID)
FILE_NAME = "relay.db"
FOLDER_NAME = "messages"  # of the scattered files
SECRET_BYTES = 32
_TABLES = """
CREATE TABLE epochs (id BLOB PRIMARY KEY, run BLOB NOT NULL, number INTEGER NOT NULL,
    document BLOB NOT NULL, state TEXT NOT NULL, secret BLOB, delay REAL,
    uploads INTEGER, sent INTEGER NOT NULL, UNIQUE (run, number)) WITHOUT ROWID;
CREATE TABLE staged (number INTEGER PRIMARY KEY, epoch BLOB NOT NULL,
    messages BLOB NOT NULL, uploads BLOB NOT NULL, used BLOB NOT NULL);
CREATE TABLE scattered (epoch BLOB PRIMARY KEY, places INTEGER NOT NULL,
    size INTEGER NOT NULL, taken BLOB NOT NULL, uploads BLOB NOT NULL,
    used BLOB NOT NULL, is_written INTEGER NOT NULL);
CREATE TABLE tickets (ticket BLOB PRIMARY KEY) WITHOUT ROWID;
"""
OF_AN_EPOCH = ("staged", "scattered")
FORMAT = 4  # of the tables; the third had no checksum
DIGEST_BYTES, _TICKET_BYTES = 16, 32
_AT_ONCE = 2**22  # bytes of staged messages that are scattered at a time


@dataclass(frozen=True)
class EpochRow:
    """One row of `epochs`."""

    id: bytes
    run: bytes
    number: int
    document: bytes = field(repr=False)  # of the manifest, without its signatures
    state: str
    secret: bytes | None = field(repr=False)  # of ids of batches, of uploads' digests
    delay: float | None  # seconds after the window, drawn at random
    uploads: int | None  # once it is forwarded
    sent: int  # batches that the collector has

    @property
    def manifest(self) -> EpochManifest:
        """The manifest of the epoch."""
        return read_document(self.document, MessageFields)


@dataclass
class Seen:
    """The uploads of an epoch that were acknowledged, and the tickets that they used.

    In the memory they take as many bytes as on the disk: 16 per upload, 32 per ticket.
    """

    uploads: Digests
    used: Digests
    new_uploads: set[bytes] = field(default_factory=set)  # that are staged
    new_used: set[bytes] = field(default_factory=set)

    def has_upload(self, digest: bytes) -> bool:
        """Whether an upload was acknowledged before."""
        return digest in self.new_uploads or digest in self.uploads

    def has_ticket(self, digest: bytes) -> bool:
        """Whether a ticket was used by one of the uploads."""
        return digest in self.new_used or digest in self.used

    def __len__(self) -> int:
        return len(self.uploads) + len(self.new_uploads)


class RelayStore(Store):
    """The files of one relay."""

    def __init__(self, folder: Path, *, is_restored: bool = False) -> None:
        self._is_settled = False
        self._seen: dict[bytes, Seen] = {}  # by epoch, so that it need not be read
        path = folder / FILE_NAME
        super().__init__(path, "relay", _TABLES, format=FORMAT, is_restored=is_restored)
        with explained():
            make_private_folder(folder / FOLDER_NAME)
        if lost := [row for row in self._begun() if not self._is_whole(row)]:
            with self.changing() as file:
                for row in lost:
                    self.forget(file, row, state=VOID)
        self.settle()
        self._mend()
        self.sweep()

    def void(self, file: sqlite3.Connection, known: Sequence[Anchor]) -> None:
        """In a copy, every epoch that is not over."""
        for row in self._begun():
            self.forget(file, row, state=VOID)

    # epochs

    def _begun(self) -> list[EpochRow]:
        return [row for row in self.epochs() if row.state not in OVER]

    def epoch(self, id: bytes) -> EpochRow | None:
        """The row of an epoch."""
        found = self.file.execute("SELECT * FROM epochs WHERE id = ?", (id,))
        return next((EpochRow(*row) for row in found), None)

    def epoch_of(self, run: bytes, number: int) -> EpochRow | None:
        """The row of an epoch of a run, by its number."""
        query = "SELECT * FROM epochs WHERE run = ? AND number = ?"
        found = self.file.execute(query, (run, number))
        return next((EpochRow(*row) for row in found), None)

    def epochs(self) -> list[EpochRow]:
        """All epochs, by number."""
        query = "SELECT * FROM epochs ORDER BY number"
        return [EpochRow(*row) for row in self.file.execute(query)]

    def forget(self, file: sqlite3.Connection, row: EpochRow, *, state: str) -> None:
        """Delete all of an epoch but its name, its manifest and its state."""
        self._is_settled = False
        self.reread(row.id)
        for table in OF_AN_EPOCH:
            file.execute(f"DELETE FROM {table} WHERE epoch = ?", (row.id,))
        file.execute(
            "UPDATE epochs SET state = ?, secret = NULL WHERE id = ?", (state, row.id)
        )

    def sweep(self) -> None:
        """Erase scattered files of epochs that are over, or were never opened."""
        rows = self.file.execute("SELECT epoch FROM scattered")
        known = {self._path(epoch).name for (epoch,) in rows}
        with explained():
            for path in (self.path.parent / FOLDER_NAME).iterdir():
                if path.name not in known:
                    erase(path)

    # messages

    def scattered(self, epoch: bytes, *, messages: int, size: int) -> ScatteredFile:
        """The file of an epoch with at most so many messages of this size."""
        return ScatteredFile.for_messages(self._path(epoch), messages, size)

    def reserve(
        self, file: sqlite3.Connection, epoch: bytes, made: ScatteredFile
    ) -> None:
        """Make the scattered file of an epoch, within the transaction that opens it."""
        with explained():
            taken = made.make()
        file.execute(
            "INSERT INTO scattered VALUES (?, ?, ?, ?, ?, ?, 0)",
            (epoch, made.places, made.size, taken.tobytes(), b"", b""),
        )

    def add(
        self,
        file: sqlite3.Connection,
        epoch: bytes,
        sealed: Sequence[bytes],
        *,
        uploads: Sequence[bytes],
        used: Sequence[bytes] = (),
    ) -> None:
        """Keep messages of one length, and by which uploads and tickets they came.

        Within a transaction; if it fails, `reread`. Each of the three is in an order
        that says nothing of the others.
        """
        self._is_settled = False
        messages = mixed(_rows(b"".join(sealed), len(sealed[0]))).tobytes()
        row = (secrets.randbits(63), epoch, messages)
        both = (b"".join(sorted(uploads)), b"".join(sorted(used)))
        file.execute("INSERT INTO staged VALUES (?, ?, ?, ?, ?)", (*row, *both))
        seen = self.seen(epoch)
        seen.new_uploads.update(uploads)
        seen.new_used.update(used)

    def seen(self, epoch: bytes) -> Seen:
        """What was acknowledged of an epoch that was opened and is not over."""
        if epoch not in self._seen:
            query = "SELECT uploads, used FROM scattered WHERE epoch = ?"
            [(uploads, used)] = self.file.execute(query, (epoch,))
            made = Seen(Digests(DIGEST_BYTES, uploads), Digests(_TICKET_BYTES, used))
            query = "SELECT uploads, used FROM staged WHERE epoch = ?"
            for uploads, used in self.file.execute(query, (epoch,)):
                made.new_uploads.update(_cut(uploads, DIGEST_BYTES))
                made.new_used.update(_cut(used, _TICKET_BYTES))
            self._seen[epoch] = made
        return self._seen[epoch]

    def reread(self, epoch: bytes) -> None:
        """Trust the disk alone, after a transaction that was not committed."""
        self._seen.pop(epoch, None)

    def staged(self) -> dict[bytes, int]:
        """The bytes of messages without a place, of every epoch that has some."""
        query = "SELECT epoch, sum(length(messages)) FROM staged GROUP BY epoch"
        return dict(self.file.execute(query))

    def scatter(self, epoch: bytes, passing: Callable[[str], None]) -> None:
        """Move all that is staged of an epoch to where it says nothing any more."""
        query = "SELECT number FROM staged WHERE epoch = ?"
        numbers = [number for (number,) in self.file.execute(query, (epoch,))]
        if not numbers:
            return
        self._is_settled = False
        self._mend()
        with self.writing() as file:
            query = "UPDATE scattered SET is_written = 1 WHERE epoch = ?"
            file.execute(query, (epoch,))
        passing("scattering")
        found, taken = self._places(self.file, epoch)
        with explained():
            for rows in self._staged(numbers, found.size):
                found.put(rows, taken)
            found.flush()
        passing("scattered")
        seen = self.seen(epoch)
        uploads = seen.uploads.with_more(seen.new_uploads)
        used = seen.used.with_more(seen.new_used)
        with self.changing() as file:
            file.execute(
                "UPDATE scattered SET taken = ?, uploads = ?, used = ?, is_written = 0 "
                "WHERE epoch = ?",
                (taken.tobytes(), uploads.content, used.content, epoch),
            )
            file.executemany(
                "DELETE FROM staged WHERE number = ?", ((n,) for n in numbers)
            )
        self._seen[epoch] = Seen(uploads, used)

    def settle(self) -> bool:
        """Empty the log of writes, unless somebody reads; whether it is empty.

        It has every group of uploads by itself: what came together.
        """
        if not self._is_settled:
            with in_one_sentence(self.path):
                self.file.execute("PRAGMA busy_timeout = 0")  # not wait for a reader
                try:
                    query = "PRAGMA wal_checkpoint(TRUNCATE)"
                    [(is_busy, _, _)] = self.file.execute(query)
                finally:
                    self.file.execute(f"PRAGMA busy_timeout = {1000 * PATIENCE}")
            self._is_settled = not is_busy
        return self._is_settled

    def shuffled(self, epoch: bytes, *, messages: int) -> Iterator[bytes]:
        """All messages of an epoch by their places, so many in each piece.

        It may run beside the thread that writes, once nothing is staged any more.
        """
        with closing(self.reading()) as file:
            found, taken = self._places(file, epoch)
        yield from found.pieces(taken, messages=messages)

    def _is_whole(self, row: EpochRow) -> bool:
        """Whether the messages of an epoch are there, if it was opened."""
        if row.state == SIGNED:
            return True
        found, _ = self._places(self.file, row.id)
        return found.is_whole

    def _path(self, epoch: bytes) -> Path:
        return self.path.parent / FOLDER_NAME / epoch.hex()

    def _places(
        self, file: sqlite3.Connection, epoch: bytes
    ) -> tuple[ScatteredFile, Bits]:
        """The scattered file of an epoch, and which of its places are taken."""
        query = "SELECT places, size, taken FROM scattered WHERE epoch = ?"
        [(places, size, taken)] = file.execute(query, (epoch,))
        bits = np.frombuffer(bytearray(taken), np.uint8)
        return ScatteredFile(self._path(epoch), places, size), bits

    def _staged(self, numbers: list[int], size: int) -> Iterator[Rows]:
        """Staged messages, many at a time: few writes, and little memory."""
        query, some = "SELECT messages FROM staged WHERE number = ?", bytearray()
        for number in numbers:
            [(messages,)] = self.file.execute(query, (number,))
            some += messages
            if len(some) >= _AT_ONCE:
                yield _rows(some, size)
                some = bytearray()
        if some:
            yield _rows(some, size)

    def _mend(self) -> None:
        """Overwrite what was written of staged messages and not noted.

        The process was killed, or the disk has failed.
        """
        query = "SELECT epoch FROM scattered WHERE is_written"
        for (epoch,) in self.file.execute(query).fetchall():
            found, taken = self._places(self.file, epoch)
            with explained():
                found.clean(taken)
            with self.writing() as file:
                query = "UPDATE scattered SET is_written = 0 WHERE epoch = ?"
                file.execute(query, (epoch,))

    # tickets

    def add_tickets(self, digests: Iterable[bytes]) -> None:
        """Let these tickets report, once per epoch each."""
        with self.writing() as file:
            rows = ((one,) for one in digests)
            file.executemany("INSERT OR IGNORE INTO tickets VALUES (?)", rows)


def upload_counts(file: sqlite3.Connection) -> dict[bytes, int]:
    """How many uploads were acknowledged, of every epoch that is not over."""
    both = "SELECT epoch, uploads FROM scattered UNION ALL SELECT epoch, uploads "
    both += "FROM staged"
    query = f"SELECT epoch, sum(length(uploads)) FROM ({both}) GROUP BY epoch"
    return {epoch: size // DIGEST_BYTES for epoch, size in file.execute(query)}


def upload_name(row: EpochRow, digest: bytes) -> bytes:
    """What an upload is known by: nobody without the epoch's secret can compute it."""
    assert row.secret is not None  # of an epoch that was opened and is not over
    return blake2b(digest, key=row.secret, digest_size=DIGEST_BYTES).digest()


def _rows(content: bytes | bytearray, size: int) -> Rows:
    return np.frombuffer(content, np.uint8).reshape(-1, size)


def _cut(content: bytes, width: int) -> Iterator[bytes]:
    return (content[i : i + width] for i in range(0, len(content), width))
