"""One SQLite file of a program: settings, transactions, and disk errors as sentences.

A commit that returned survives a killed process and a power cut (`synchronous =
EXTRA`), and what is deleted is overwritten (`secure_delete`). The file is readable by
its owner alone from its first byte on. SQLite's temporary pages stay in memory: a file
of its own for them would be erased by nobody.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path

from tacit.errors import Damaged, Refused
from tacit.files import make_folders
from tacit.system_errors import DiskError, explained

PATIENCE = 60  # seconds to wait for another process that writes
_SETTINGS = """
PRAGMA journal_mode = {journal};
PRAGMA synchronous = EXTRA;
PRAGMA secure_delete = ON;
PRAGMA foreign_keys = ON;
PRAGMA temp_store = MEMORY;
"""
_REMEDIES = {
    "SQLITE_FULL": "nothing of it was kept; make room on the disk and try again",
    "SQLITE_READONLY": "nothing of it was kept; it must be writable",
    "SQLITE_PERM": "nothing of it was kept; it must be writable",
    "SQLITE_CANTOPEN": "nothing of it was kept; look at the folder and its permissions",
    "SQLITE_IOERR": "nothing of it was kept; look at the disk and try again",
    "SQLITE_BUSY": "another process holds it; try again when that one has ended",
    "SQLITE_LOCKED": "another process holds it; try again when that one has ended",
}


class SqliteFile:
    """An open file, and transactions that are on the disk as a whole or not at all.

    `has_log`: others may read while one writes, from a log beside the file. Without
    it, the file alone has everything between two transactions.
    """

    def __init__(self, path: Path, *, has_log: bool = False) -> None:
        self.path = path
        with explained():
            make_folders(path.parent)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            _refuse_writable_by_others(path)
        with in_one_sentence(path):
            # One thread at a time uses it, but the last reference may go in another.
            self.connection = sqlite3.connect(
                path, isolation_level=None, timeout=PATIENCE, check_same_thread=False
            )
            self._end = weakref.finalize(self, self.connection.close)
            try:
                journal = "WAL" if has_log else "DELETE"
                self.connection.executescript(_SETTINGS.format(journal=journal))
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the file; it is closed with the last reference too."""
        self._end()

    @property
    def format(self) -> int:
        """The format of the tables."""
        [(version,)] = self.connection.execute("PRAGMA user_version")
        return int(version)

    @property
    def n_tables(self) -> int:
        """How many tables and indices there are; none in a new file."""
        [(count,)] = self.connection.execute("SELECT count(*) FROM sqlite_master")
        return int(count)

    @property
    def free_bytes(self) -> int:
        """The room on the disk."""
        return shutil.disk_usage(self.path.parent).free

    @contextlib.contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """All of what happens inside, on the disk when it ends; or nothing."""
        with in_one_sentence(self.path):
            self.connection.execute(f"BEGIN {kind}")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # SQLite ends it on a full disk
                    with contextlib.suppress(sqlite3.Error):  # the first error is told
                        self.connection.execute("ROLLBACK")
                raise

    def reading(self) -> sqlite3.Connection:
        """A connection of its own for another thread; it sees what is committed."""
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)

    def tidy(self) -> None:
        """Empty the log of writes, which still has what was deleted."""
        with in_one_sentence(self.path):
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _refuse_writable_by_others(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Refused(
            f"{path} has mode {mode:o}, so others may have written into it; if they "
            f"have not, run: chmod 600 {path.name}"
        )


def is_gone(path: Path) -> bool:
    """Whether there is no file, or an empty one."""
    return not path.exists() or not path.stat().st_size


@contextlib.contextmanager
def in_one_sentence(path: Path) -> Iterator[None]:
    """Raise what SQLite complains of as `DiskError`, or as `Damaged`."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # of a damaged message, too
        name = getattr(error, "sqlite_errorname", "") or ""
        for beginning, remedy in _REMEDIES.items():
            if name.startswith(beginning):
                raise DiskError(None, f"{path}: {error}; {remedy}") from error
        raise Damaged(path, str(error)) from error
