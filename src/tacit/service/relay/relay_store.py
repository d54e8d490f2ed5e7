"""What a relay keeps on its disk: one SQLite file, without a time or an address.

    epochs    one row per epoch: manifest, state, secret, how much was forwarded
    uploads   digests of uploads that were acknowledged, keyed by the epoch's secret
    segments  thousands of short sealed messages in one body, sorted by their tags
    messages  long sealed messages, each under its tag
    tickets   digests of tickets that were handed out
    used      tickets that were used in an epoch, without a word for what

A tag is 16 bytes of the operating system's randomness, drawn when a message comes in.
Messages lie in the order of their tags, and that is the order in which they are
forwarded: a shuffle of the whole epoch. A segment is written anew, sorted, with every
group of uploads until it is full, and the next one has another random number: a row for
each message would take five times as long.

*What a copy of the disk says.* Not which messages of a segment came together: it has
those of `LEAST_TOGETHER` uploads or more (or 64 MB), and the last one those of all that
came since. That messages of one segment came at about one time, it does say. So does
the place of long messages: their pages are in the order of the groups that they came
in. The log of writes has the groups of the last moments one by one, until `settle`
empties it: twice per second by default, but not while another epoch is being read to be
forwarded. Digests and their secret lie on one disk, so a guess of which messages came
together can be confirmed there. Nothing on it names a person or a time, and a relay in
operation sees all of this anyway, with addresses.

In a file that was put back from a backup every epoch that is not over is void: what was
acknowledged since is not in it.
"""

from __future__ import annotations

import heapq
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import numpy as np

from tacit.service.database import PATIENCE, Database, told

SIGNED, OPEN, FORWARDING = "signed", "open", "forwarding"
FORWARDED, DESTROYED, VOID = "forwarded", "destroyed", "void"
OVER = (FORWARDED, DESTROYED, VOID)
FILE_NAME = "relay.db"
TAG_BYTES, SECRET_BYTES = 16, 32
_TABLES = """
CREATE TABLE epochs (id BLOB PRIMARY KEY, run BLOB NOT NULL, number INTEGER NOT NULL,
    document BLOB NOT NULL, state TEXT NOT NULL, secret BLOB, delay REAL,
    uploads INTEGER, sent INTEGER NOT NULL, UNIQUE (run, number)) WITHOUT ROWID;
CREATE TABLE uploads (epoch BLOB, digest BLOB, PRIMARY KEY (epoch, digest))
    WITHOUT ROWID;
CREATE TABLE segments (number INTEGER PRIMARY KEY, epoch BLOB NOT NULL,
    is_full INTEGER NOT NULL, uploads INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE messages (epoch BLOB, tag BLOB, sealed BLOB NOT NULL,
    PRIMARY KEY (epoch, tag)) WITHOUT ROWID;
CREATE TABLE tickets (ticket BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE used (epoch BLOB, ticket BLOB, PRIMARY KEY (epoch, ticket))
    WITHOUT ROWID;
"""
OF_AN_EPOCH = ("uploads", "segments", "messages", "used")
FORMAT = 2  # of the tables
LEAST_TOGETHER = 16  # uploads of a segment that is full
_MOST_SEGMENT = 2**26  # bytes, with which it is full nevertheless
_DIGEST_BYTES = 16
_MOST_SHORT = 1024  # bytes of a sealed message that is put into a segment
_PIECE = 2**14  # bytes of a segment that are read at a time


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


