"""What authenticates a ledger: flips, cuts, copies, and whatever a kill leaves."""

import os
import shutil
import sqlite3
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from ledger.small import gaussian, in_turn
from quick import some_or_all

from tacit.errors import BadData, Refused, TacitError
from tacit.ledger import schema
from tacit.ledger.budget import Cap, spent
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import Doubt
from tacit.ledger.rows import TABLES, authenticated
from tacit.ledger.snapshot import dearest_rounds
from tacit.release import CELLS
from tacit.storage import anchor
from tacit.storage.anchor import Anchor

TERMS = gaussian(5.0, most=30)


@pytest.fixture
def path(tmp_path):
    """A small ledger: one run, two rounds, a cap; in small pages, so that all count."""
    made = tmp_path / "ledger.db"
    with ClientLedger(made) as ledger:
        ledger.join("run", TERMS, state=b"state 0")
        ledger.set_cap(Cap(9.0))
        for round_ in range(2):
            ledger.permits("run", round_, asked=b"broadcast")
            ledger.keep("run", round_, report=b"report", state=b"after")
        ledger._file.execute("PRAGMA page_size = 512")
        ledger._file.execute("VACUUM")
    return made


def told(path):
    """All rows that a figure is made of; None if the ledger is not relied on."""
    try:
        with ClientLedger(path, create=False) as ledger:
            now = ledger._look()  # what every figure and every permission reads
            return None if now.doubt is not None else now.rows
    except TacitError:
        return None


@pytest.fixture
def in_memory(path):
    """The same ledger in a folder in memory, where there is one: it is quicker."""
    if not os.access("/dev/shm", os.W_OK):
        yield path
        return
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(shutil.move(path, Path(folder) / "ledger.db"))


@some_or_all("stride", 29, 1)
def test_no_flipped_bit_changes_a_figure(stride, in_memory):
    """One bit of every byte, or of one in some; another one from byte to byte."""
    path = in_memory
    truth, content = told(path), path.read_bytes()
    refused = 0
    assert truth is not None
    for place in range(0, len(content), stride):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        found = told(path)
        assert found in (None, truth), f"byte {place}"
        refused += found is None
    assert stride * refused > 2000  # the terms alone are more; the rest is free space


def test_no_cut_changes_a_figure(path):
    content = path.read_bytes()
    for length in range(0, len(content), 256):
        path.write_bytes(content[:length])
        assert told(path) is None
    path.write_bytes(b"")
    with pytest.raises(Refused, match="gone or empty"):
        ClientLedger(path)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE runs SET terms = replace(terms, ': 5.0', ': 9.0')",
        "UPDATE runs SET counted = 'all'",
        "UPDATE runs SET state = x'00'",
        "UPDATE answers SET asked = x'00'",
        "UPDATE answers SET round = 5 WHERE round = 1; "
        "UPDATE entries SET round = 5 WHERE round = 1",
        "UPDATE caps SET epsilon = 99.0",
        "DELETE FROM caps",
        "INSERT INTO caps VALUES ('item', 'server', 1.0, 1e-6)",
        "UPDATE entries SET at = ''",
        "DELETE FROM entries WHERE round = 1; DELETE FROM answers WHERE round = 1",
        "UPDATE chain SET number = number - 1",
        "UPDATE chain SET head = previous",
    ],
)
def test_every_row_that_counts_is_covered(path, edit):
    file = sqlite3.connect(path)
    file.executescript(edit)
    file.close()
    with ClientLedger(path) as ledger:
        assert ledger.doubt is Doubt.ALTERED
        assert not ledger.permits("run", 9, asked=b"broadcast")
        assert ledger.pending() == []
        for change in (
            lambda: ledger.set_cap(Cap(1.0)),
            lambda: ledger.join("other", TERMS, state=b""),
            lambda: ledger.delivered("run", 0),
            lambda: ledger.spent(Cap(1.0).cell, delta=1e-6),
        ):
            with pytest.raises(Refused, match="tacit ledger accept"):
                change()


def test_a_report_that_was_edited_is_not_sent(path):
    file = sqlite3.connect(path)
    file.execute("UPDATE answers SET report = 'x'")
    file.commit()
    file.close()
    with ClientLedger(path) as ledger:
        assert ledger.doubt is None  # no figure depends on it
        with pytest.raises(BadData, match="is not as it was kept, and is not sent"):
            ledger.pending()


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE answers SET round = 'x' WHERE round = 1",
        "UPDATE runs SET terms = x'00'",
        "DELETE FROM runs",
        "DELETE FROM chain",
        "DROP TABLE caps",
        "UPDATE answers SET round = round + 7",
    ],
)
def test_rows_that_make_no_sense_are_bad_data(path, edit):
    file = sqlite3.connect(path)
    file.execute("PRAGMA ignore_check_constraints = ON")
    file.execute(edit)
    file.commit()
    file.close()
    with ClientLedger(path) as ledger:
        with pytest.raises(BadData, match="run `tacit ledger accept`"):
            ledger.entries()
        with pytest.raises(BadData, match="run `tacit ledger accept`"):
            ledger.permits("run", 9, asked=b"broadcast")


