"""What an aggregator keeps on its disk: one SQLite file, and a file per round's key.

    rounds    one row per round: manifest, state, chosen batches, noise, result
    keys      the public key that was made for a round of a run; the private one is a
              file of its own, for its owner alone, deleted when the round is closed
    seen      ids of counted reports                              (leader)
    totals    the sum of the leader's halves, and how many        (leader)
    batches   ids of batches, how many reports, their digest
    seeds     sealed seeds by report and batch                    (helper)
    tickets   digests of tickets that were handed out             (leader)
    used      which report has used a ticket in a round           (leader)

No row has a time or an address, and rows lie in the order of random ids. SQLite's log
of the last writes does have an order until it is emptied, which happens when a round is
closed; two totals in it differ by a batch of halves, and one half alone is uniform.

In a file that was put back from a backup, every round that is not deleted is void: the
aggregator would draw other noise for a sum that it may have published.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tacit.errors import Refused
from tacit.service.federation.round_keys import RoundKeys
from tacit.service.federation.sealing import SumFields, SumManifest
from tacit.service.manifest import read_document
from tacit.storage.anchor import Anchor
from tacit.storage.store import Store
from tacit.text import nth_round

FILE_NAME = "aggregator.db"
SIGNED = "signed"  # its manifest was signed here, and it is not open yet
OPEN, CLOSING, CLOSED, DELETED, VOID = "open", "closing", "closed", "deleted", "void"
_TABLES = """
CREATE TABLE rounds (id BLOB PRIMARY KEY, run BLOB NOT NULL, number INTEGER NOT NULL,
    document BLOB NOT NULL, state TEXT NOT NULL, chosen BLOB, noise BLOB, result BLOB,
    UNIQUE (run, number)) WITHOUT ROWID;
CREATE TABLE keys (run BLOB, number INTEGER, public BLOB NOT NULL,
    PRIMARY KEY (run, number)) WITHOUT ROWID;
CREATE TABLE seen (round BLOB, report BLOB, PRIMARY KEY (round, report)) WITHOUT ROWID;
CREATE TABLE totals (round BLOB PRIMARY KEY, halves BLOB NOT NULL,
    reports INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE batches (round BLOB, batch BLOB, reports INTEGER NOT NULL,
    digest BLOB NOT NULL, PRIMARY KEY (round, batch)) WITHOUT ROWID;
CREATE TABLE seeds (round BLOB, report BLOB, batch BLOB, sealed BLOB NOT NULL,
    PRIMARY KEY (round, batch, report)) WITHOUT ROWID;
CREATE TABLE tickets (ticket BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE used (round BLOB, ticket BLOB, report BLOB NOT NULL,
    PRIMARY KEY (round, ticket)) WITHOUT ROWID;
"""
_FORMAT = 2  # of the tables; the first had no checksum
_OF_A_ROUND = ("seen", "totals", "batches", "seeds", "used")


@dataclass(frozen=True)
class RoundRow:
    """One row of `rounds`."""

    id: bytes
    run: bytes
    number: int
    document: bytes = field(repr=False)  # of the manifest, without its signatures
    state: str
    chosen: bytes | None = field(repr=False)  # ids of batches, sorted
    noise: bytes | None = field(repr=False)  # the seed
    result: bytes | None = field(repr=False)  # after deletion its digest

    @property
    def manifest(self) -> SumManifest:
        """The manifest of the round."""
        return read_document(self.document, SumFields)


class AggregatorStore(Store):
    """The file and the keys of one aggregator."""

    def __init__(self, folder: Path, role: str, *, is_restored: bool = False) -> None:
        self._keys = RoundKeys(folder / "keys")
        path = folder / FILE_NAME
        super().__init__(path, role, _TABLES, format=_FORMAT, is_restored=is_restored)
        self._clear_keys()

    def void(self, file: sqlite3.Connection, known: Sequence[Anchor]) -> None:
        """In a copy, every round that is not deleted, and every key.

        A key goes without a round too: after the copy was made, it may have been that
        of a round which was published.
        """
        for row in self.rounds():
            if row.state != DELETED:
                self.forget(file, row, state=VOID)
        file.execute("DELETE FROM keys")  # their files go with `_clear_keys`

    # rounds

    def round(self, id: bytes) -> RoundRow | None:
        """The row of a round."""
        found = self.file.execute("SELECT * FROM rounds WHERE id = ?", (id,))
        return next((RoundRow(*row) for row in found), None)

    def round_of(self, run: bytes, number: int) -> RoundRow | None:
        """The row of a round of a run, by its number."""
        query = "SELECT * FROM rounds WHERE run = ? AND number = ?"
        found = self.file.execute(query, (run, number))
        return next((RoundRow(*row) for row in found), None)

    def rounds(self) -> list[RoundRow]:
        """All rounds, by number."""
        query = "SELECT * FROM rounds ORDER BY number"
        return [RoundRow(*row) for row in self.file.execute(query)]

    def forget(self, file: sqlite3.Connection, row: RoundRow, *, state: str) -> None:
        """Delete all of a round but its name, its manifest and a digest of its result.

        The key's file is deleted first: a round whose rows are gone has no key.
        """
        self.delete_key(row.run, row.number)
        for table in _OF_A_ROUND:
            file.execute(f"DELETE FROM {table} WHERE round = ?", (row.id,))
        digest = None if row.result is None else sha256(row.result).digest()
        file.execute(
            "UPDATE rounds SET state = ?, chosen = NULL, noise = NULL, result = ? "
            "WHERE id = ?",
            (state, digest, row.id),
        )

    @staticmethod
    def erase_halves(file: sqlite3.Connection, id: bytes) -> None:
        """Erase the halves of a round; which reports were counted stays."""
        file.execute("UPDATE totals SET halves = x'' WHERE round = ?", (id,))
        file.execute("UPDATE seeds SET sealed = x'' WHERE round = ?", (id,))

    # keys

    def public_key(self, run: bytes, number: int) -> bytes | None:
        """The public key that was made for a round, if one was."""
        query = "SELECT public FROM keys WHERE run = ? AND number = ?"
        found = self.file.execute(query, (run, number)).fetchone()
        return None if found is None else found[0]

    def keep_key(self, run: bytes, number: int, private: bytes, public: bytes) -> None:
        """Keep the key of a round: the file first, then the row that names it."""
        self._keys.keep(public, private)
        with self.writing() as file:
            file.execute("INSERT INTO keys VALUES (?, ?, ?)", (run, number, public))

    def private_key(self, run: bytes, number: int) -> bytes:
        """The private key of a round; refuses if its file is gone."""
        public = self.public_key(run, number)
        found = None if public is None else self._keys.get(public)
        if found is None:
            raise Refused(
                f"the key of {nth_round(number)} is not in {self._keys.folder}: its "
                "reports cannot be opened any more; retire the run and begin another"
            )
        return found

    def has_key(self, run: bytes, number: int) -> bool:
        """Whether the private key of a round is there."""
        public = self.public_key(run, number)
        return public is not None and self._keys.get(public) is not None

    def delete_key(self, run: bytes, number: int) -> None:
        """Delete the private key of a round."""
        public = self.public_key(run, number)
        if public is not None:
            self._keys.delete(public)

    def _clear_keys(self) -> None:
        """Delete keys that no round needs: no row names them, or it is closed."""
        query = "SELECT public FROM keys LEFT JOIN rounds USING (run, number) "
        query += "WHERE state IS NULL OR state IN (?, ?, ?)"
        found = self.file.execute(query, (SIGNED, OPEN, CLOSING))
        self._keys.delete_all_but([public for (public,) in found])
