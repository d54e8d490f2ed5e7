"""A store: what it erases, whom it lets read and write, and when it is void.

What holds for every store of the package is in `test_store_contract.py`.
"""

import os
import shutil
from pathlib import Path

import pytest

from tacit.errors import BadRun, Refused
from tacit.storage.store import Store, writing_beside

TABLES = "CREATE TABLE said (word BLOB PRIMARY KEY) WITHOUT ROWID;"


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def opened(tmp_path):
    made = []

    def open_(name: str = "one.db", **settings) -> Store:
        path = tmp_path / name
        made.append(Store(path, "role", TABLES, format=1, **settings))
        return made[-1]

    yield open_
    for one in made:
        one.close()


def say(database: Store, word: bytes, *, counts: bool = True) -> None:
    with database.changing() if counts else database.writing() as file:
        file.execute("INSERT INTO said VALUES (?)", (word,))


def said(database: Store) -> list[bytes]:
    return [one for (one,) in database.file.execute("SELECT word FROM said")]


# --- What is kept ---------------------------------------------------------------------


def test_what_was_said_is_there_after_a_restart(opened):
    first = opened()
    say(first, b"one")
    first.close()
    second = opened()
    assert said(second) == [b"one"]
    assert (second.starts, second.is_copy) == (2, False)


def test_another_thread_reads_what_is_committed(opened):
    database = opened()
    say(database, b"one")
    reading = database.reading()
    with database.writing() as file:
        file.execute("INSERT INTO said VALUES (?)", (b"two",))
        assert reading.execute("SELECT * FROM said").fetchall() == [(b"one",)]
    reading.close()


def test_pages_that_a_statement_sets_aside_are_in_memory(opened):
    """The triggers of the checksum make SQLite keep pages until a statement ends.

    Its file for them would have halves in the order in which they were written.
    """
    assert opened().file.execute("PRAGMA temp_store").fetchone() == (2,)  # MEMORY


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


# --- Copies ---------------------------------------------------------------------------


def test_what_a_copy_makes_void_is_void_before_the_anchor_takes_it(opened, monkeypatch):
    """Killed after the copy was seen and before anything was void, it is seen again."""
    say(opened(), b"open")
    seen = []

    def void(self, file, known):
        seen.append(said(self))
        file.execute("DELETE FROM said")
        if len(seen) == 1:
            raise Killed

    monkeypatch.setattr(Store, "void", void)
    monkeypatch.setenv("TACIT_STATE", f"{opened().path.parent}/another machine")
    with pytest.raises(Killed):
        opened()
    assert opened().is_copy
    assert seen == [[b"open"], [b"open"]]
    last = opened()
    assert (last.is_copy, said(last)) == (False, [])


def test_the_file_of_another_role_is_refused(opened, tmp_path):
    opened().close()
    with pytest.raises(BadRun, match="file of a role, and a other is started"):
        Store(tmp_path / "one.db", "other", TABLES, format=1)


# --- Beside a running service ---------------------------------------------------------


def test_beside_it_another_process_writes_and_the_service_goes_on(opened, tmp_path):
    database = opened()
    say(database, b"one")
    with writing_beside(database.path) as file:
        file.execute("INSERT INTO said VALUES (?)", (b"beside",))
    say(database, b"two")
    database.close()
    assert said(opened()) == [b"beside", b"one", b"two"]


def test_beside_it_nothing_is_written_without_its_anchor(opened, tmp_path, monkeypatch):
    database = opened()
    state = Path(os.environ["TACIT_STATE"])
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "elsewhere"))
    refused = pytest.raises(Refused, match=r"with its \$TACIT_STATE")
    with refused, writing_beside(database.path):
        pass
    with writing_beside(database.path, state=state) as file:
        file.execute("INSERT INTO said VALUES (?)", (b"beside",))
