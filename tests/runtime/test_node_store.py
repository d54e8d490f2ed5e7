"""A node's file: one answer per round, on the disk before it is sent."""

import concurrent.futures
import json
import os
import shutil
import sqlite3

import numpy as np
import pytest

from tacit.errors import Refused
from tacit.files import state_folder
from tacit.runtime import node_store
from tacit.runtime.node_store import FORMAT, Kept, NodeStore, digest_of
from tacit.runtime.secrets import Secrets
from tacit.tree import Dense, Factored, Tree

STATE = Tree(
    {
        "vector": Dense(np.arange(6.0).reshape(3, 2)),
        "pair": Factored(np.ones((3, 1, 2)), np.full((3, 1, 4), 2.0)),
    }
)
KEPT = Kept(STATE, np.array([[1], [0], [2]]), np.array([0.0, 0.5, 1.0]))


@pytest.fixture
def store(tmp_path):
    made = NodeStore(tmp_path / "deep" / "store.db")
    made.join("run", "terms", lambda: KEPT)
    yield made
    made.close()


def test_a_store_may_be_given_up_in_another_thread(tmp_path):
    """A collector of garbage runs wherever it likes; an error there would be lost."""
    store = NodeStore(tmp_path / "store.db")
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        thread.submit(store.close).result()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store.has("run")


def test_state_and_counts_come_back(store, monkeypatch):
    monkeypatch.setattr(node_store, "_PIECE", 16)  # as if they were large
    store.begin("run", 0, b"question")
    store.keep("run", 0, answer=b"answer", kept=KEPT)
    found = store.kept("run")
    assert found.state.leaves.keys() == STATE.leaves.keys()
    for name, leaf in STATE.leaves.items():
        for suffix, part in leaf.parts.items():
            np.testing.assert_array_equal(found.state.leaves[name].parts[suffix], part)
    np.testing.assert_array_equal(found.taken, KEPT.taken)
    np.testing.assert_array_equal(found.spent, KEPT.spent)
    assert found.secrets is None


def test_an_answer_is_kept_in_pieces(store, monkeypatch):
    """One of all reports may be longer than a row of SQLite can be."""
    monkeypatch.setattr(node_store, "_PIECE", 1000)
    longest = 1500  # as if that were SQLite's limit of 10⁹ bytes
    store.file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
    said = os.urandom(10 * longest)
    for number in range(2):
        store.begin("run", number, b"q")
        assert store.keep("run", number, answer=said, kept=KEPT) == said
        assert store.keep("run", number, answer=b"another", kept=KEPT) == said
        assert store.asked("run", number).content == said
    assert store.asked("run", 0).content is None
    np.testing.assert_array_equal(store.kept("run").taken, KEPT.taken)


def earlier(path, *, format=3):
    """A store as the version before had it: a mark in place of the checksum."""
    answered(path)
    [own] = (state_folder() / "nodes").glob("*.anchor.json")
    marks = {"current": "m", "next": "m", "place": str(path), "names": ["run", "gone"]}
    own.with_name("id.json").write_text(json.dumps(marks))
    own.unlink()
    with sqlite3.connect(path) as file:
        if format == 2:  # its last answer is in one row
            file.execute("UPDATE answer SET content = ?", (b"as it was",))
            file.execute("DELETE FROM array WHERE name = 'answer'")
        file.execute("DROP TABLE store")
        file.execute("CREATE TABLE own (id TEXT NOT NULL, mark TEXT NOT NULL) STRICT")
        file.execute("INSERT INTO own VALUES ('id', 'm')")
        file.execute(f"PRAGMA user_version = {format}")
    file.close()
    return path


@pytest.mark.parametrize(("format", "kept"), [(2, b"as it was"), (3, b"a")])
def test_a_store_of_a_format_before_goes_on(tmp_path, format, kept):
    """Its last answer is sent again as it was, and its counts go on."""
    path = earlier(tmp_path / "store.db", format=format)
    store = NodeStore(path)
    assert store.asked("run", 0).content == kept
    store.begin("run", 1, b"q")
    store.keep("run", 1, answer=b"next", kept=KEPT)
    store.close()
    again = NodeStore(path)
    assert [again.asked("run", n).content for n in range(2)] == [None, b"next"]
    assert (again.format, again.is_copy) == (FORMAT, False)
    again.close()
    assert len([*(state_folder() / "nodes").iterdir()]) == 1


def test_a_copy_of_a_format_before_is_refused_and_restored_it_is_over(tmp_path):
    path = earlier(tmp_path / "store.db")
    with sqlite3.connect(path) as file:
        file.execute("UPDATE own SET mark = 'an earlier one'")
    file.close()
    with pytest.raises(Refused, match=r"not as this machine has left it.*--restored"):
        NodeStore(path)
    store = NodeStore(path, is_restored=True)
    assert store.n_runs == 2
    with pytest.raises(Refused, match="is over on this node"):
        store.join("gone", "terms", lambda: pytest.fail("enrolled again"))
    store.close()


def test_one_of_a_format_before_that_is_gone_is_not_begun_anew(tmp_path):
    path = earlier(tmp_path / "store.db")
    path.unlink()
    with pytest.raises(Refused, match="gone"):
        NodeStore(path)
    assert NodeStore(path, is_restored=True).n_runs == 2


def test_a_question_is_noted_first_and_only_once(store):
    assert store.asked("run", 0) is None
    assert store.last_round("run") == -1
    store.begin("run", 0, b"question")
    store.begin("run", 0, b"another")
    asked = store.asked("run", 0)
    assert (asked.digest, asked.content) == (digest_of(b"question"), None)
    store.keep("run", 0, answer=b"answer", kept=KEPT)
    assert store.asked("run", 0).content == b"answer"
    assert store.last_round("run") == 0


