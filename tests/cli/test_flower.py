"""`tacit flower`: what can be said without Flower; test_loopback.py has the rest."""

import pytest

from tacit.cli import flower, flower_watch
from tacit.errors import Unanswered

EXPERIMENT = """
[data]
source = "synthetic"
world = { users = 60, items = 30, events_per_user = 8.0, rank = 3, seed = 1 }
validation = 5
test = 5
[method]
name = "federated_popularity"
[run]
rounds = 2
"""


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "exp.toml"
    path.write_text(EXPERIMENT)
    return path


def test_a_node_reads_its_share(tacit, experiment, tmp_path):
    found = []
    for part in range(3):
        done = tacit(
            "flower",
            "node",
            experiment,
            "--share",
            f"{part}/3",
            "--folder",
            tmp_path / f"node-{part}",
            "--prepare",
            "--json",
        )
        found.append(done.json["users"])
    assert sum(found) == 50
    assert min(found) > 5


@pytest.mark.parametrize("share", ["3", "3/", "a/b", "3/3"])
def test_a_share_is_a_part_of_so_many(tacit, experiment, share):
    done = tacit("flower", "node", experiment, "--share", share, "--prepare")
    assert done.code == 2
    assert "part" in done.err.lower()


def test_keys_say_what_to_do_next(tacit, tmp_path):
    done = tacit("flower", "keys", tmp_path / "keys", "--nodes", "2", "--json")
    names = [path.rsplit("/", 1)[1] for path in done.json["files"]]
    assert {"ca.crt", "node-1.key", "nginx.conf", "operator.crt"} <= {*names}
    again = tacit("flower", "keys", tmp_path / "keys")
    assert "has keys already" in again.err


def test_another_machine_without_tls_is_refused(tacit, experiment):
    done = tacit("flower", "run", experiment, "--nodes", "3", "--superlink", "h:1")
    assert "without TLS" in done.err


def test_what_cannot_run_over_nodes_is_refused_before_anybody_is_asked(
    tacit, experiment, tmp_path
):
    experiment.write_text(
        EXPERIMENT.replace(
            "rounds = 2", 'rounds = 2\nsampler = { name = "fixed_size", size = 5 }'
        )
    )
    done = tacit("flower", "run", experiment, "--nodes", "3")
    assert done.code == 2
    assert "cannot be drawn by nodes" in done.err


def test_a_directory_with_a_run_is_not_overwritten(tacit, experiment, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / "experiment.toml").write_text("")
    done = tacit("flower", "run", experiment, "--nodes", "3", "--out", out)
    assert "--resume" in done.err


def test_a_run_of_one_machine_is_no_run_over_nodes(tacit, experiment, tmp_path):
    """One sentence, before anything is written into it or anybody is asked."""
    out = tmp_path / "run"
    assert tacit("train", experiment, "--out", out).code == 0
    resumed = ("run", experiment, "--nodes", "3", "--resume")
    for words in (("status",), resumed):
        done = tacit("flower", *words, "--out", out)
        assert done.code == 2
        assert "is a run on one machine" in done.err
        assert "Traceback" not in done.err
    assert not (out / "flower").exists()
    assert not (out / "nodes.json").exists()


def test_stop_needs_a_run(tacit, tmp_path):
    done = tacit("flower", "stop", "--out", tmp_path)
    assert done.code == 2
    assert "has no run that `tacit flower run` has started" in done.err


def test_stop_takes_the_run_of_a_directory_or_a_number(tacit, tmp_path, monkeypatch):
    stopped = []
    monkeypatch.setattr(
        "tacit.cli.flower_watch.stop", lambda asked, number, out: stopped.append(number)
    )
    flower_watch.note_started(tmp_path, 7)
    assert tacit("flower", "stop", "--out", tmp_path, "--json").json["run"]
    done = tacit("flower", "stop", "--out", tmp_path / "none", "--run", str(2**63))
    assert "--resume" in done.out
    assert stopped == [7, 2**63]


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_an_interrupted_start_says_that_a_run_may_have_begun(
    tacit, experiment, tmp_path, monkeypatch
):
    monkeypatch.setattr("tacit.cli.flower_processes.Flwr.start_run", interrupted)
    words = ("flower", "run", experiment, "--nodes", "3", "--out", tmp_path / "run")
    done = tacit(*words)
    assert done.code == 130
    assert "tacit flower stop --run NUMBER" in done.err


