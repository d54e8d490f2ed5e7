"""What its owner decides of a ledger in doubt; files of older formats; erasing."""

import shutil
import sqlite3

import pytest
from ledger.first_format import first_text, make_file
from ledger.small import gaussian, in_turn, training

from tacit.codes import Code
from tacit.errors import BadData, Refused
from tacit.ledger.budget import Cap, spent
from tacit.ledger.decisions import accept, erase
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import Doubt, Refusal
from tacit.ledger.schema import FORMAT, KIND
from tacit.release import Unit, View
from tacit.runtime.ledger import statements
from tacit.storage import anchor

SERVER = Unit.USER, View.SERVER
AT = "2026-05-04T03:02:01+00:00"
KEY = bytes(range(16))


@pytest.fixture
def path(tmp_path):
    """A ledger of three rounds and a cap."""
    made = tmp_path / "ledger.db"
    with ClientLedger(made) as ledger:
        ledger.join("run", gaussian(5.0, most=30), state=b"state 0")
        ledger.set_cap(Cap(50.0))
        for round_ in range(3):
            say(ledger, round_)
    return made


def say(ledger, round_, run="run"):
    if not ledger.permits(run, round_, asked=b"broadcast"):
        return None
    return ledger.keep(run, round_, report=b"report", state=b"after")


def lose_anchor(path):
    with ClientLedger(path) as ledger:
        anchor.drop(KIND, ledger.link.id)


def figure(ledger):
    [line] = [s for s in statements(ledger) if (s.unit, s.view) == SERVER]
    return line


# --- Accepting -----------------------------------------------------------------------


def test_an_older_copy_is_counted_as_all_that_was_agreed(path, tmp_path):
    """It had three rounds, the lost one nine and a run that the copy never saw."""
    shutil.copy(path, tmp_path / "backup")
    with ClientLedger(path) as ledger:
        for round_ in range(3, 9):
            say(ledger, round_)
        ledger.join("later", training(0.5, 4.0, 9), state=b"")
        say(ledger, 0, run="later")
        ledger.set_cap(Cap(40.0))
    shutil.copy(tmp_path / "backup", path)
    found = accept(path)
    assert (found.doubt, found.closed) == (Doubt.OTHER_COPY, ("run", "later"))
    terms = gaussian(5.0, most=30), training(0.5, 4.0, 9)
    with ClientLedger(path) as ledger:
        assert ledger.doubt is None
        everything = [(one, [*range(one.most)]) for one in terms]
        expected = spent(everything, SERVER, delta=1e-6).value
        assert ledger.spent(SERVER, delta=1e-6).value == pytest.approx(expected)
        trusted = str(Code("trusted_aggregator"))  # the anchor knew all
        assert figure(ledger).assumes == trusted
        assert ledger.caps() == [Cap(40.0)]
        assert say(ledger, 9) is None
        assert [why for _, why, _, _ in ledger.refusals()] == [Refusal.LEFT]
        assert len(ledger.entries()) == 3
        ledger.join("new", gaussian(50.0), state=b"")
        assert say(ledger, 0, run="new") == b"report"


def test_terms_that_were_edited_are_taken_from_the_anchor(path):
    """Else whoever accepts would be told a figure of the editor's."""
    file = sqlite3.connect(path)
    file.execute("UPDATE runs SET terms = replace(terms, ': 5.0', ': 9.0')")
    file.execute("DELETE FROM caps")
    file.commit()
    file.close()
    assert accept(path).doubt == Doubt.ALTERED
    with ClientLedger(path) as ledger:
        assert ledger.runs() == {"run": gaussian(5.0, most=30)}
        assert ledger.caps() == [Cap(50.0)]


def test_without_an_anchor_the_figures_rest_on_the_owners_word(path):
    lose_anchor(path)
    assert accept(path).doubt == Doubt.NO_ANCHOR
    with ClientLedger(path) as ledger:
        assert [len(rounds) for _, rounds in ledger.taken()] == [30]
        assert "owner's word of" in figure(ledger).assumes
        assert (
            "that the file is whole and no other run was joined"
            in figure(ledger).assumes
        )