def test_a_second_process_does_not_take_the_state_back(store):
    """It was slow; the server has asked again, and gone on."""
    store.begin("run", 0, b"q")
    other = Kept(STATE, KEPT.taken + 1, KEPT.spent)
    assert store.keep("run", 0, answer=b"first", kept=other) == b"first"
    assert store.keep("run", 0, answer=b"second", kept=KEPT) == b"first"
    store.begin("run", 1, b"q")
    store.keep("run", 1, answer=b"later", kept=other)
    with pytest.raises(Refused, match="is over"):
        store.keep("run", 0, answer=b"second", kept=KEPT)
    assert store.last_round("run") == 1
    np.testing.assert_array_equal(store.kept("run").taken, other.taken)


def test_only_the_last_answer_is_kept(store):
    for number in range(3):
        store.begin("run", number, b"q")
        store.keep("run", number, answer=b"a%d" % number, kept=KEPT)
    assert [store.asked("run", n).content for n in range(3)] == [None, None, b"a2"]
    assert store.rounds("run") == [0, 1, 2]


def test_a_killed_transaction_leaves_what_was(store, monkeypatch):
    store.begin("run", 0, b"q")

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(NodeStore, "_write", killed)
    with pytest.raises(KeyboardInterrupt):
        store.keep("run", 0, answer=b"a", kept=KEPT)
    assert store.asked("run", 0).content is None
    assert store.last_round("run") == -1
    np.testing.assert_array_equal(store.kept("run").taken, KEPT.taken)


def test_a_run_keeps_its_terms(store):
    store.join("run", "terms", lambda: pytest.fail("enrolled twice"))
    assert store.has("run")
    with pytest.raises(Refused, match=r"run 'run'.*other terms now"):
        store.join("run", "other terms", lambda: KEPT)
    store.join("again", "other terms", lambda: KEPT)
    assert store.n_runs == 2


def test_of_two_runs_that_begin_at_once_as_many_begin_as_may(tmp_path):
    """Both processes have looked before either has begun; one run is allowed."""
    path = tmp_path / "store.db"
    one, two = NodeStore(path), NodeStore(path)

    def meanwhile():  # the other process begins between our look and our change
        two.check_run = look
        one.join("first", "terms", lambda: KEPT, most_runs=1)

    look = two.check_run

    def looked(*given, **options):
        look(*given, **options)
        meanwhile()

    two.check_run = looked
    with pytest.raises(Refused, match="trained on 1 times, and its operator allows 1"):
        two.join("second", "terms", lambda: KEPT, most_runs=1)
    assert one.n_runs == 1
    two.join("first", "terms", lambda: pytest.fail("enrolled twice"), most_runs=1)
    one.close()
    two.close()
    path.unlink()  # what was refused is no run that was given up
    assert NodeStore(path, is_restored=True).n_runs == 1


def test_a_secret_that_went_is_not_in_the_file(tmp_path):
    path = tmp_path / "store.db"
    store = NodeStore(path)
    first = Secrets(b"R" * 32, b"first round's secret of 32 bytes")
    begun = Kept(Tree({}), KEPT.taken, KEPT.spent, first)
    store.join("run", "terms", lambda: begun)
    assert first.round in path.read_bytes()
    store.begin("run", 0, b"q")
    later = Secrets(first.run, b"r" * 32)
    store.keep(
        "run",
        0,
        answer=b"a",
        kept=Kept(Tree({}), KEPT.taken, KEPT.spent, later),
    )
    store.close()
    assert first.round not in path.read_bytes()
    assert later.round in path.read_bytes()


# --- Copies ---------------------------------------------------------------------------


def answered(path, *, rounds=1):
    """A store that has answered some rounds of one run, closed."""
    store = NodeStore(path)
    store.join("run", "terms", lambda: KEPT)
    for number in range(rounds):
        store.begin("run", number, b"q")
        store.keep("run", number, answer=b"a", kept=KEPT)
    store.close()
    return path


def backed_up(path):
    shutil.copy2(path, path.with_suffix(".backup"))
    return path.with_suffix(".backup")


@pytest.mark.parametrize("step", ["join", "begin", "keep"])
def test_a_backup_that_is_put_back_is_refused_whatever_came_after_it(step, tmp_path):
    path = tmp_path / "store.db"
    store = NodeStore(path)
    steps = {
        "join": lambda: store.join("run", "terms", lambda: KEPT),
        "begin": lambda: store.begin("run", 0, b"q"),
        "keep": lambda: store.keep("run", 0, answer=b"a", kept=KEPT),
    }
    for name, act in steps.items():
        if name == step:
            backup = backed_up(path)
        act()
        if name == step:
            break
    store.close()
    NodeStore(path).close()  # as it was left
    shutil.copy2(backup, path)
    with pytest.raises(Refused, match=r"a backup was put back.*--restored"):
        NodeStore(path)


def test_restored_all_runs_are_over_and_count(tmp_path):
    """Also the one that began after the backup was made, of which it does not know."""
    path = answered(tmp_path / "store.db")
    backup = backed_up(path)
    store = NodeStore(path)
    before = store.id
    store.join("later", "terms", lambda: KEPT)
    store.close()
    shutil.copy2(backup, path)
    back = NodeStore(path, is_restored=True)
    assert back.n_runs == 2
    assert back.id != before
    for run in ("run", "later"):
        with pytest.raises(Refused, match="is over on this node"):
            back.join(run, "terms", lambda: pytest.fail("enrolled again"))
    assert back.asked("run", 0).content is None
    back.join("next", "terms", lambda: KEPT)
    back.close()
    NodeStore(path).close()  # and it is the file from now on
    path.unlink()
    gone = NodeStore(path, is_restored=True)
    assert gone.n_runs == 3
