"""The rows of a ledger that count, as they stand in its file and in memory.

All rows are read at once, each table by a scan and never through an index, and what is
authenticated is what was read: nobody asks the file a second time for a figure. A
change is made in memory and in the file, and what is authenticated then is the memory.

Reports are the exception. They may be large, so that a row has a digest of its report,
and whoever sends one reads it alone and holds it against that.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import BadData

Row = tuple[Any, ...]
Rows = dict[str, dict[Row, Row]]  # the rows of each table by their keys
Kinds = tuple[type, ...]

_NONE = type(None)


@dataclass(frozen=True)
class Table:
    """A table: its key, its other columns, and the types that each may have."""

    name: str
    key: Mapping[str, Kinds]
    columns: Mapping[str, Kinds]

    @property
    def all(self) -> dict[str, Kinds]:
        """All columns with their types, those of the key first."""
        return {**self.key, **self.columns}

    def put(self, file: sqlite3.Connection, row: Row) -> None:
        """Writes a row, over the one with its key if there is one."""
        names = ", ".join(self.all)
        marks = ", ".join("?" * len(self.all))
        changed = ", ".join(f"{name} = excluded.{name}" for name in self.columns)
        file.execute(
            f"INSERT INTO {self.name} ({names}) VALUES ({marks}) "
            f"ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {changed}",
            row,
        )

    def remove(self, file: sqlite3.Connection, key: Row) -> None:
        """Deletes the row with this key."""
        wanted = " AND ".join(f"{name} = ?" for name in self.key)
        file.execute(f"DELETE FROM {self.name} WHERE {wanted}", key)


RUNS = Table(
    "runs",
    {"run": (str,)},
    {
        "joined": (str,),
        "terms": (str,),
        "state": (bytes, _NONE),
        "counted": (str,),
        "assumes": (str, _NONE),
    },
)
ANSWERS = Table(
    "answers",
    {"run": (str,), "round": (int,)},
    {
        "asked": (bytes,),
        "said": (bytes, _NONE),
        "sent": (str, _NONE),
        "multiplier": (float, _NONE),
    },
)
ENTRIES = Table(
    "entries",
    {"run": (str,), "round": (int,), "release": (str,)},
    {"at": (str,)},
)
CAPS = Table(
    "caps",
    {"unit": (str,), "view": (str,)},
    {"epsilon": (float,), "delta": (float,)},
)
TABLES = (RUNS, ANSWERS, ENTRIES, CAPS)

# What the columns that older formats did not have are read as.
_OLDER: Mapping[int, Mapping[str, str]] = {
    1: {"counted": "'rounds'", "assumes": "NULL", "said": "NULL", "multiplier": "NULL"},
    2: {"counted": "'rounds'", "assumes": "NULL", "said": "NULL"},
}


def read(file: sqlite3.Connection, *, path: Path, format: int) -> Rows:
    """All rows that count, in the order of the file; refuses what is none of ours."""
    return {one.name: _read(file, one, path=path, format=format) for one in TABLES}


def authenticated(
    key: bytes, rows: Rows, *, id: str, number: int, previous: str
) -> str:
    """The head of a chain: it depends on all rows and on every head before it."""
    content = hashlib.sha256(_canonical(rows)).hexdigest()
    # A name of its own keeps these bytes from meaning anything elsewhere.
    link = json.dumps(["tacit ledger", id, number, previous, content])
    return hmac.new(key, link.encode(), hashlib.sha256).hexdigest()


def digest(content: bytes) -> bytes:
    """The SHA-256 that stands for a report in its row."""
    return hashlib.sha256(content).digest()


def _read(
    file: sqlite3.Connection, table: Table, *, path: Path, format: int
) -> dict[Row, Row]:
    absent = _OLDER.get(format, {})
    names = ", ".join(absent.get(name, name) for name in table.all)
    # NOT INDEXED: an index that was tampered with could hide rows from a query.
    query = f"SELECT {names} FROM {table.name} NOT INDEXED ORDER BY rowid"
    found: dict[Row, Row] = {}
    for row in file.execute(query):
        _check_row(table, row, path)
        key, rest = row[: len(table.key)], row[len(table.key) :]
        if key in found:
            raise BadData(path, None, f"{table.name} has two rows {key}; {WHAT_TO_DO}")
        found[key] = rest
    return found


def _check_row(table: Table, row: Row, path: Path) -> None:
    for (name, kinds), value in zip(table.all.items(), row, strict=True):
        if not isinstance(value, kinds):
            said = f"'{name}' of a row of {table.name} is {value!r:.40}; {WHAT_TO_DO}"
            raise BadData(path, None, said)


WHAT_TO_DO = (
    "the ledger is damaged: put the last copy of it back and run `tacit ledger "
    "accept`, or remove the file and run it to begin anew with all runs closed"
)


def _canonical(rows: Rows) -> bytes:
    """One text for one content, whatever the order of the rows in the file."""
    tables = [
        [name, sorted([*key, *rest] for key, rest in _plain(mine).items())]
        for name, mine in sorted(rows.items())
    ]
    return json.dumps(tables, separators=(",", ":")).encode()


def _plain(rows: Mapping[Row, Row]) -> dict[Row, Row]:
    """The rows with a digest instead of each blob."""
    return {key: tuple(_value(one) for one in rest) for key, rest in rows.items()}


def _value(value: object) -> object:
    return ["blob", digest(value).hex()] if isinstance(value, bytes) else value
