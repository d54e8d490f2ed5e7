"""The tables of a device's ledger file, and the settings that make a commit last.

runs      what was agreed, with the key and the private state of this device
answers   one row a round that was answered: to which question, with which bytes, and
          under how much noise where the method chose it
entries   one row a release, keyed (run, round, release)
caps      what the owner allows
refusals  how often the device said no, and why

A rollback journal with `synchronous = EXTRA`: a commit that returned survives a killed
process and a power cut. `secure_delete`: what is forgotten is overwritten with zeros.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from tacit.errors import BadData

FORMAT = 2
_OLDER = (1,)  # answers had no multiplier
APPLICATION = 0x54434C47  # "TCLG", in the file's header
PATIENCE = 60.0  # seconds to wait for another process of the same device

_SETTINGS = """
PRAGMA journal_mode = DELETE;
PRAGMA synchronous = EXTRA;
PRAGMA secure_delete = ON;
PRAGMA foreign_keys = ON;
"""
_TABLES = f"""
BEGIN EXCLUSIVE;
CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, joined TEXT NOT NULL, terms TEXT NOT NULL,
    key BLOB, state BLOB, -- gone once the run is forgotten
    CHECK ((key IS NULL) = (state IS NULL))
);
CREATE TABLE IF NOT EXISTS answers (
    run TEXT NOT NULL REFERENCES runs, round INTEGER NOT NULL CHECK (round >= 0),
    asked BLOB NOT NULL, report BLOB, sent TEXT, multiplier REAL,
    PRIMARY KEY (run, round)
);
CREATE TABLE IF NOT EXISTS entries (
    run TEXT NOT NULL, round INTEGER NOT NULL, release TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (run, round, release),
    FOREIGN KEY (run, round) REFERENCES answers
);
CREATE TABLE IF NOT EXISTS caps (
    unit TEXT, view TEXT, epsilon REAL NOT NULL, delta REAL NOT NULL,
    PRIMARY KEY (unit, view)
);
CREATE TABLE IF NOT EXISTS refusals (
    run TEXT, reason TEXT, times INTEGER NOT NULL, last TEXT NOT NULL,
    PRIMARY KEY (run, reason)
);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
COMMIT;
"""


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """An open ledger file; a new one is readable by its owner alone."""
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    elif not path.is_file():
        raise BadData(path, None, "no such file; a device makes its ledger itself")
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        version = _check(connection, path, create=create)
        connection.executescript(_SETTINGS)
        if create and version in _OLDER:  # reading needs none of what is new
            _upgrade(connection)
        connection.executescript(_TABLES if create else "")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise BadData(path, None, f"is not a device's ledger: {error}") from error
    except BadData:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path, *, create: bool) -> int:
    """The format of the file, 0 if it is empty; refuses another program's file."""
    [(application,)] = connection.execute("PRAGMA application_id")
    [(version,)] = connection.execute("PRAGMA user_version")
    [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master")
    if application != APPLICATION and (tables or not create):
        raise BadData(path, None, "is not a device's ledger")
    if tables and version not in (FORMAT, *_OLDER):
        raise BadData(path, None, f"has format {version}; this program reads {FORMAT}")
    return int(version)


def _upgrade(connection: sqlite3.Connection) -> None:
    """From the first format, unless another process has just done it."""
    connection.execute("BEGIN EXCLUSIVE")
    [(version,)] = connection.execute("PRAGMA user_version")
    if version in _OLDER:
        connection.execute("ALTER TABLE answers ADD COLUMN multiplier REAL")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")