def test_as_written_is_the_owners_word_that_nothing_else_was_said(path):
    with ClientLedger(path) as ledger:
        before = figure(ledger)
    lose_anchor(path)
    accept(path, as_written=True)
    with ClientLedger(path) as ledger:
        assert figure(ledger).epsilon == before.epsilon
        assert (
            "that the file is whole and nothing else was said" in figure(ledger).assumes
        )
        assert say(ledger, 5) is None  # closed all the same
        anchor.drop(KIND, ledger.link.id)
    accept(path)  # a second time: the word is not forgotten
    with ClientLedger(path) as ledger:
        assert "owner's word" in figure(ledger).assumes


def test_as_written_is_refused_where_the_anchor_shows_otherwise(path, tmp_path):
    shutil.copy(path, tmp_path / "backup")
    with ClientLedger(path) as ledger:
        say(ledger, 7)
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(Refused, match="this machine knows that more was written"):
        accept(path, as_written=True)
    with ClientLedger(path) as ledger:
        assert ledger.doubt is Doubt.OTHER_COPY


def test_a_ledger_that_is_gone_is_counted_from_its_anchor(path):
    for empty in (False, True):
        path.unlink()
        if empty:
            path.touch()
        with pytest.raises(Refused, match="a ledger was kept here, and it is gone"):
            ClientLedger(path)
        accept(path)
        with ClientLedger(path) as ledger:
            assert [len(rounds) for _, rounds in ledger.taken()] == [30]
            assert ledger.caps() == [Cap(50.0)]
            assert figure(ledger).standing == "PROVEN"


def test_there_is_nothing_to_accept(path, tmp_path):
    with pytest.raises(Refused, match="nothing to decide"):
        accept(path)
    with pytest.raises(BadData, match="no such file"):
        accept(tmp_path / "none")


