"""A ledger as it is at one moment: all its rows, and whether they can be relied on."""

from __future__ import annotations

import hmac
import sqlite3
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tacit.errors import BadData, Damaged
from tacit.ledger import rows as rows_of
from tacit.ledger.records import Doubt
from tacit.ledger.rows import WHAT_TO_DO, Row, Rows, Table, authenticated
from tacit.ledger.schema import FORMAT, KIND, mark_of
from tacit.ledger.terms import Terms
from tacit.release import stretches
from tacit.storage import anchor as anchors
from tacit.storage.anchor import Anchor, Mark
from tacit.storage.sqlite_file import SqliteFile
from tacit.text import nth_round


@dataclass(frozen=True)
class Link:
    """Which ledger a file is, how many changes it saw, and its last two heads."""

    id: str
    number: int
    previous: str
    head: str


@dataclass
class Snapshot:
    """All rows that count, read once; changes are made here and in the file at once."""

    format: int
    rows: Rows
    link: Link | None
    anchor: Anchor | None
    doubt: Doubt | None
    is_changed: bool = False

    def put(self, file: sqlite3.Connection, table: Table, *row: object) -> None:
        """Writes a row to file and memory, over the one with its key if any."""
        n = len(table.key)
        table.put(file, row)
        self.rows[table.name][row[:n]] = row[n:]
        self.is_changed = True

    def remove(self, file: sqlite3.Connection, table: Table, key: Row) -> None:
        """Deletes the row with this key from file and memory."""
        table.remove(file, key)
        del self.rows[table.name][key]
        self.is_changed = True

    def mark(self) -> Mark:
        """What the anchor remembers of the file as it stands."""
        assert self.link is not None
        return mark_of(self.rows, self.link.number, self.link.head)

    def following(self) -> Link:
        """The next link of the chain, which has the rows as they are now."""
        link, anchor = self.link, self.anchor
        assert link is not None
        assert anchor is not None
        number = link.number + 1
        head = authenticated(
            anchor.key, self.rows, id=link.id, number=number, previous=link.head
        )
        return Link(link.id, number, link.head, head)


def take(file: SqliteFile) -> Snapshot:
    """Read a file inside a transaction, and hold it against its chain and anchor.

    While the transaction lasts nobody else can commit. So the anchor, which is read
    last, expects this file or is one step ahead of it and expects it still.
    """
    path, format_ = file.path, file.format
    rows = rows_of.read(file.connection, path=path, format=format_)
    _check_references(rows, path)  # SQLite checks them for writers only
    if format_ != FORMAT:
        return Snapshot(format_, rows, None, None, Doubt.OLD)
    link = _link(file.connection, path)
    try:
        anchor = anchors.find(KIND, link.id)
    except Damaged:
        return Snapshot(format_, rows, link, None, Doubt.BAD_ANCHOR)
    if anchor is None:
        return Snapshot(format_, rows, link, None, Doubt.NO_ANCHOR)
    doubt = _doubt(rows, link, anchor)
    if doubt is None and anchors.others_at(path, anchor):
        doubt = Doubt.DISPLACED  # sound by itself, but not the one that was kept here
    return Snapshot(format_, rows, link, anchor, doubt)


def _link(file: sqlite3.Connection, path: Path) -> Link:
    found = file.execute("SELECT id, number, previous, head FROM chain").fetchall()
    kinds = (str, int, str, str)
    if len(found) != 1 or not all(map(isinstance, found[0], kinds)):
        raise BadData(path, None, f"its chain cannot be read; {WHAT_TO_DO}")
    return Link(*found[0])


def _doubt(rows: Rows, link: Link, anchor: Anchor) -> Doubt | None:
    head = authenticated(
        anchor.key, rows, id=link.id, number=link.number, previous=link.previous
    )
    if not hmac.compare_digest(head.encode(), link.head.encode()):
        return Doubt.ALTERED  # only the anchor's key makes a head that fits the rows
    return None if anchor.knows(link.number, link.head) else Doubt.OTHER_COPY


def _check_references(rows: Rows, path: Path) -> None:
    """Refuse answers to no run and entries of no answer."""
    for run, round_ in rows["answers"]:
        if (run,) not in rows["runs"]:
            said = f"{nth_round(round_)} of a run that was never joined; {WHAT_TO_DO}"
            raise BadData(path, None, said)
    for run, round_, what in rows["entries"]:
        if (run, round_) not in rows["answers"]:
            said = f"'{what}' of a round that was never answered; {WHAT_TO_DO}"
            raise BadData(path, None, said)


def dearest_rounds(
    terms: Terms, *, most: int | None = None, begun: int | None = None
) -> list[int]:
    """Rounds that cost as much as any that a client may take part in, or more.

    `most` is how often it took part at the most, and `begun` how many rounds of the run
    have begun; without them, all that was agreed.

    >>> from tacit.release import CELLS, Cell
    >>> from tacit.release import Release
    >>> nothing = dict.fromkeys(CELLS, Cell.none("bare_reports"))
    >>> terms = Terms((Release("votes", "server", "", nothing),), 9, most=3)
    >>> dearest_rounds(terms), dearest_rounds(terms, most=2, begun=5)
    ([0, 1, 2], [0, 1])
    """
    most = terms.most if most is None else min(most, terms.most)
    begun = terms.rounds if begun is None else begun
    parts = stretches(terms.rounds, (one.rounds for one in terms.releases))
    # Of every stretch, as if all were spent on it.
    each = (part[: max(0, min(most, begun - part.start))] for part in parts)
    return [*chain.from_iterable(each)]
