"""What every store of the package keeps, refuses and survives: one contract for all.

A file never goes back, or on from other rows than were written, without a word: what
cannot be relied on raises one of our own errors, or is void.
"""

import os
import random
import shutil
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path

import pytest
from quick import some_or_all
from storage.stores import SUBJECTS, WORDS, Subject, backup

from tacit.errors import Damaged, Refused, TacitError
from tacit.files import state_folder
from tacit.storage.anchor import Anchor
from tacit.storage.sqlite_file import SqliteFile
from tacit.system_errors import DiskError


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(params=sorted(SUBJECTS))
def subject(request) -> Subject:
    return SUBJECTS[request.param]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Where the store lies; its anchor is beside it."""
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "state"))
    return tmp_path / "own"


@pytest.fixture
def made(subject, folder) -> dict:
    """A closed store with two changes: its rows."""
    with closing(subject.open(folder)) as store:
        for n in range(2):
            subject.change(store, n, WORDS)
        return subject.rows(store)


def snapshot(folder: Path) -> dict[Path, bytes]:
    """All files of a store and its anchor."""
    folders = (folder, folder.parent / "state")
    files = [path for one in folders for path in one.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files}


def put_back(folder: Path, files: dict[Path, bytes]) -> None:
    for path in snapshot(folder).keys() - files.keys():
        path.unlink()
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def refused_or_void(subject: Subject, folder: Path) -> None:
    """The store is not gone on with as it is."""
    if subject.refuses_copies:
        with pytest.raises(Refused):
            subject.outcome(folder, {})
    else:
        assert subject.outcome(folder, {}) == "void"


# --- What is kept ---------------------------------------------------------------------


def test_what_was_changed_is_there_after_a_restart(subject, folder, made):
    assert subject.outcome(folder, made) == "same"
    assert stat.S_IMODE(subject.path(folder).stat().st_mode) == 0o600
    with closing(subject.open(folder)) as store:
        subject.change(store, 2, WORDS)
        after = subject.rows(store)
    assert after != made
    assert subject.outcome(folder, after) == "same"


def test_on_a_full_disk_nothing_is_half_kept_whatever_statement_it_stops(
    subject, folder, made
):
    words, stopped = WORDS * 1000, 0
    with closing(subject.open(folder)) as store:
        file = store.file if hasattr(store, "file") else store._file
        [(pages,)] = file.execute("PRAGMA page_count")
        before = subject.rows(store)
        for most in range(pages, pages + 200):
            file.execute(f"PRAGMA max_page_count = {most}")
            try:
                subject.change(store, 5, words)
                break
            except DiskError as error:
                stopped += "make room" in str(error)
            assert subject.rows(store) == before
        after = subject.rows(store)
        assert after != before
    assert stopped > 3
    assert subject.outcome(folder, after) == "same"


def test_an_error_inside_keeps_nothing_and_is_the_one_that_is_told(
    subject, folder, made
):
    with closing(subject.open(folder)) as store:
        transaction = getattr(store, "changing", None) or store.transaction

        def fail() -> None:
            with transaction():
                if subject.name == "ledger":
                    store.permits("run", 9, asked=b"broadcast")
                else:
                    table = next(name for name, rows in made.items() if rows)
                    store.file.execute(f"DELETE FROM {table}")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
    assert subject.outcome(folder, made) == "same"


@pytest.mark.parametrize(
    ("nth", "is_written"), [(1, False), (1, True), (2, False), (2, True)]
)
def test_killed_at_the_anchor_a_store_is_as_before_or_as_after(
    subject, folder, made, monkeypatch, nth, is_written
):
    save, calls = Anchor.save, []

    def dying(self):
        calls.append(self)
        if len(calls) < nth or is_written:
            save(self)
        if len(calls) == nth:
            raise Killed

    with closing(subject.open(folder)) as store, monkeypatch.context() as patch:
        patch.setattr(Anchor, "save", dying)
        with pytest.raises(Killed):
            subject.change(store, 2, WORDS)
    with closing(subject.open(folder)) as store:
        assert not getattr(store, "is_copy", False)
        rows = subject.rows(store)
        assert (rows == made) == (nth == 1)
        subject.change(store, 3, WORDS)


def test_killed_while_it_is_made_it_is_made_again(subject, folder, monkeypatch):
    save, calls = Anchor.save, []

    def dying(self):
        calls.append(self)
        if len(calls) == 2:  # the file is there, its anchor is not final
            raise Killed
        save(self)

    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "save", dying)
        with pytest.raises(Killed):
            subject.open(folder)
    for path in folder.glob(f"{subject.file}*"):
        path.unlink()  # it never said anything
    subject.open(folder).close()


# --- Copies ---------------------------------------------------------------------------


def test_a_backup_that_is_put_back_is_not_gone_on_with(subject, folder, made):
    before = snapshot(folder)
    with closing(subject.open(folder)) as store:
        subject.change(store, 2, WORDS)
    for path in folder.glob(f"{subject.file}*"):
        path.unlink()
    subject.path(folder).write_bytes(before[subject.path(folder)])
    refused_or_void(subject, folder)


def test_without_its_anchor_a_store_is_not_gone_on_with(
    subject, folder, made, monkeypatch, tmp_path
):
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "another machine"))
    refused_or_void(subject, folder)


def test_one_that_is_gone_is_not_begun_anew(subject, folder, made):
    path = subject.path(folder)
    for _ in range(2):
        for one in folder.glob(f"{subject.file}*"):
            one.unlink()
        with pytest.raises(Refused, match="gone"):
            subject.open(folder)
    path.write_bytes(b"")
    with pytest.raises(Refused, match="gone"):
        subject.open(folder)
    with closing(sqlite3.connect(path)) as file:
        file.execute("VACUUM")  # a database without a table
    with pytest.raises(Refused, match="gone"):
        subject.open(folder)
    if subject.has_restored:
        with closing(subject.open(folder, is_restored=True)) as store:
            subject.change(store, 7, WORDS)
            rows = subject.rows(store)
        assert subject.outcome(folder, rows) == "same"


def test_one_that_moved_is_the_same(subject, folder, made, tmp_path):
    moved = tmp_path / "elsewhere"
    os.replace(folder, moved)
    assert subject.outcome(moved, made) == "same"
    with closing(subject.open(folder)) as store:  # and its place is free
        subject.change(store, 3, WORDS)
    assert subject.outcome(moved, made) == "same"


def test_another_one_does_not_take_its_place(subject, folder, made, tmp_path):
    with closing(subject.open(tmp_path / "other")) as store:
        subject.change(store, 3, WORDS)
    for one in folder.glob(f"{subject.file}*"):
        one.unlink()
    os.replace(subject.path(tmp_path / "other"), subject.path(folder))
    refused_or_void(subject, folder)


def test_restored_it_is_another_one_from_then_on(subject, folder, made):
    if not subject.has_restored:
        pytest.skip("it has no such option")
    before = snapshot(folder)
    with closing(subject.open(folder, is_restored=True)) as store:
        assert store.is_copy
        subject.change(store, 3, WORDS)
        rows = subject.rows(store)
    assert subject.outcome(folder, rows) == "same"
    content = before[subject.path(folder)]
    for one in folder.glob(f"{subject.file}*"):
        one.unlink()
    subject.path(folder).write_bytes(content)
    refused_or_void(subject, folder)


def test_of_two_processes_with_copies_one_goes_on(subject, folder, made, tmp_path):
    with closing(subject.open(folder)) as first:
        (tmp_path / "copy").mkdir()
        backup(first, subject.path(tmp_path / "copy"))
        with closing(subject.open(tmp_path / "copy")) as second:
            subject.change(second, 2, WORDS)
            before = subject.rows(second)
            if subject.name == "ledger":
                assert first.doubt is not None
                assert not first.permits("run", 3, asked=b"broadcast")
            else:
                with pytest.raises(Refused, match="used a copy"):
                    subject.change(first, 3, WORDS)
            assert subject.rows(second) == before


def test_of_two_processes_on_one_file_the_last_writes_or_both_in_turn(
    subject, folder, made
):
    with (
        closing(subject.open(folder)) as first,
        closing(subject.open(folder)) as second,
    ):
        if not subject.is_shared:
            with pytest.raises(Refused, match="another process has opened"):
                subject.change(first, 2, WORDS)
            with pytest.raises(Refused, match="another process"), first.writing():
                pass
        else:
            subject.change(first, 2, WORDS)
        subject.change(second, 3, WORDS)
        rows = subject.rows(second)
        assert subject.rows(first) == rows
    assert subject.outcome(folder, rows) == "same"


# --- Damage ---------------------------------------------------------------------------


@some_or_all("flips", 60, 300)
def test_no_flipped_bit_changes_anything_without_a_word(subject, folder, made, flips):
    """In places that are not empty, so that most of them count."""
    path, before = subject.path(folder), snapshot(folder)
    content, draws = before[path], random.Random(46)
    places = [place for place, byte in enumerate(content) if byte]
    refused = 0
    for place in draws.sample(places, min(flips, len(places))):
        flipped = bytearray(content)
        flipped[place] ^= 1 << draws.randrange(8)
        put_back(folder, {**before, path: bytes(flipped)})
        try:
            refused += subject.outcome(folder, made) == "void"
        except TacitError:
            refused += 1
    assert refused > flips / 3
    put_back(folder, before)
    assert subject.outcome(folder, made) == "same"


@some_or_all("flips", 10, 100)
def test_no_flipped_bit_of_the_anchor_goes_unseen(subject, folder, made, flips):
    before = snapshot(folder)
    [anchor] = state_folder().rglob("*.anchor.json")
    content, draws = before[anchor], random.Random(46)
    for place in draws.sample(range(len(content)), flips):
        flipped = bytearray(content)
        flipped[place] ^= 1 << draws.randrange(8)
        put_back(folder, {**before, anchor: bytes(flipped)})
        with suppress(TacitError):
            subject.outcome(folder, made)


def test_a_row_that_was_written_by_hand_is_refused(subject, folder, made):
    before = snapshot(folder)
    for table, rows in made.items():
        if not rows or table == "reports":
            continue
        with closing(sqlite3.connect(subject.path(folder))) as file, file:
            file.execute(f"DELETE FROM {table}")
        with pytest.raises(TacitError):
            subject.outcome(folder, made)
        put_back(folder, before)


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0"])
def test_what_is_no_database_is_refused(subject, folder, content):
    folder.mkdir()
    subject.path(folder).write_bytes(content)
    with pytest.raises(TacitError):
        subject.open(folder)


def test_another_format_is_refused(subject, folder, made):
    with closing(sqlite3.connect(subject.path(folder))) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(TacitError, match="has format 99"):
        subject.open(folder)


def test_a_rollback_of_sqlites_own_does_not_hide_why(tmp_path):
    def fail(file: SqliteFile) -> None:
        with file.transaction() as inside:
            inside.execute("ROLLBACK")  # as SQLite does by itself on a full disk
            raise ZeroDivisionError

    file = SqliteFile(tmp_path / "one.db")
    with closing(file), pytest.raises(ZeroDivisionError):
        fail(file)


def test_a_damaged_file_is_damaged(tmp_path):
    (tmp_path / "one.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(Damaged):
        SqliteFile(tmp_path / "one.db")


def test_snapshots_are_whole(folder):
    """Of the contract itself: what is put back is what was there."""
    folder.mkdir()
    (folder / "a").write_bytes(b"a")
    before = snapshot(folder)
    (folder / "b").write_bytes(b"b")
    (folder / "a").write_bytes(b"c")
    put_back(folder, before)
    assert snapshot(folder) == before
    shutil.rmtree(folder)


@pytest.mark.skipif(os.name != "posix", reason="other systems have other permissions")
@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_file_that_others_can_write_is_refused(subject, folder, made, mode):
    subject.path(folder).chmod(mode)
    with pytest.raises(Refused, match="chmod 600"):
        subject.open(folder)
    subject.path(folder).chmod(0o640)
    assert subject.outcome(folder, made) == "same"
