"""A service's file: nothing half kept, nothing left over, and copies that are seen."""

import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from tacit.errors import BadRun, Refused
from tacit.service.database import Database
from tacit.system_errors import DiskError

TABLES = "CREATE TABLE said (word BLOB PRIMARY KEY) WITHOUT ROWID;"


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def opened(tmp_path):
    made = []

    def open_(name: str = "one.db", **settings) -> Database:
        path = tmp_path / name
        made.append(Database(path, "role", TABLES, **settings))
        return made[-1]

    yield open_
    for one in made:
        one.close()


def say(database: Database, word: bytes, *, counts: bool = True) -> None:
    with database.changing() if counts else database.writing() as file:
        file.execute("INSERT INTO said VALUES (?)", (word,))


def said(database: Database) -> list[bytes]:
    return [one for (one,) in database.file.execute("SELECT word FROM said")]


def copied(database: Database, path: Path) -> Path:
    """A backup as SQLite makes it, of a service that runs."""
    with sqlite3.connect(path) as file:
        database.file.backup(file)
    file.close()
    return path


# --- What is kept ---------------------------------------------------------------------


def test_what_was_said_is_there_after_a_restart(opened):
    first = opened()
    say(first, b"one")
    first.close()
    second = opened()
    assert said(second) == [b"one"]
    assert (second.starts, second.is_copy) == (2, False)


def test_the_file_is_its_owners_alone(opened):
    assert stat.S_IMODE(opened().path.stat().st_mode) == 0o600


def test_an_error_inside_keeps_nothing(opened):
    database = opened()

    def half() -> None:
        with database.writing() as file:
            file.execute("INSERT INTO said VALUES (?)", (b"half",))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert said(database) == []
    say(database, b"whole")


def test_another_thread_reads_what_is_committed(opened):
    database = opened()
    say(database, b"one")
    reading = database.reading()
    with database.writing() as file:
        file.execute("INSERT INTO said VALUES (?)", (b"two",))
        assert reading.execute("SELECT * FROM said").fetchall() == [(b"one",)]
    reading.close()


@pytest.mark.parametrize("counts", [True, False])
def test_on_a_full_disk_nothing_is_half_kept(opened, counts):
    database = opened()
    [(pages,)] = database.file.execute("PRAGMA page_count")
    database.file.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskError, match="make room on the disk"):
        say(database, b"x" * 100_000, counts=counts)
    assert said(database) == []
    database.file.execute("PRAGMA max_page_count = 100000")
    say(database, b"x" * 100_000, counts=counts)
    database.close()
    assert not opened().is_copy


def test_what_is_deleted_is_in_no_file_after_tidying(opened, tmp_path):
    database, canary = opened(), b"the very words that must go"
    say(database, canary * 300)  # on pages of its own
    say(database, canary)
    assert canary in everything(tmp_path)
    with database.writing() as file:
        file.execute("DELETE FROM said")
    database.tidy()
    assert canary not in everything(tmp_path)


def test_what_a_killed_process_deleted_goes_with_the_next_start(opened, tmp_path):
    database, canary = opened(), b"the very words that must go"
    say(database, canary)
    database.tidy()
    with database.writing() as file:
        file.execute("DELETE FROM said")
    # Killed before it tidied: its files as they are now.
    after = tmp_path / "after"
    after.mkdir()
    for one in tmp_path.glob("one.db*"):
        shutil.copy(one, after / one.name)
    assert canary in everything(after)
    opened("after/one.db")
    assert canary not in everything(after)


def everything(folder: Path) -> bytes:
    return b"".join(one.read_bytes() for one in folder.glob("one.db*"))


def test_the_file_of_another_role_or_format_is_refused(opened, tmp_path):
    opened().close()
    with pytest.raises(BadRun, match="file of a role, and a other is started"):
        Database(tmp_path / "one.db", "other", TABLES)
    with pytest.raises(BadRun, match="has format 1; this program reads 2"):
        Database(tmp_path / "one.db", "role", TABLES, format=2)


def test_a_damaged_file_is_a_sentence(tmp_path):
    (tmp_path / "one.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(DiskError, match="look at the disk"):
        Database(tmp_path / "one.db", "role", TABLES)


# --- Copies ---------------------------------------------------------------------------


def test_a_file_that_was_put_back_is_a_copy(opened, tmp_path):
    database = opened()
    backup = copied(database, tmp_path / "backup.db")
    say(database, b"since")
    database.close()
    shutil.copy(backup, database.path)
    assert opened().is_copy


def test_whoever_says_so_has_a_copy(opened):
    opened().close()
    assert opened(is_restored=True).is_copy


def test_without_its_anchor_a_file_is_a_copy(opened, monkeypatch, tmp_path):
    opened().close()
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "another machine"))
    assert opened().is_copy


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"current": "a"}', b"\xff"])
def test_with_a_damaged_anchor_a_file_is_a_copy(opened, content):
    database = opened()
    database._anchor_file.path.write_bytes(content)
    database.close()
    assert opened().is_copy


def test_what_a_copy_makes_void_is_void_before_the_anchor_takes_it(opened, monkeypatch):
    """Killed after the copy was seen and before anything was void, it is seen again."""
    say(opened(), b"open")
    seen = []

    def void(self, file):
        seen.append(said(self))
        file.execute("DELETE FROM said")
        if len(seen) == 1:
            raise Killed

    monkeypatch.setattr(Database, "void", void)
    monkeypatch.setenv("TACIT_STATE", f"{opened().path.parent}/another machine")
    with pytest.raises(Killed):
        opened()
    assert opened().is_copy
    assert seen == [[b"open"], [b"open"]]
    last = opened()
    assert (last.is_copy, said(last)) == (False, [])


def test_a_copy_is_seen_again_if_the_anchor_was_not_written(
    opened, monkeypatch, tmp_path
):
    database = opened()
    backup = copied(database, tmp_path / "backup.db")
    say(database, b"since")
    database.close()
    shutil.copy(backup, database.path)

    def killed(self, *marks):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Database, "_write_anchor", killed)
        with pytest.raises(Killed):
            opened()
    assert opened().is_copy


@pytest.mark.parametrize("write", [1, 2])
def test_killed_between_anchor_and_commit_a_file_is_no_copy(opened, monkeypatch, write):
    """Before the commit and after it: the anchor knows both marks."""
    database, real, n = opened(), Database._write_anchor, 0

    def killed(self, *marks):
        nonlocal n
        n += 1
        if n == write:
            if write == 1:  # written, and no further
                real(self, *marks)
            raise Killed
        real(self, *marks)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "_write_anchor", killed)
        with pytest.raises(Killed):
            say(database, b"word")
    database.close()
    after = opened()
    assert not after.is_copy
    assert said(after) == ([] if write == 1 else [b"word"])


def test_a_second_process_with_a_copy_stops_the_first(opened, tmp_path):
    first = opened()
    copied(first, tmp_path / "two.db")
    second = opened("two.db")
    assert not second.is_copy  # nothing has happened since: it is the file itself
    with pytest.raises(Refused, match="another process has used a copy"):
        say(first, b"word")
    say(second, b"word")
    assert said(first) == []


@pytest.mark.parametrize("counts", [True, False])
def test_of_two_processes_on_one_file_the_last_one_writes(opened, counts):
    first, second = opened(), opened()
    with pytest.raises(Refused, match="another process has"):
        say(first, b"first", counts=counts)
    say(second, b"second", counts=counts)
    assert said(first) == [b"second"]
