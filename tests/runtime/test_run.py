"""Runs on disk, in processes that are really killed."""

import json
import os
import runpy
import signal
import stat
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from quick import some_or_all

from tacit.documents import read_document
from tacit.errors import BadRun, BadValue, Damaged
from tacit.keys import Key
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.runtime.checkpoint import load_checkpoint
from tacit.runtime.rounds import State
from tacit.runtime.run import RunDirectory, play
from tacit.runtime.simulate import Simulation
from tacit.runtime.warm_start import read_past, read_spent
from tacit.sampling import Once
from tacit.statement import Past

TRAINER = Path(__file__).with_name("trainer.py")
trainer = runpy.run_path(str(TRAINER))
simulation = trainer["simulation"]
DIGEST, ROUNDS = trainer["DIGEST"], trainer["ROUNDS"]
PATIENCE = 60  # seconds for one life


# --- Killed --------------------------------------------------------------------------


class Nursery:
    """The trainer process: children that train, one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def begin(self, path: Path) -> int:
        """Start training into a directory; the number of the process that does."""
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> int:
        """Wait for the child; how it ended, below zero if a signal did it."""
        return int(self.process.stdout.readline())


@contextmanager
def nursery() -> Iterator[Nursery]:
    with subprocess.Popen(
        [sys.executable, str(TRAINER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Nursery(process)
        finally:
            process.stdin.close()


@some_or_all("kills", 2, 15)
def test_killed_at_random_moments_a_run_ends_as_if_nothing_had_happened(
    kills, tmp_path
):
    """kill -9 after a random number of words from the clients."""
    draws = Key.from_seed(11).generator()
    directory = RunDirectory(tmp_path / "run")
    with nursery() as trained:
        for _ in range(kills):
            kill_after(trained, directory.path, int(draws.integers(6)), draws.random())
            assert_ledger_knows_what_was_said(directory)
        trained.begin(directory.path)
        assert trained.end() == trainer["DONE"]
    assert_equals_uninterrupted(directory)
    assert [line["round"] for line in directory.rounds_logged()] == [*range(ROUNDS)]
    assert_a_round_played_again_said_the_same(directory)
    assert not [*directory.path.rglob(".*.part")]


def kill_after(trained: Nursery, path: Path, words: int, moment: float) -> None:
    """Let a child begin, wait for so many words and up to 5 ms more, and kill it."""
    target = size(path / "overheard") + 20 * words
    child, started = trained.begin(path), time.monotonic()
    while size(path / "overheard") < target:
        assert time.monotonic() - started < PATIENCE
        time.sleep(0.001)
    time.sleep(0.005 * moment)
    os.kill(child, signal.SIGKILL)
    assert trained.end() == -signal.SIGKILL


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def overheard(directory: RunDirectory) -> list[tuple[int, str, str]]:
    """Round, who, what; the last line may be torn."""
    path = directory.path / "overheard"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [(int(r), who, what) for r, who, what in map(str.split, lines)]


def assert_ledger_knows_what_was_said(directory: RunDirectory) -> None:
    said = max((round_ for round_, _, _ in overheard(directory)), default=-1)
    if said >= 0:
        entry = json.loads(directory.ledger.read_text())
        assert said < entry["rounds_begun"] <= ROUNDS


def assert_a_round_played_again_said_the_same(directory: RunDirectory) -> None:
    said = defaultdict(list)
    for round_, who, what in overheard(directory):
        said[round_, who].append(what)
    assert max(map(len, said.values())) > 1  # some round was played again
    assert all(len(set(words)) == 1 for words in said.values())


def assert_equals_uninterrupted(directory: RunDirectory) -> None:
    *_, (whole, _) = simulation().run(simulation().start())
    resumed = load_checkpoint(directory.checkpoint, simulation().start(), digest=DIGEST)
    assert_same(resumed, whole)


def assert_same(found: State, expected: State) -> None:
    assert found.server.round == expected.server.round
    for kind in ("weights", "memory"):
        ours, theirs = getattr(found.server, kind), getattr(expected.server, kind)
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            assert ours[name].tobytes() == value.tobytes(), name
    for name in ("u", "rounds"):
        ours, theirs = found.clients.state[name], expected.clients.state[name]
        assert ours.tobytes() == theirs.tobytes(), name
    assert found.taken.tolist() == expected.taken.tolist()


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path, capfd):
    directory = RunDirectory(tmp_path)
    with nursery() as first, nursery() as second:
        child = first.begin(tmp_path)
        while not directory.metrics.exists():
            time.sleep(0.001)
        os.kill(child, signal.SIGSTOP)  # it is alive and holds the lock
        try:
            second.begin(tmp_path)
            assert second.end() == trainer["REFUSED"]
            with pytest.raises(BadRun, match="in use by another process"):
                directory.locked().__enter__()
        finally:
            os.kill(child, signal.SIGKILL)
            first.end()
    assert "in use by another process" in capfd.readouterr().err
    with directory.locked():
        pass


def test_the_lock_sweeps_up_what_a_killed_process_left(tmp_path):
    left = tmp_path / "checkpoint" / ".state.safetensors.123.part"
    left.parent.mkdir()
    left.write_bytes(b"half a")
    with RunDirectory(tmp_path).locked():
        assert not left.exists()


# --- Resumed, in this process --------------------------------------------------------


def short(rounds: int = 4) -> Simulation:
    made = simulation()
    return replace(made, plan=replace(made.plan, rounds=rounds))


def rounds_of(
    directory: RunDirectory, *, digest="x", made=None, every=1, observe=None
) -> list[int]:
    """Play to the end; the rounds that were played."""
    told = observe or (lambda _state, tally: {"asked": tally.asked})
    played = play(made or short(), directory, digest=digest, observe=told, every=every)
    return [facts["round"] for _, facts in played]


def stop_after(directory: RunDirectory, rounds: int, **settings) -> None:
    played = play(short(), directory, digest="x", observe=lambda _s, _t: {}, **settings)
    for _ in range(rounds):
        next(played)


def test_only_the_rounds_that_are_left_are_played(tmp_path):
    directory = RunDirectory(tmp_path)
    stop_after(directory, 2)
    assert rounds_of(directory) == [2, 3]
    assert rounds_of(directory) == []
    assert [line["round"] for line in directory.rounds_logged()] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("every", "again"), [(1, [3]), (2, [2, 3]), (3, [3]), (9, None)]
)
def test_rounds_since_the_last_checkpoint_are_played_again(tmp_path, every, again):
    directory = RunDirectory(tmp_path)
    stop_after(directory, 3, every=every)
    assert rounds_of(directory, every=every) == (again or [0, 1, 2, 3])
    assert [line["round"] for line in directory.rounds_logged()] == [0, 1, 2, 3]
    state = load_checkpoint(directory.checkpoint, short().start(), digest="x")
    assert state.server.round == 4


def test_the_ledger_never_goes_back(tmp_path):
    """Three rounds begun, no checkpoint: the first is played again, three are spent."""
    directory, begun = RunDirectory(tmp_path), []

    def observe(state, tally):
        begun.append(json.loads(directory.ledger.read_text())["rounds_begun"])
        return {}

    stop_after(directory, 3, every=9)
    rounds_of(directory, observe=observe)
    assert begun == [3, 3, 3, 4]


def test_the_ledger_says_whose_it_is_and_what_is_released(tmp_path):
    directory = RunDirectory(tmp_path)
    rounds_of(directory)
    entry = read_document(directory.ledger)
    spent, account = entry.pop("spent"), entry.pop("account")
    assert entry == {
        "experiment": "x",
        "plan": short().plan.digest.hex(),
        "rounds_planned": 4,
        "rounds_begun": 4,
        "most_participations": 4,
        "releases": ["gradients, each round"],
        "earlier": [],
        "spent_with_earlier": [],
    }
    own = short()
    assert read_past(account) == Past(12, own.method.releases(own.plan))
    assert {(line["unit"], line["view"]) for line in spent} == {
        (unit, view) for unit in Unit for view in View
    }
    assert all(line["epsilon"] is None and line["reason"] for line in spent)


def test_the_ledger_is_written_before_anyone_speaks(tmp_path):
    directory, seen = RunDirectory(tmp_path), []

    class Watching:
        def permits(self, clients, *, round, multipliers=None):
            seen.append(
                json.loads(directory.ledger.read_text())["rounds_begun"] - round
            )
            return np.ones(len(clients), bool)

    rounds_of(directory, made=replace(short(), ledger=Watching()))
    assert set(seen) == {1}


@pytest.mark.parametrize("left", ["checkpoint and ledger", "ledger alone"])
def test_another_experiment_is_refused_and_nothing_is_changed(tmp_path, left):
    """Also before the first checkpoint: what was spent must not be overwritten."""
    directory = RunDirectory(tmp_path)
    stop_after(directory, 1, every=1 if left == "checkpoint and ledger" else 9)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(BadRun, match="another experiment"):
        rounds_of(directory, digest="y")
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}


@pytest.mark.parametrize("torn", ["", '{"ro', '{"round": 2, "asked": 7}'])
def test_a_torn_last_line_is_dropped(tmp_path, torn):
    directory = RunDirectory(tmp_path)
    stop_after(directory, 2)
    with directory.metrics.open("a") as file:
        file.write(torn)
    assert [line["round"] for line in directory.rounds_logged()] == [0, 1]
    rounds_of(directory)
    assert [line["round"] for line in directory.rounds_logged()] == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["metrics", "ledger"])
@pytest.mark.parametrize("text", ["{", "[1]\n", "nonsense\n", ""])
def test_a_damaged_file_is_named(tmp_path, name, text):
    directory = RunDirectory(tmp_path)
    stop_after(directory, 1)
    path = getattr(directory, name)
    path.write_text(text + "\n")
    with pytest.raises(BadRun, match=f"{path.name} is damaged"):
        rounds_of(directory)


def test_what_is_logged_survives_as_it_was(tmp_path):
    directory = RunDirectory(tmp_path)
    loss = {"loss": 0.1 + 0.2, "who": "Amélie"}
    rounds_of(directory, observe=lambda _s, _t: loss)
    rounds_of(directory)  # rewrites the lines it keeps
    assert directory.rounds_logged() == [{"round": r, **loss} for r in range(4)]


def test_a_run_without_lines_has_none(tmp_path):
    assert RunDirectory(tmp_path).rounds_logged() == []


@pytest.mark.parametrize("every", [0, -1, 1.5])
def test_checkpoints_come_every_so_many_rounds(tmp_path, every):
    with pytest.raises(BadValue, match="every="):
        rounds_of(RunDirectory(tmp_path), every=every)


def test_a_plan_of_one_round_each_runs_to_its_end(tmp_path):
    """Rounds that ask nobody count like the others."""
    made = short()
    plan = Plan(len(made.shards), rounds=30, sampler=Once())
    assert rounds_of(RunDirectory(tmp_path), made=replace(made, plan=plan)) == [
        *range(30)
    ]


def test_the_files_of_a_run_have_their_places(tmp_path):
    """DESIGN.md, section 5."""
    directory = RunDirectory(tmp_path)
    assert {
        path.relative_to(tmp_path).as_posix()
        for path in (
            *(directory.experiment, directory.metrics, directory.result),
            *(directory.ledger, directory.model, directory.model_facts),
            *(directory.privacy_card, directory.report, directory.checkpoint.parent),
        )
    } == {
        *("experiment.toml", "metrics.jsonl", "result.json", "ledger.json"),
        *("model.safetensors", "model.json", "checkpoint", "report.html"),
        "privacy-card.json",
    }


# files that a disk has changed


def test_no_flipped_bit_of_the_ledger_is_added_to(tmp_path):
    """A run that resumes, and one that adds to this one, read the ledger."""
    directory = RunDirectory(tmp_path)
    rounds_of(directory)
    whole = directory.ledger.read_bytes()
    epsilon = whole.index(b'"epsilon"')
    for place in range(8 * epsilon, 8 * epsilon + 400, 3):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        directory.ledger.write_bytes(changed)
        with pytest.raises(Damaged, match=r"ledger\.json is damaged"):
            read_spent(directory.ledger)
        with pytest.raises(Damaged, match=r"ledger\.json is damaged"):
            rounds_of(directory)


def test_no_flipped_bit_of_the_metrics_is_shown(tmp_path):
    directory = RunDirectory(tmp_path)
    rounds_of(directory)
    whole, lines = directory.metrics.read_bytes(), directory.rounds_logged()
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        directory.metrics.write_bytes(changed)
        with pytest.raises(Damaged, match=r"metrics\.jsonl is damaged"):
            directory.rounds_logged()
    directory.metrics.write_bytes(whole[:-1])  # torn, as by a kill: the line is lost
    assert directory.rounds_logged() == lines[:-1]
    directory.metrics.write_bytes(b"".join(whole.splitlines(keepends=True)[1:]))
    with pytest.raises(Damaged, match="not those of rounds in order"):
        directory.rounds_logged()


@pytest.mark.parametrize("lost", ["metrics", "ledger"])
def test_what_is_gone_is_not_made_good_by_a_resume(tmp_path, lost):
    """A shorter log, or an account that begins again, would be sealed as the truth."""
    directory = RunDirectory(tmp_path)
    stop_after(directory, 2)
    if lost == "metrics":
        first, *_ = directory.metrics.read_bytes().splitlines(keepends=True)
        directory.metrics.write_bytes(first)
    else:
        directory.ledger.unlink()
    with pytest.raises(Damaged, match=f"{lost}"):
        rounds_of(directory)


def test_what_holds_single_users_is_for_the_owner_alone(tmp_path):
    directory, before = RunDirectory(tmp_path), os.umask(0)
    try:
        with directory.locked():
            rounds_of(directory)
    finally:
        os.umask(before)
    for path in (
        *(directory.ledger, directory.metrics, directory.lock),
        directory.checkpoint,
    ):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
