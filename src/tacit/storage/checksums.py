"""A checksum of all rows of a file that is kept up to date row by row.

The sum of the keyed digests of all rows, modulo 2**256, and an HMAC of that sum: what
Clarke et al. 2003 call MSet-Add-Hash. A row that is added, changed or deleted adds or
subtracts one digest, whatever else is in the file; the order of rows does not count,
and of a deleted row nothing stays. The whole is computed anew when a file is opened.

SQLite's own triggers do it, which exist while the file is open: no statement can
forget it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Callable, Sequence

MODULUS = 2**256
_LONG, _LONGEST = 2**12, 2**24  # bytes of a value whose digest is remembered
_ADD, _REMOVE = "checksum_add", "checksum_remove"


class Checksums:
    """The sum of the digests of all rows of some tables, while they are written."""

    def __init__(
        self, file: sqlite3.Connection, key: bytes, *, without: Sequence[str] = ()
    ) -> None:
        self.total = 0
        self._file, self._key = file, key
        self._digest = hashlib.blake2b(digest_size=32, key=key)
        self._last = (b"", b"")  # the last long value, and its digest
        self._heads: dict[tuple[type, int], bytes] = {}  # of values, by kind and length
        tables = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
        self._schema = repr(file.execute(tables).fetchall())
        self._columns = _columns(file, without)

    def take_whole(self) -> None:
        """Compute the sum from the rows as they are in the file."""
        self.total = 0
        for table, names in self._columns.items():
            # NOT INDEXED: an index that was tampered with could hide rows.
            query = f"SELECT {', '.join(names)} FROM {table} NOT INDEXED"
            for row in self._file.execute(query):
                self.total += self._row(table, *row)
        self.total %= MODULUS

    def watch(self) -> None:
        """Keep the sum up to date from now on, until the file is closed."""
        self._file.create_function(_ADD, -1, self._counting(1))
        self._file.create_function(_REMOVE, -1, self._counting(-1))
        for table, names in self._columns.items():
            for sql in _triggers(table, names):
                self._file.execute(sql)

    def link(self, *facts: object) -> str:
        """The HMAC of these facts of the file, its tables and the sum of its rows."""
        # A name of its own keeps these bytes from meaning anything elsewhere.
        text = json.dumps(["tacit store", self._schema, *facts, f"{self.total:064x}"])
        return hmac.digest(self._key, text.encode(), "sha256").hex()

    def _counting(self, sign: int) -> Callable[..., None]:
        def count(*row: object) -> None:
            self.total = (self.total + sign * self._row(*row)) % MODULUS

        return count

    def _row(self, *values: object) -> int:
        digest, heads = self._digest.copy(), self._heads
        parts: list[bytes] = []
        for value in values:
            kind = type(value)
            content = value if isinstance(value, bytes) else repr(value).encode()
            length = len(content)
            # Kind and length first: no two rows have the same bytes.
            if (kind, length) not in heads:
                heads[kind, length] = f"{kind.__name__} {length} ".encode()
            parts.append(heads[kind, length])
            if length < _LONG or length > _LONGEST:
                parts.append(content)
            else:
                parts.append(self._digest_of(content))
        digest.update(b"".join(parts))
        return int.from_bytes(digest.digest(), "little")

    def _digest_of(self, content: bytes) -> bytes:
        """The digest of a long value; the last one is remembered.

        A sum that is updated again and again is removed as it was added.
        """
        known, digest = self._last
        if content != known:
            found = self._digest.copy()
            found.update(content)
            digest = found.digest()
            self._last = (content, digest)
        return digest


def _columns(
    file: sqlite3.Connection, without: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    tables = file.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    ).fetchall()
    return {
        table: tuple(
            f'"{row[1]}"' for row in file.execute(f"PRAGMA table_info({table})")
        )
        for (table,) in tables
        if table not in without
    }


def _triggers(table: str, names: Sequence[str]) -> list[str]:
    """The triggers of one table, for this connection alone."""
    old = f"SELECT {_REMOVE}('{table}', {', '.join(f'old.{one}' for one in names)});"
    new = f"SELECT {_ADD}('{table}', {', '.join(f'new.{one}' for one in names)});"
    actions = {"INSERT": new, "UPDATE": old + new, "DELETE": old}
    return [
        f"CREATE TEMP TRIGGER checksum_{action}_{table} AFTER {action} ON main.{table} "
        f"BEGIN {body} END"
        for action, body in actions.items()
    ]
