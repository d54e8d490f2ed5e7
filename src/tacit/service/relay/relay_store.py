"""What a relay keeps on its disk: one SQLite file, without a time or an address.

    epochs    one row per epoch: manifest, state, secret, how much was forwarded
    uploads   digests of uploads that were acknowledged
    fresh     sealed messages under a random tag
    segments  the same, thousands together, sorted by tag
    tickets   digests of tickets that were handed out
    used      which upload has used a ticket in an epoch

A tag is 16 bytes of the operating system's randomness, drawn when a message comes in.
Messages lie in the order of their tags, and that is the order in which they are
forwarded: a shuffle of the whole epoch. Neither which messages came together nor who
came first is on the disk. When `fresh` has grown, its messages become one segment under
a random number: rows at random places of a large table would be written many times
over.

In a file that was put back from a backup every epoch that is not over is void: what was
acknowledged since is not in it.
"""

from __future__ import annotations

import heapq
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tacit.service.database import Database

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
CREATE TABLE fresh (epoch BLOB, tag BLOB, sealed BLOB NOT NULL,
    PRIMARY KEY (epoch, tag)) WITHOUT ROWID;
CREATE TABLE segments (number INTEGER PRIMARY KEY, epoch BLOB NOT NULL,
    body BLOB NOT NULL);
CREATE TABLE tickets (ticket BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE used (epoch BLOB, ticket BLOB, upload BLOB NOT NULL,
    PRIMARY KEY (epoch, ticket)) WITHOUT ROWID;
"""
_OF_AN_EPOCH = ("uploads", "fresh", "segments", "used")
_MOST_SMALL = 1024  # bytes of a sealed message that is worth a segment
_PIECE = 2**16  # bytes of a segment that are read at a time


@dataclass(frozen=True)
class EpochRow:
    """One row of `epochs`."""

    id: bytes
    run: bytes
    number: int
    document: bytes = field(repr=False)  # of the manifest, without its signatures
    state: str
    secret: bytes | None = field(repr=False)  # of the ids of batches
    delay: float | None  # seconds after the window, drawn at random
    uploads: int | None  # once it is forwarded
    sent: int  # batches that the collector has


class RelayStore(Database):
    """The file of one relay. `most_fresh` is how many messages become a segment."""

    def __init__(
        self, folder: Path, *, is_restored: bool = False, most_fresh: int = 8192
    ) -> None:
        self.most_fresh = most_fresh
        path = folder / FILE_NAME
        super().__init__(path, "relay", _TABLES, is_restored=is_restored)
        self._fresh: dict[bytes, int] = {}
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
        for table in _OF_AN_EPOCH:
            file.execute(f"DELETE FROM {table} WHERE epoch = ?", (row.id,))
        file.execute(
            "UPDATE epochs SET state = ?, secret = NULL WHERE id = ?", (state, row.id)
        )
        self._fresh.pop(row.id, None)

    # messages

    def add(
        self, file: sqlite3.Connection, epoch: bytes, sealed: Iterable[bytes]
    ) -> None:
        """Keep messages under random tags, within a transaction."""
        messages = [*sealed]
        random = os.urandom(TAG_BYTES * len(messages))
        tags = (random[i : i + TAG_BYTES] for i in range(0, len(random), TAG_BYTES))
        rows = sorted(zip(tags, messages, strict=True))
        file.executemany(
            "INSERT INTO fresh VALUES (?, ?, ?)",
            ((epoch, tag, one) for tag, one in rows),
        )
        if len(messages[0]) > _MOST_SMALL:
            return
        if epoch not in self._fresh:
            query = "SELECT count(*) FROM fresh WHERE epoch = ?"
            [(self._fresh[epoch],)] = file.execute(query, (epoch,))
        else:
            self._fresh[epoch] += len(messages)
        if self._fresh[epoch] >= self.most_fresh:
            self._put_together(file, epoch)

    def _put_together(self, file: sqlite3.Connection, epoch: bytes) -> None:
        query = "SELECT tag, sealed FROM fresh WHERE epoch = ? ORDER BY tag"
        body = b"".join(tag + one for tag, one in file.execute(query, (epoch,)))
        number = int.from_bytes(os.urandom(8), "little") >> 1
        file.execute("INSERT INTO segments VALUES (?, ?, ?)", (number, epoch, body))
        file.execute("DELETE FROM fresh WHERE epoch = ?", (epoch,))
        self._fresh[epoch] = 0

    def lose_count(self, epoch: bytes) -> None:
        """Count again, after a transaction that was not committed."""
        self._fresh.pop(epoch, None)

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
            query = "SELECT tag, sealed FROM fresh WHERE epoch = ? ORDER BY tag"
            fresh = (tag + one for tag, one in file.execute(query, (epoch,)))
            for one in heapq.merge(fresh, *parts):
                yield one[TAG_BYTES:]
        finally:
            file.close()

    # tickets

    def add_tickets(self, digests: Iterable[bytes]) -> None:
        """Let these tickets report, once per epoch each."""
        with self.writing() as file:
            rows = ((one,) for one in digests)
            file.executemany("INSERT OR IGNORE INTO tickets VALUES (?)", rows)


def _pieces(file: sqlite3.Connection, number: int, size: int) -> Iterator[bytes]:
    """The messages of a segment with their tags, a piece of it at a time."""
    step = max(1, _PIECE // size) * size
    with file.blobopen("segments", "body", number, readonly=True) as blob:
        while piece := blob.read(step):
            for place in range(0, len(piece), size):
                yield piece[place : place + size]
