"""A run at a SuperLink is watched: trouble on the way, and other directories."""

import json
import threading

import pytest

from tacit.cli import flower_watch
from tacit.cli.flower_processes import Link
from tacit.documents import write_document
from tacit.errors import BadRun, Unanswered
from tacit.files import locked

AGAIN = "tacit flower run exp.toml --nodes 3 --resume"
REFUSED = Unanswered("flwr list at 127.0.0.1:9400 was refused: Connection refused")
RUNNING = {"status": "running"}
OVER = {"status": "finished:completed"}


class Answers:
    """A SuperLink that says these things of a run, one after the other."""

    link = Link("127.0.0.1:9400")

    def __init__(self, *said):
        self.said, self.stopped = [*said], []

    def status(self, run):
        answer = self.said.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop_run(self, run):
        self.stopped.append(run)


class Bar:
    def __init__(self):
        self.rounds = []

    def round(self, done, planned, facts):
        self.rounds.append((done, planned))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    for name in ("LOOK_SECONDS", "RETRY_SECONDS"):
        monkeypatch.setattr(flower_watch, name, 0.0)


def watched(asked, out, bar=None):
    return flower_watch.watched(asked, 7, out, bar=bar or Bar(), again=AGAIN)


def write_rounds(out, *lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (out / "metrics.jsonl").write_text(text)
    write_document(out / "ledger.json", {"rounds_planned": 4})


def test_rounds_are_told_with_the_nodes_that_did_not_count(tmp_path, capsys):
    dropped = {"node 12": "gave no answer in 40 s"}
    write_rounds(tmp_path, {"round": 0, "nodes": {"answered": [], "dropped": dropped}})
    bar = Bar()
    assert watched(Answers(OVER), tmp_path, bar) == OVER
    assert bar.rounds == [(1, 4)]
    assert "node 12 did not count: gave no answer in 40 s" in capsys.readouterr().err


def test_a_question_without_an_answer_does_not_end_the_watch(tmp_path):
    """Nor do some of them between answers: the run goes on at the SuperLink."""
    some = [REFUSED] * (flower_watch.TRIES - 1)
    assert watched(Answers(*some, RUNNING, *some, OVER), tmp_path) == OVER


def test_a_superlink_that_is_gone_ends_the_watch_and_says_how_to_go_on(tmp_path):
    with pytest.raises(Unanswered) as caught:
        watched(Answers(*[REFUSED] * flower_watch.TRIES), tmp_path)
    said = str(caught.value)
    assert "127.0.0.1:9400 gave no answer about run 7" in said
    assert "Connection refused" in said
    assert "start it again with `tacit flower up`" in said
    assert AGAIN in said
    assert "tacit flower status" in said


def test_a_stopped_run_has_left_its_directory(tmp_path):
    asked = Answers()
    left = threading.Event()

    def train():
        with locked(tmp_path / ".lock"):
            began.set()
            while not asked.stopped:
                left.wait(0.05)
            left.wait(0.5)
            left.set()

    began = threading.Event()
    thread = threading.Thread(target=train)
    thread.start()
    began.wait(10)
    flower_watch.stop(asked, 7, tmp_path)
    assert left.is_set()
    assert asked.stopped == [7]
    thread.join()


def test_a_process_that_does_not_leave_the_directory_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(flower_watch, "END_SECONDS", 0.5)
    with (
        locked(tmp_path / ".lock"),
        pytest.raises(Unanswered, match="a process still holds"),
    ):
        flower_watch.stop(Answers(), 7, tmp_path)


def test_the_number_of_a_run_is_remembered(tmp_path):
    with pytest.raises(BadRun, match="has no run that"):
        flower_watch.started(tmp_path)
    flower_watch.note_started(tmp_path, 2**63)
    flower_watch.note_started(tmp_path, 2**63 + 1)
    assert flower_watch.started(tmp_path) == 2**63 + 1


def test_a_run_of_one_machine_is_refused(tmp_path):
    flower_watch.refuse_other_run(tmp_path)  # a new directory
    write_rounds(tmp_path, {"round": 0})
    with pytest.raises(BadRun, match="a run on one machine"):
        flower_watch.refuse_other_run(tmp_path)
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "experiment.toml").write_text("")
    with pytest.raises(BadRun, match="a run on one machine"):
        flower_watch.refuse_other_run(tmp_path)
    write_document(tmp_path / "nodes.json", {"name": "films"})
    flower_watch.refuse_other_run(tmp_path)
