"""A service's file: SQLite on the disk before anything is acknowledged.

Every commit is flushed (`synchronous = FULL`), what is deleted is overwritten, and one
thread writes; others may read.

*Restored copies.* A service that is put back from a backup would say a second time, in
other words, what it may have said already. So a random mark changes with every change
that counts (`changing`), in the file and in an anchor outside of it
(`tacit.file_marks`). A file whose mark the anchor does not know is a copy of an
earlier one: `is_copy` is true, and `void` has undone what was open. A copy of the
whole machine cannot be told from inside; whoever puts one back starts the service as
restored.

*Two processes.* The one that opened the file last has it: its start changed the mark,
and the other one writes nothing more.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tacit.errors import BadRun, Refused
from tacit.file_marks import MarkAnchor, Marks
from tacit.files import make_folders
from tacit.system_errors import DiskError, explained

_SETTINGS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
"""
_OWN = """
CREATE TABLE service (role TEXT NOT NULL, anchor TEXT NOT NULL, mark TEXT NOT NULL,
    starts INTEGER NOT NULL);
"""
PATIENCE = 30  # seconds to wait for another process that writes


class Database:
    """One SQLite file with the tables of one role, and an anchor outside of it."""

    def __init__(
        self,
        path: Path,
        role: str,
        tables: str,
        *,
        format: int = 1,
        is_restored: bool = False,
    ) -> None:
        self.path, self.role = path, role
        self._anchor = self._mark = ""
        with explained():
            make_folders(path.parent)
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        with told(path):
            # Closed by whoever made it, in whichever thread: one at a time uses it.
            self._file = sqlite3.connect(
                path, isolation_level=None, timeout=PATIENCE, check_same_thread=False
            )
            self._file.executescript(_SETTINGS)
            self._make(tables, format)
            self.is_copy = self._begin(is_restored=is_restored)

    def close(self) -> None:
        """Close the file; another process may use it from now on."""
        self._file.close()

    @property
    def file(self) -> sqlite3.Connection:
        """The connection of the thread that writes, to read by."""
        return self._file

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All of what happens inside, on the disk when it ends; or nothing."""
        with told(self.path):
            self._file.execute("BEGIN IMMEDIATE")
            try:
                self._check_mark()
                yield self._file
                self._file.execute("COMMIT")
            except BaseException:
                if self._file.in_transaction:  # SQLite ends it itself on a full disk
                    self._file.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """The same for a change that the anchor knows of too.

        The anchor expects the new mark before the file has it, and forgets the old one
        afterwards: killed in between, the file is at one of the two.
        """
        if not self._is_known():
            raise Refused(
                f"another process has used a copy of {self.path}: nothing more is "
                "signed, taken or published here; stop one of the two"
            )
        mark = secrets.token_hex(16)
        self._write_anchor(self._mark, mark)
        with self.writing() as file:
            yield file
            file.execute("UPDATE service SET mark = ?", (mark,))
        self._mark = mark
        self._write_anchor(mark, mark)

    def reading(self) -> sqlite3.Connection:
        """A connection of its own for another thread; it sees what is committed."""
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)

    def tidy(self) -> None:
        """Empty the log of writes, which still has what was deleted."""
        with told(self.path):
            self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @property
    def free_bytes(self) -> int:
        """The room on the disk."""
        return shutil.disk_usage(self.path.parent).free

    @property
    def starts(self) -> int:
        """How often the service was started, with this one."""
        [(found,)] = self._file.execute("SELECT starts FROM service")
        return int(found)

    def _make(self, tables: str, format: int) -> None:
        """The tables of a new file; refuses those of another role or format."""
        [(n_tables,)] = self._file.execute("SELECT count(*) FROM sqlite_master")
        [(found,)] = self._file.execute("PRAGMA user_version")
        if n_tables and found != format:
            raise BadRun(
                f"{self.path} has format {found}; this program reads {format}: use "
                "the version that made it until its rounds are over"
            )
        if not n_tables:
            self._anchor, mark = secrets.token_hex(16), secrets.token_hex(16)
            self._write_anchor(mark, mark)
            row = f"('{self.role}', '{self._anchor}', '{mark}', 0)"
            self._file.executescript(
                f"BEGIN; {_OWN} {tables} INSERT INTO service VALUES {row}; "
                f"PRAGMA user_version = {format}; COMMIT;"
            )

    def _begin(self, *, is_restored: bool) -> bool:
        """Count a start; whether the file is a copy of an earlier one."""
        [(role, self._anchor, self._mark, _)] = self._file.execute(
            "SELECT * FROM service"
        )
        if role != self.role:
            raise BadRun(
                f"{self.path} is the file of a {role}, and a {self.role} is started; "
                "give each role a folder of its own"
            )
        is_copy = is_restored or not self._is_known()
        if is_copy:
            # The file before the anchor: killed in between, it is a copy still.
            mark = secrets.token_hex(16)
            with self.writing() as file:
                self.void(file)
                file.execute("UPDATE service SET mark = ?", (mark,))
            self._mark = mark
            self._write_anchor(mark, mark)
        with self.changing() as file:
            file.execute("UPDATE service SET starts = starts + 1")
        self.tidy()  # a process that was killed may have left what it deleted
        return is_copy

    def void(self, file: sqlite3.Connection) -> None:
        """Undo, in a copy of an earlier file, what may have been said since."""

    def _check_mark(self) -> None:
        """Refuse to write what another process has opened since."""
        found = self._file.execute("SELECT mark FROM service").fetchone()
        if found != (self._mark,):
            raise Refused(
                f"another process has opened {self.path}, so this one writes nothing "
                "more; stop one of the two"
            )

    @property
    def _anchor_file(self) -> MarkAnchor:
        return MarkAnchor("services", self._anchor)

    def _is_known(self) -> bool:
        """Whether the anchor expects the file's mark; not if it is gone or damaged."""
        marks = self._anchor_file.read()
        return marks is not None and marks.knows(self._mark)

    def _write_anchor(self, current: str, following: str) -> None:
        self._anchor_file.write(Marks(current, following))


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """What SQLite complains of, in one sentence."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        is_full = name.startswith("SQLITE_FULL")
        remedy = "make room on the disk" if is_full else "look at the disk"
        said = f"{path}: {error}; nothing of it was kept; {remedy}"
        raise DiskError(None, said) from error