def test_a_copy_elsewhere_has_no_anchor_once_the_other_was_accepted(path, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    shutil.copy(path, one)
    with ClientLedger(path) as ledger:
        say(ledger, 7)
    shutil.copy(path, other)
    accept(one)
    for copy in (path, other):
        with ClientLedger(copy) as ledger:
            assert ledger.doubt is Doubt.NO_ANCHOR


def test_a_run_whose_rounds_are_not_alike_counts_the_dearest(tmp_path):
    path = tmp_path / "x"
    with ClientLedger(path) as ledger:
        ledger.join("run", in_turn(2, 9), state=b"")
    lose_anchor(path)
    accept(path)
    with ClientLedger(path) as ledger:
        assert [rounds for _, rounds in ledger.taken()] == [[*range(9)]]


# --- Older formats -------------------------------------------------------------------


def old_file(path, version=1):
    """Rounds 1 and 2 of one run and a cap, all written before there was a chain."""
    terms = in_turn(2, 9)
    file = make_file(path)
    row = ("run", AT, first_text(terms), KEY, b"state 0")
    file.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", row)
    for round_, what in ((1, "counts"), (2, "updates")):
        answered = ("run", round_, b"asked", b"report", AT if round_ == 1 else None)
        file.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", answered)
        entry = ("run", round_, what, AT)
        file.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", entry)
    file.execute("INSERT INTO caps VALUES ('user', 'server', 4.0, 1e-6)")
    file.execute("INSERT INTO refusals VALUES ('run', 'why', 3, ?)", (AT,))
    if version == 2:
        file.execute("ALTER TABLE answers ADD COLUMN multiplier REAL")
        file.execute("PRAGMA user_version = 2")
    file.close()
    return terms


def format_of(path) -> int:
    file = sqlite3.connect(path)
    [(found,)] = file.execute("PRAGMA user_version")
    file.close()
    return found


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("create", [True, False])
def test_a_file_of_an_older_format_is_read_and_says_no(tmp_path, create, version):
    path = tmp_path / "x"
    old_file(path, version)
    with ClientLedger(path, create=create) as ledger:
        assert ledger.doubt is Doubt.OLD
        said = [(e.at, e.round, e.release.what, e.sent) for e in ledger.entries()]
        assert said == [(AT, 1, "counts", AT), (AT, 2, "updates", None)]
        assert ledger.caps() == [Cap(4.0, 1e-6)]
        assert ledger.refusals() == [("run", "why", 3, AT)]
        assert [rounds for _, rounds in ledger.taken()] == [[1, 2]]
        assert ledger.joined("run").state == b"state 0"
        assert ledger.pending() == []
        assert not ledger.permits("run", 5, asked=b"broadcast")
        assert figure(ledger).standing == "NONE"
    assert format_of(path) == version


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_file_that_is_accepted_keeps_what_it_says_and_no_key(
    tmp_path, version
):
    path = tmp_path / "x"
    terms = old_file(path, version)
    assert KEY in path.read_bytes()
    accept(path, as_written=True)
    assert KEY not in path.read_bytes()
    assert format_of(path) == FORMAT
    with ClientLedger(path) as ledger:
        assert ledger.doubt is None
        expected = spent([(terms, [1, 2])], SERVER, delta=1e-6).value
        assert ledger.spent(SERVER, delta=1e-6).value == expected
        assert ledger.caps() == [Cap(4.0, 1e-6)]
        assert ledger.refusals() == [("run", "why", 3, AT)]
        assert not ledger.permits("run", 5, asked=b"broadcast")
        ledger.join("more", training(0.5, 40.0, 9), state=b"")
        assert say(ledger, 0, run="more") is not None


def test_an_older_file_without_the_owners_word_counts_in_full(tmp_path):
    terms = old_file(tmp_path / "x")
    accept(tmp_path / "x")
    with ClientLedger(tmp_path / "x") as ledger:
        assert [rounds for _, rounds in ledger.taken()] == [[*range(terms.rounds)]]


def test_a_chain_that_was_stripped_is_not_taken_for_an_older_file(path):
    """The way back to a format that nobody can check is a way around the check."""
    file = sqlite3.connect(path)
    file.execute("DROP TABLE chain")
    file.execute("DELETE FROM entries")
    file.execute("DELETE FROM answers")
    file.execute("PRAGMA user_version = 2")
    file.commit()
    file.close()
    with ClientLedger(path) as ledger:
        assert ledger.doubt is Doubt.OLD
    with pytest.raises(Refused, match="this machine knows that more was written"):
        accept(path, as_written=True)
    accept(path)
    with ClientLedger(path) as ledger:
        assert [len(rounds) for _, rounds in ledger.taken()] == [30]
        assert figure(ledger).assumes == "nothing"


# --- Erasing -------------------------------------------------------------------------


def anchors():
    return {*(anchor.state_folder() / "ledgers").iterdir()}


def test_erasing_everything_takes_the_anchor_along(path):
    before = anchors()
    assert erase(path) == 3
    assert not path.exists()
    assert len(before - anchors()) == 1
    with ClientLedger(path) as ledger:  # from nothing
        assert ledger.taken() == []


def test_erasing_what_is_private_keeps_the_chain(path):
    assert erase(path, keep_ledger=True) == 3
    with ClientLedger(path) as ledger:
        assert ledger.doubt is None
        assert ledger.joined("run").state is None
        assert [rounds for _, rounds in ledger.taken()] == [[0, 1, 2]]


def test_a_ledger_that_is_gone_can_be_forgotten(path):
    path.unlink()
    assert erase(path) == 0
    ClientLedger(path).close()


@pytest.mark.parametrize("keep", [True, False])
def test_a_ledger_in_doubt_can_be_erased(path, keep):
    """Whoever wants to leave needs no anchor for it."""
    lose_anchor(path)
    erase(path, keep_ledger=keep)
    assert path.exists() == keep
    if keep:
        assert b"after" not in path.read_bytes()
        with ClientLedger(path) as ledger:
            assert ledger.doubt is Doubt.NO_ANCHOR


def test_an_older_file_can_be_erased_with_its_key(tmp_path):
    old_file(tmp_path / "x")
    erase(tmp_path / "x", keep_ledger=True)
    assert KEY not in (tmp_path / "x").read_bytes()
    assert b"state 0" not in (tmp_path / "x").read_bytes()
