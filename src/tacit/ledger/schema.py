"""The tables of a client's ledger file.

runs      what was agreed, with the private state of this client
answers   one row per round that was answered: to which question, with which bytes, and
          under how much noise where the method chose it
entries   one row per release, keyed (run, round, release)
caps      what the owner allows
refusals  how often the client said no, and why; the only rows outside the chain
chain     one row: which ledger this is, how many changes it has seen, and the last two
          heads of its chain (`rows.authenticated`)

What makes a commit last is in `tacit.storage.sqlite_file`.

Files of the formats 1 and 2 had no chain, and the key of a run's noise in `runs`. They
are read; to be written they have to be accepted (`decisions`), which erases the keys.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tacit.errors import BadData, Damaged, Refused
from tacit.ledger.rows import TABLES, WHAT_TO_DO, Rows, authenticated
from tacit.storage import anchor as anchors
from tacit.storage.anchor import Anchor, Mark
from tacit.storage.sqlite_file import SqliteFile, is_gone
from tacit.storage.sqlite_file import in_one_sentence as in_any_sentence

KIND = "ledgers"  # of anchors
FORMAT = 3  # raise it when a table or the chain changes
OLDER = (1, 2)  # without a chain; in the first, answers had no multiplier
APPLICATION = 0x54434C47  # "TCLG", in the file's header
NO_FILE = (
    "no such file, and none was made. A client makes its ledger when it joins; `tacit "
    "client show` says where"
)
NAMES = ("entries", "answers", "runs", "caps", "refusals", "chain")  # children first

_TABLES = (
    """
CREATE TABLE runs (
    run TEXT PRIMARY KEY, joined TEXT NOT NULL, terms TEXT NOT NULL,
    state BLOB, -- gone once the run is forgotten or closed
    counted TEXT NOT NULL CHECK (counted IN ('rounds', 'all')),
    assumes TEXT -- what its figures rest on, if its owner vouched for it
)""",
    """
CREATE TABLE answers (
    run TEXT NOT NULL REFERENCES runs, round INTEGER NOT NULL CHECK (round >= 0),
    asked BLOB NOT NULL, report BLOB, said BLOB, sent TEXT, multiplier REAL,
    PRIMARY KEY (run, round)
)""",
    """
CREATE TABLE entries (
    run TEXT NOT NULL, round INTEGER NOT NULL, release TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (run, round, release),
    FOREIGN KEY (run, round) REFERENCES answers
)""",
    """
CREATE TABLE caps (
    unit TEXT, view TEXT, epsilon REAL NOT NULL, delta REAL NOT NULL,
    PRIMARY KEY (unit, view)
)""",
    """
CREATE TABLE refusals (
    run TEXT, reason TEXT, times INTEGER NOT NULL, last TEXT NOT NULL,
    PRIMARY KEY (run, reason)
)""",
    """
CREATE TABLE chain (
    id TEXT NOT NULL, number INTEGER NOT NULL,
    previous TEXT NOT NULL, head TEXT NOT NULL
)""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)


def connect(path: Path, *, create: bool) -> SqliteFile:
    """An open ledger file; a new one is readable by its owner alone."""
    with in_one_sentence(path):
        # First the anchors: another process may make the file just now.
        was_here = bool(anchors.at_place(KIND, path))
        if create and was_here and is_gone(path):
            raise _lost(path)
        if not create and not path.is_file():
            raise BadData(path, None, NO_FILE)
        file = SqliteFile(path)
        try:
            if not _check(file, create=create):
                if was_here:  # another file was put in its place, without a table
                    raise _lost(path)
                make(file, {table.name: {} for table in TABLES})
        except BaseException:
            file.close()
            raise
        return file


def make(file: SqliteFile, rows: Rows) -> None:
    """The tables of a new ledger, unless another process has just made them."""
    with file.transaction("EXCLUSIVE") as connection:
        if file.format:
            return
        anchor = begin_chain(connection, file.path, rows)
    finish_chain(anchor, file.path)


def begin_chain(connection: sqlite3.Connection, path: Path, rows: Rows) -> Anchor:
    """Make the tables with these rows and a chain of their own, up to the commit.

    The anchor expects the new file from now on; `finish_chain` comes after the commit.
    """
    for statement in _TABLES:
        connection.execute(statement)
    for table in TABLES:
        for key, rest in rows[table.name].items():
            table.put(connection, (*key, *rest))
    anchor = Anchor.fresh(KIND, path)
    head = authenticated(anchor.key, rows, id=anchor.id, number=0, previous="")
    connection.execute("INSERT INTO chain VALUES (?, 0, '', ?)", (anchor.id, head))
    anchor = anchor.at(path, current=None, pending=mark_of(rows, 0, head))
    anchor.save()
    return anchor


def finish_chain(anchor: Anchor, path: Path) -> None:
    """Makes the anchor final: the file is there, and it is the current one."""
    anchor.at(path, current=anchor.pending, pending=None).save()
    anchors.drop_unfinished(KIND, path, keep=anchor.id)


def mark_of(rows: Rows, number: int, head: str) -> Mark:
    """What an anchor remembers of a ledger with these rows: terms of runs, and caps."""
    notes: Mapping[str, Any] = {
        "runs": {run: [row[1], row[4]] for (run,), row in rows["runs"].items()},
        "caps": [[*key, *rest] for key, rest in sorted(rows["caps"].items())],
    }
    return Mark(number, head, notes)


@contextlib.contextmanager
def in_one_sentence(path: Path) -> Iterator[None]:
    """Raise what SQLite complains of as `DiskError`, or as `BadData` with a remedy."""
    try:
        with in_any_sentence(path):
            yield
    except Damaged as error:
        said = f"is not a client's ledger, or a damaged one: {error.problem}"
        raise BadData(path, None, f"{said}; {WHAT_TO_DO}") from error


def _lost(path: Path) -> Refused:
    """No ledger is made where one was: what that one counted is still out there."""
    return Refused(
        f"{path}: a ledger was kept here, and it is gone or empty; put it back, or "
        "decide: `tacit ledger accept` begins anew and counts all that was agreed in "
        "its runs, `tacit ledger forget` begins anew from nothing"
    )


def _check(file: SqliteFile, *, create: bool) -> int:
    """The format of the file, 0 if it is empty; refuses another program's file."""
    [(application,)] = file.connection.execute("PRAGMA application_id")
    version, tables = file.format, file.n_tables
    if application != APPLICATION and (tables or not create):
        raise BadData(file.path, None, "is not a client's ledger")
    if tables and version not in (FORMAT, *OLDER):
        said = f"has format {version}; this program reads {FORMAT}"
        raise BadData(file.path, None, said)
    return version if tables else 0