# --- The file and its anchor ---------------------------------------------------------


class Killed(BaseException):
    """As if the process had ended here."""


def test_what_is_pending_is_final_before_it_leaves(path, monkeypatch):
    """A report whose anchor a kill left open is settled first: no way back then."""
    save, calls = Anchor.save, []

    def dying(self):
        calls.append(self)
        if len(calls) == 4:  # the charge takes two
            raise Killed
        save(self)

    monkeypatch.setattr(Anchor, "save", dying)
    with ClientLedger(path) as ledger:
        ledger.permits("run", 2, asked=b"broadcast")
        shutil.copy(path, path.with_name("charged"))
        with pytest.raises(Killed):
            ledger.keep("run", 2, report=b"two", state=b"s")
    monkeypatch.setattr(Anchor, "save", save)
    with ClientLedger(path) as ledger:
        assert b"two" in [one.report for one in ledger.pending()]
    shutil.copy(path.with_name("charged"), path)
    with ClientLedger(path) as ledger:
        assert ledger.doubt is Doubt.OTHER_COPY


def test_a_slow_process_does_not_overwrite_the_anchor_of_the_next(path, monkeypatch):
    """Between its commit and its settling, another one writes and is killed."""
    settle, save = ClientLedger._settle, Anchor.save

    def overtaken(self, now):
        monkeypatch.setattr(ClientLedger, "_settle", killed)
        with ClientLedger(path) as other, pytest.raises(Killed):
            other.permits("run", 3, asked=b"broadcast")
        monkeypatch.setattr(ClientLedger, "_settle", settle)
        settle(self, now)

    def killed(self, now):
        raise Killed

    assert save is Anchor.save
    with ClientLedger(path) as ledger:
        monkeypatch.setattr(ClientLedger, "_settle", overtaken)
        ledger.permits("run", 2, asked=b"broadcast")
        assert ledger.doubt is None
        assert ledger.answer("run", 3) is not None


def test_every_state_but_the_last_is_refused(path, tmp_path):
    with ClientLedger(path) as ledger:
        for round_ in range(2, 6):
            shutil.copy(path, tmp_path / str(round_))
            ledger.permits("run", round_, asked=b"broadcast")
    shutil.copy(path, tmp_path / "last")
    for round_ in range(2, 6):
        shutil.copy(tmp_path / str(round_), path)
        with ClientLedger(path) as ledger:
            assert ledger.doubt is Doubt.OTHER_COPY
    shutil.copy(tmp_path / "last", path)
    with ClientLedger(path) as ledger:
        assert ledger.doubt is None


def test_the_anchor_is_for_its_owner_alone_and_its_key_is_in_no_ledger(path):
    [own] = (anchor.state_folder() / "ledgers").iterdir()
    assert own.stat().st_mode & 0o777 == 0o600
    [found] = anchor.at_place(schema.KIND, path)
    assert found.key not in path.read_bytes()
    assert found.key.hex().encode() not in path.read_bytes()
    assert found.key.hex() not in repr(found)


def test_heads_depend_on_everything_before():
    rows = {table.name: {} for table in TABLES}
    heads = {
        authenticated(key, rows, id=id_, number=number, previous=previous)
        for key in (b"k", b"l")
        for id_ in ("a", "b")
        for number in (1, 2)
        for previous in ("", "x")
    }
    assert len(heads) == 16


def test_an_unfinished_file_leaves_no_anchor_behind(tmp_path, monkeypatch):
    make = schema.finish_chain

    def killed(*_):
        raise Killed

    monkeypatch.setattr(schema, "finish_chain", killed)
    with pytest.raises(Killed):
        ClientLedger(tmp_path / "x")
    (tmp_path / "x").unlink()  # as if the commit had not been reached
    monkeypatch.setattr(schema, "finish_chain", make)
    with ClientLedger(tmp_path / "x") as ledger:
        assert ledger.doubt is None
    assert len([*(anchor.state_folder() / "ledgers").iterdir()]) == 1


# --- How often at the most -----------------------------------------------------------


def test_any_so_many_rounds_cost_no_more_than_the_dearest():
    terms = in_turn(2, 9)
    assert dearest_rounds(terms, most=1, begun=1) == [0]
    assert dearest_rounds(terms, most=4, begun=9) == [0, 1, 2, 3, 4, 5]
    for begun in range(1, 10):
        rounds = dearest_rounds(terms, most=4, begun=begun)
        most = spent([(terms, rounds)], CELLS[1], delta=1e-6)
        for some in combinations(range(begun), min(4, begun)):
            assert spent([(terms, some)], CELLS[1], delta=1e-6).value <= most.value


def test_rounds_are_those_of_the_terms_and_have_begun():
    terms = in_turn(2, 9)
    assert dearest_rounds(terms) == dearest_rounds(terms, most=99, begun=99)
    assert dearest_rounds(terms) == [*range(9)]
    assert dearest_rounds(terms, begun=3) == [0, 1, 2]
    assert dearest_rounds(terms, begun=0) == dearest_rounds(terms, most=0) == []
    assert dearest_rounds(replace(terms, most=1), most=5) == [0, 2]  # of each stretch
