"""The tables of a client's ledger file, and the settings that make a commit last.

runs      what was agreed, with the private state of this client
answers   one row per round that was answered: to which question, with which bytes, and
          under how much noise where the method chose it
entries   one row per release, keyed (run, round, release)
caps      what the owner allows
refusals  how often the client said no, and why; the only rows outside the chain
chain     one row: which ledger this is, how many changes it has seen, and the last two
          heads of its chain (`rows.authenticated`)

A rollback journal with `synchronous = EXTRA`: a commit that returned survives a killed
process and a power cut. `secure_delete`: what is forgotten is overwritten with zeros.

Files of the formats 1 and 2 had no chain, and the key of a run's noise in `runs`. They
are read; to be written they have to be accepted (`decisions`), which erases the keys.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tacit.errors import BadData, Refused
from tacit.ledger import anchor as anchors
from tacit.ledger.anchor import Anchor, Mark
from tacit.ledger.rows import TABLES, Rows, authenticated

FORMAT = 3  # raise it when a table or the chain changes
OLDER = (1, 2)  # without a chain; in the first, answers had no multiplier
APPLICATION = 0x54434C47  # "TCLG", in the file's header
PATIENCE = 60.0  # seconds to wait for another process on the same device
NO_FILE = (
    "no such file, and none was made. A client makes its ledger when it joins; `tacit "
    "client show` says where"
)
NAMES = ("entries", "answers", "runs", "caps", "refusals", "chain")  # children first

_SETTINGS = """
PRAGMA journal_mode = DELETE;
PRAGMA synchronous = EXTRA;
PRAGMA secure_delete = ON;
PRAGMA foreign_keys = ON;
"""
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


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """An open ledger file; a new one is readable by its owner alone."""
    with in_one_sentence(path):
        if create:
            _check_not_lost(path)
            touch(path)
        elif not path.is_file():
            raise BadData(path, None, NO_FILE)
        connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        try:
            format_ = _check(connection, path, create=create)
            connection.executescript(_SETTINGS)
            if not format_:
                make(connection, path, {table.name: {} for table in TABLES})
        except BaseException:
            connection.close()
            raise
        return connection


def connect_empty(path: Path) -> sqlite3.Connection:
    """An open file instead of a ledger that is gone; it has no tables yet."""
    touch(path)
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    connection.executescript(_SETTINGS)
    return connection


def make(connection: sqlite3.Connection, path: Path, rows: Rows) -> None:
    """The tables of a new ledger, unless another process has just made them."""
    connection.execute("BEGIN EXCLUSIVE")
    if format_of(connection):
        connection.execute("ROLLBACK")
        return
    anchor = begin_chain(connection, path, rows)
    connection.execute("COMMIT")
    finish_chain(anchor, path)


def format_of(connection: sqlite3.Connection) -> int:
    """Which format a file has; 0 if it is empty."""
    [(version,)] = connection.execute("PRAGMA user_version")
    return int(version)


def begin_chain(connection: sqlite3.Connection, path: Path, rows: Rows) -> Anchor:
    """Make the tables with these rows and a chain of their own, up to the commit.

    The anchor expects the new file from now on; `finish_chain` comes after the commit.
    """
    for statement in _TABLES:
        connection.execute(statement)
    for table in TABLES:
        for key, rest in rows[table.name].items():
            table.put(connection, (*key, *rest))
    anchor = Anchor.fresh(path)
    head = authenticated(anchor.key, rows, id=anchor.id, number=0, previous="")
    connection.execute("INSERT INTO chain VALUES (?, 0, '', ?)", (anchor.id, head))
    anchor = anchor.at(path, current=None, pending=mark_of(rows, 0, head))
    anchor.save()
    return anchor


def finish_chain(anchor: Anchor, path: Path) -> None:
    """Makes the anchor final: the file is there, and it is the current one."""
    anchor.at(path, current=anchor.pending, pending=None).save()
    anchors.drop_unfinished(path, keep=anchor.id)


def mark_of(rows: Rows, number: int, head: str) -> Mark:
    """What an anchor remembers of a ledger with these rows."""
    runs = {run: (row[1], row[4]) for (run,), row in rows["runs"].items()}
    caps = tuple((*key, *rest) for key, rest in sorted(rows["caps"].items()))
    return Mark(number, head, runs, caps)


@contextlib.contextmanager
def in_one_sentence(path: Path) -> Iterator[None]:
    """Turns whatever SQLite complains of into one sentence of `BadData`."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # of a damaged message, too
        raise BadData(path, None, _sentence(error)) from error


def _sentence(error: Exception) -> str:
    name = getattr(error, "sqlite_errorname", "")
    for beginning, remedy in _REMEDIES.items():
        if name.startswith(beginning):
            return f"{error}; {remedy}"
    return (
        f"is not a client's ledger, or a damaged one: {error}; put the last copy of "
        "it back and run `tacit ledger accept`, or remove the file and run it to begin "
        "anew with all runs closed"
    )


_REMEDIES = {
    "SQLITE_FULL": "nothing was said. Make room and try again",
    "SQLITE_READONLY": "nothing was said. A client must be able to write its ledger",
    "SQLITE_PERM": "nothing was said. A client must be able to write its ledger",
    "SQLITE_CANTOPEN": "nothing was said. Look at the folder and its permissions",
    "SQLITE_IOERR": "nothing was said. Look at the disk and try again",
    "SQLITE_BUSY": "another process holds the ledger. Try again when it has ended",
}


def is_gone(path: Path) -> bool:
    """Whether there is no file, or an empty one."""
    return not path.exists() or not path.stat().st_size


def touch(path: Path) -> None:
    """Make the file if there is none, for its owner alone from its first byte on."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        said = (
            f"cannot be opened: {error.strerror or error}; a client must be able to "
            "write its ledger"
        )
        raise BadData(path, None, said) from error


def _check_not_lost(path: Path) -> None:
    """Refuse to make a ledger where one was: what that one counted is still out there.

    The anchor is looked up first. One that is current belongs to a file that was
    written before, so that another process that makes the file just now is no loss.
    """
    was_here = anchors.at_place(path)
    if was_here is not None and is_gone(path):
        raise Refused(
            f"{path}: a ledger was kept here, and it is gone or empty; put it back, or "
            "decide: `tacit ledger accept` begins anew and counts all that was agreed "
            "in its runs, `tacit ledger forget` begins anew from nothing"
        )


def _check(connection: sqlite3.Connection, path: Path, *, create: bool) -> int:
    """The format of the file, 0 if it is empty; refuses another program's file."""
    [(application,)] = connection.execute("PRAGMA application_id")
    version = format_of(connection)
    [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master")
    if application != APPLICATION and (tables or not create):
        raise BadData(path, None, "is not a client's ledger")
    if tables and version not in (FORMAT, *OLDER):
        raise BadData(path, None, f"has format {version}; this program reads {FORMAT}")
    return version if tables else 0