class RelayStore(Database):
    """The file of one relay.

    With `full` messages or more, of `LEAST_TOGETHER` uploads or more, a segment is
    full.
    """

    def __init__(
        self, folder: Path, *, is_restored: bool = False, full: int = 4096
    ) -> None:
        self.full = full
        path = folder / FILE_NAME
        super().__init__(path, "relay", _TABLES, format=FORMAT, is_restored=is_restored)
        self._is_settled = False
        # By epoch, so that it need not be read: the segment that is not full.
        self._unfilled: dict[bytes, _Segment] = {}
        if self.is_copy:
            with self.changing() as file:
                for row in self.epochs():
                    if row.state not in OVER:
                        self.forget(file, row, state=VOID)
            self.tidy()

    # epochs

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

    def uploads(self, id: bytes) -> int:
        """How many uploads of an epoch were acknowledged."""
        query = "SELECT count(*) FROM uploads WHERE epoch = ?"
        [(found,)] = self.file.execute(query, (id,))
        return int(found)

    def forget(self, file: sqlite3.Connection, row: EpochRow, *, state: str) -> None:
        """Delete all of an epoch but its name, its manifest and its state."""
        for table in OF_AN_EPOCH:
            file.execute(f"DELETE FROM {table} WHERE epoch = ?", (row.id,))
        file.execute(
            "UPDATE epochs SET state = ?, secret = NULL WHERE id = ?", (state, row.id)
        )
        self.reread(row.id)

    # messages

    def add(
        self,
        file: sqlite3.Connection,
        epoch: bytes,
        sealed: Iterable[bytes],
        *,
        uploads: int,
    ) -> None:
        """Keep messages of one length under random tags, within a transaction.

        `uploads` is how many uploads they came in.
        """
        sealed = [*sealed]
        self._is_settled = False
        if len(sealed[0]) > _MOST_SHORT:
            rows = sorted((epoch, os.urandom(TAG_BYTES), one) for one in sealed)
            file.executemany("INSERT INTO messages VALUES (?, ?, ?)", rows)
            return
        kept = self._segment(file, epoch)
        size, uploads = TAG_BYTES + len(sealed[0]), kept.uploads + uploads
        body = _sorted(kept.body + _tagged(sealed), size)
        is_mixed = uploads >= LEAST_TOGETHER or len(body) >= _MOST_SEGMENT
        is_full = is_mixed and len(body) >= self.full * size
        file.execute(
            "INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?, ?)",
            (kept.number, epoch, is_full, uploads, body),
        )
        self._unfilled[epoch] = (
            _Segment() if is_full else _Segment(kept.number, uploads, body)
        )

    def settle(self) -> bool:
        """Empty the log of writes, unless somebody reads; whether it is empty.

        It has every group of uploads by itself: what came together.
        """
        if not self._is_settled:
            with told(self.path):
                self.file.execute("PRAGMA busy_timeout = 0")  # not wait for a reader
                try:
                    query = "PRAGMA wal_checkpoint(TRUNCATE)"
                    [(is_busy, _, _)] = self.file.execute(query)
                finally:
                    self.file.execute(f"PRAGMA busy_timeout = {1000 * PATIENCE}")
            self._is_settled = not is_busy
        return self._is_settled

    def reread(self, epoch: bytes) -> None:
        """Trust the disk alone, after a transaction that was not committed."""
        self._unfilled.pop(epoch, None)

    def _segment(self, file: sqlite3.Connection, epoch: bytes) -> _Segment:
        """The segment of an epoch that is not full."""
        if epoch not in self._unfilled:
            query = "SELECT number, uploads, body FROM segments "
            query += "WHERE epoch = ? AND NOT is_full"
            row = file.execute(query, (epoch,)).fetchone()
            self._unfilled[epoch] = _Segment(*row) if row else _Segment()
        return self._unfilled[epoch]

    def shuffled(self, epoch: bytes, *, sealed_bytes: int) -> Iterator[bytes]:
        """All messages of an epoch in the order of their tags.

        By a connection of its own: it may run beside the thread that writes, and the
        memory is a piece of each segment.
        """
        file = self.reading()
        try:
            query = "SELECT number FROM segments WHERE epoch = ?"
            numbers = [number for (number,) in file.execute(query, (epoch,))]
            parts = [_pieces(file, n, TAG_BYTES + sealed_bytes) for n in numbers]
            query = "SELECT tag, sealed FROM messages WHERE epoch = ? ORDER BY tag"
            long = (tag + one for tag, one in file.execute(query, (epoch,)))
            for one in heapq.merge(long, *parts):
                yield one[TAG_BYTES:]
        finally:
            file.close()

    # tickets

    def add_tickets(self, digests: Iterable[bytes]) -> None:
        """Let these tickets report, once per epoch each."""
        with self.writing() as file:
            rows = ((one,) for one in digests)
            file.executemany("INSERT OR IGNORE INTO tickets VALUES (?)", rows)


@dataclass(frozen=True)
class _Segment:
    """Messages with their tags, under a random number: nothing says which was first."""

    number: int = field(default_factory=lambda: secrets.randbits(63))
    uploads: int = 0
    body: bytes = field(default=b"", repr=False)


def upload_name(row: EpochRow, digest: bytes) -> bytes:
    """What an upload is known by: nobody without the epoch's secret can compute it."""
    assert row.secret is not None  # of an epoch that was opened and is not over
    return blake2b(digest, key=row.secret, digest_size=_DIGEST_BYTES).digest()


def _tagged(sealed: Sequence[bytes]) -> bytes:
    """The messages one after the other, each behind a random tag."""
    tags = os.urandom(TAG_BYTES * len(sealed))
    places = range(0, len(tags), TAG_BYTES)
    pairs = zip((tags[i : i + TAG_BYTES] for i in places), sealed, strict=True)
    return b"".join(chain.from_iterable(pairs))


def _sorted(body: bytes, size: int) -> bytes:
    """Messages of this size, sorted by their tags."""
    rows = np.frombuffer(body, np.uint8).reshape(-1, size)
    tags = np.ascontiguousarray(rows[:, :TAG_BYTES]).view(">u8")
    return rows[np.lexsort((tags[:, 1], tags[:, 0]))].tobytes()


def _pieces(file: sqlite3.Connection, number: int, size: int) -> Iterator[bytes]:
    """The messages of a segment with their tags, a piece of it at a time."""
    step = max(1, _PIECE // size) * size
    with file.blobopen("segments", "body", number, readonly=True) as blob:
        while piece := blob.read(step):
            for place in range(0, len(piece), size):
                yield piece[place : place + size]