@pytest.mark.parametrize("is_there", [True, False])
def test_an_interrupted_run_is_stopped_or_said_to_go_on(
    is_there, tacit, experiment, tmp_path, monkeypatch
):
    def stop(asked, number, out):
        if not is_there:
            raise Unanswered("flwr stop was refused")

    monkeypatch.setattr(
        "tacit.cli.flower_processes.Flwr.start_run", lambda asked, bundle: 7
    )
    monkeypatch.setattr(
        "tacit.cli.flower_watch.watched", lambda *_, **__: interrupted()
    )
    monkeypatch.setattr("tacit.cli.flower_watch.stop", stop)
    words = ("flower", "run", experiment, "--nodes", "3", "--out", tmp_path / "run")
    done = tacit(*words)
    assert done.code == 130
    expected = "stopped; nothing is lost" if is_there else "tacit flower stop --out"
    assert expected in done.err


def test_all_users_cannot_be_a_nodes_own_where_every_node_reads_them(
    tacit, experiment, tmp_path
):
    words = ("--share", "0/3", "--folder", tmp_path / "node", "--prepare", "--own")
    done = tacit("flower", "node", experiment, *words)
    assert done.code == 2
    assert "--own is for a table" in done.err
    assert not (tmp_path / "node").exists()


TABLE = """
[data]
source = "table"
items = "declared"
population = 40
split = "none"
[data.table]
path = "events.csv"
user = "user"
item = "item"
[data.table.items]
path = "items.csv"
item = "item"
[method]
name = "federated_popularity"
[run]
rounds = 1
"""


def test_a_node_says_that_its_table_may_have_users_who_are_not_its_own(tacit, tmp_path):
    lines = [f"u{n},i{item}" for n in range(40) for item in range(2)]
    (tmp_path / "events.csv").write_text("\n".join(["user,item", *lines]) + "\n")
    (tmp_path / "items.csv").write_text("item\ni0\ni1\n")
    path = tmp_path / "exp.toml"
    path.write_text(TABLE)
    words = ("flower", "node", path, "--prepare", "--json", "--folder")
    some = tacit(*words, tmp_path / "some", "--share", "0/3")
    assert some.json["users"] < 40
    assert "about one in 3" in some.err
    assert "say --own" in some.err
    own = tacit(*words, tmp_path / "own", "--share", "0/3", "--own")
    assert own.json["users"] == 40
    whole = tacit(*words, tmp_path / "whole", "--share", "0/1")
    assert whole.json["users"] == 40
    for done in (own, whole):
        assert "--own" not in done.err


class Program:
    """A program of Flower's that has ended, or will after some looks."""

    def __init__(self, name, looks):
        self.name, self.looks = name, looks

    @property
    def has_ended(self):
        self.looks -= 1
        return self.looks < 0

    def last_words(self):
        return f"{self.name} ended with code 1"

    def refuse_ended(self):
        if self.has_ended:
            raise Unanswered(self.last_words())


def test_a_node_that_ends_is_told_and_the_others_go_on(monkeypatch, capsys):
    """Only the end of the SuperLink is the end of `tacit flower up`."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    link = Program("the SuperLink", looks=5)
    nodes = [
        Program(f"the SuperNode of node-{n}", looks) for n, looks in ((0, 9), (1, 2))
    ]
    with pytest.raises(Unanswered, match="the SuperLink ended"):
        flower._watch_over(link, nodes)
    told = capsys.readouterr().err
    assert told.count("the SuperNode of node-1 ended") == 1
    assert "1 of 2 nodes are left" in told
    assert "node-0" not in told
