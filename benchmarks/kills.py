"""`python -m benchmarks.kills [--times 1400] [--commands query]`: nothing is lost.

Processes that train, release, compare, export, fill the cache, answer with a ledger or
send a private query are killed with SIGKILL at random moments, often several times in
the same folder, and then left to finish. What is there in the end must be what an
undisturbed process makes, and no file more. One process imports everything and forks
the others, and no charts are drawn, so that a life takes a fraction of a second.

    train, compare, export, cache   the same bytes; but times are left out
    release                         the same files; in no round two different models
    ledger                          what was said stands in it, and was said once
    query                           killed between the entry in the ledger and the end
                                    of sending: never more said than is entered, and of
                                    each day the same bytes
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import random
import runpy
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.digest import content_digest
from tacit.data.sources.table import EventsTable
from tacit.documents import CHECKSUM
from tacit.experiment import build_report, exporting
from tacit.experiment.comparison import compare
from tacit.experiment.comparison_grid import Grid
from tacit.experiment.saved_run import SavedRun, load
from tacit.experiment.settings import read_experiment
from tacit.experiment.training import train
from tacit.keys import Key
from tacit.ledger.durable import ClientLedger
from tacit.method import ItemSpace
from tacit.runtime.simulate import Simulation
from tacit.serving.interests import find_interests
from tacit.serving.query import Query
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_client import ServingClient

HANDSET = Path(__file__).parents[1] / "tests" / "runtime" / "handset.py"
USERS, ITEMS, ROUND, DAYS = 40, 15, 3, 2
IMPORTED_LATE = ("onnx.checker", "tacit.methods.federated_popularity", "tacit.kernels")
MOST_KILLS = 4  # in one folder
LATER = 1.05  # lives that a killer waits for at most
TIMES = (
    "seconds",
    "clients_per_second",
    "memory_bytes",
    CHECKSUM,
)  # what differs between two runs
PAGES = (".html",)  # show times

SETTINGS = """
[data]
source = "table"
{population}
[data.table]
path = "table.csv"
user = "who"
item = "what"
{items}
[method]
name = "federated_popularity"
[privacy]
mechanism = "central"
channel = "secure_sum"
noise_multiplier = 2.0
delta = 1e-6
[run]
rounds = 4
sampler = {{ name = "{sampler}" }}
[evaluate]
metrics = ["ndcg@10"]
baselines = []
"""
LISTED = """
[data.table.items]
path = "items.csv"
item = "what"
"""


@dataclass(frozen=True)
class World:
    """The inputs that all lives share, and what undisturbed ones made of them."""

    path: Path

    @classmethod
    def made_in(cls, path: Path) -> World:
        """Two tables and two experiments."""
        pairs = [(p, (p * 7 + i * i) % ITEMS) for p in range(USERS) for i in range(9)]
        rows = "".join(f"user {p},item {i}\n" for p, i in pairs)
        (path / "table.csv").write_text("who,what\n" + rows)
        listed = "".join(f"item {i}\n" for i in range(ITEMS))
        (path / "items.csv").write_text("what\n" + listed)
        plain = {"population": "validation = 8\ntest = 8", "items": ""}
        (path / "train.toml").write_text(SETTINGS.format(**plain, sampler="once"))
        public = {"population": f"population = {USERS}", "items": LISTED}
        (path / "release.toml").write_text(SETTINGS.format(**public, sampler="once"))
        return cls(path)

    @property
    def run(self) -> Path:
        """A finished run, to be exported."""
        return self.path / "undisturbed" / "train" / "run"


@dataclass(frozen=True)
class Task:
    """A command: what one life of it does, and what is wrong with what it left.

    If it has points, a life kills itself at one of them; else it is killed at a random
    moment.
    """

    name: str
    live: Callable[[World, Path], None]
    wrong: Callable[
        [Path, Path], list[str]
    ]  # in a folder, compared with the model of it
    points: tuple[str, ...] = ()


@dataclass
class Tally:
    """What came of one command."""

    name: str
    kills: int = 0
    resumed: int = 0
    wrong: list[str] = field(default_factory=list)


def main() -> int:
    """Kill as often as asked, print a table; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills")
    parser.add_argument("--times", type=int, default=1400)
    parser.add_argument("--seed", type=int, default=0)
    names = [task.name for task in TASKS]
    parser.add_argument("--commands", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    if "export" in options.commands and "train" not in options.commands:
        parser.error("export exports the run of train; name both")
    tasks = [task for task in TASKS if task.name in options.commands]
    with tempfile.TemporaryDirectory() as folder:
        tallies = kill(Path(folder), tasks, times=options.times, seed=options.seed)
    print(f"{'command':10} {'kills':>6} {'resumed':>8} {'wrong':>6}")
    for tally in tallies:
        told = (tally.kills, tally.resumed, len(tally.wrong))
        print(f"{tally.name:10} {told[0]:6} {told[1]:8} {told[2]:6}")
    for tally in tallies:
        for problem in tally.wrong:
            print(f"WRONG: {tally.name}: {problem}")
    return 1 if any(tally.wrong for tally in tallies) else 0


def kill(place: Path, tasks: list[Task], *, times: int, seed: int) -> list[Tally]:
    """Share the kills among the commands."""
    for module in IMPORTED_LATE:
        importlib.import_module(module)
    world, draws = World.made_in(place), random.Random(seed)
    tallies = []
    for number, task in enumerate(tasks):
        share = times * (number + 1) // len(tasks) - times * number // len(tasks)
        tallies.append(_kill_one(task, world, share, draws))
    return tallies


def _kill_one(task: Task, world: World, times: int, draws: random.Random) -> Tally:
    tally, model = Tally(task.name), world.path / "undisturbed" / task.name
    model.mkdir(parents=True)
    _life(task, world, model)  # compiles what has to be compiled
    _erase(model)
    model.mkdir()
    usual = _life(task, world, model)
    assert usual is not None  # nothing kills this life
    number = 0
    while tally.kills < times:
        folder = world.path / "lives" / f"{task.name}-{number}"
        folder.mkdir(parents=True)
        number += 1
        for _ in range(min(draws.randint(1, MOST_KILLS), times - tally.kills)):
            if task.points:
                point = draws.choice(task.points)
                tally.kills += _life(task, world, folder, point=point) is None
            else:
                after = LATER * usual * draws.random()
                tally.kills += _life(task, world, folder, after=after) is None
        try:
            _life(task, world, folder)
            tally.resumed += 1
            tally.wrong += [f"{folder.name}: {p}" for p in task.wrong(folder, model)]
        except ChildProcessError as error:
            tally.wrong.append(f"{folder.name}: {error}")
        _erase(folder)
    return tally


def _anchors(folder: Path) -> str:
    """Where the anchors of a folder's ledgers are: beside it, and its own."""
    return f"{folder}-anchors"


def _erase(folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.rmtree(_anchors(folder), ignore_errors=True)


def _life(
    task: Task,
    world: World,
    folder: Path,
    *,
    after: float | None = None,
    point: str | None = None,
) -> float | None:
    """How long a process lived that did the task; None if it was killed.

    ChildProcessError if it failed: what it said is the reason.
    """
    sys.stdout.flush()
    began, child = time.monotonic(), os.fork()
    if not child:
        global last_point
        last_point = point
        _be_born(task, world, folder)
    if after is not None:
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)  # it is ours until we wait for it
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGKILL:
        return None
    if code:
        raise ChildProcessError((world.path / "said").read_text() or f"code {code}")
    return time.monotonic() - began


def _be_born(task: Task, world: World, folder: Path) -> None:
    """In the child: do the task, and never return."""
    code = 1
    try:
        os.environ["TACIT_CACHE"] = str(world.path / "cache")
        os.environ["TACIT_STATE"] = _anchors(folder)
        build_report.render = lambda _: "a page without its charts"  # type: ignore[attr-defined, assignment]
        task.live(world, folder)
        code = 0
    except BaseException as error:
        (world.path / "said").write_text(f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)


# --- train and release ---------------------------------------------------------------


def _train(world: World, folder: Path) -> None:
    _run(world.path / "train.toml", folder)


def _release(world: World, folder: Path) -> None:
    """As `tacit release`; every sum that comes out is overheard."""
    step = Simulation.step

    def overheard(self: Simulation, state: Any) -> Any:
        after, tally = step(self, state)
        said = hashlib.blake2b(digest_size=8)
        for name, value in sorted(after.server.weights.items()):
            said.update(name.encode() + value.tobytes())
        line = f"{tally.round} {said.hexdigest()}\n"
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
        handle = os.open(folder / "overheard", flags)
        os.write(handle, line.encode())
        os.close(handle)
        return after, tally

    Simulation.step = overheard  # type: ignore[method-assign]
    _run(world.path / "release.toml", folder, "run.purpose=release")


def _run(settings: Path, folder: Path, *changes: str) -> None:
    experiment, run = read_experiment(settings, changes), folder / "run"
    train(experiment, run, resume=(run / "experiment.toml").exists())


def _wrong_run(folder: Path, model: Path) -> list[str]:
    return _differences(folder, model)


def _wrong_release(folder: Path, model: Path) -> list[str]:
    lines = (folder / "overheard").read_text().splitlines()
    rounds = [line.split()[0] for line in {*lines}]
    found = [f"round {r} was played twice" for r in {*rounds} if rounds.count(r) > 1]
    if len({*rounds}) != SavedRun.at(folder / "run").experiment.run.rounds:
        found.append(f"rounds {sorted({*rounds})} were played")
    load(folder / "run")  # as a whole
    return found + _other_files(folder, model)


# --- compare, export, cache ----------------------------------------------------------


def _compare(world: World, folder: Path) -> None:
    grid = Grid((world.path / "train.toml",), seeds=1, baselines=("popularity",))
    found = compare(grid, folder / "comparison")
    (folder / "cells.json").write_text(json.dumps(found.cells()))


def _export(world: World, folder: Path) -> None:
    if not (folder / "device").exists():  # else: it is there, and nothing overwrites it
        exporting.export(world.run, folder / "device")


def _fill_cache(world: World, folder: Path) -> None:
    table = EventsTable(world.path / "table.csv", user="who", item="what")
    digest = content_digest(table.load(cache=folder / "cache"))
    (folder / "digest").write_text(digest)


# --- ledger --------------------------------------------------------------------------


def _answer(_: World, folder: Path) -> None:
    handset["live"](folder, ROUND, 1)


def _wrong_ledger(folder: Path, model: Path) -> list[str]:
    said = {*(folder / "received").read_text().splitlines()}
    os.environ["TACIT_STATE"] = _anchors(folder)
    with ClientLedger(folder / "ledger.db", create=False) as ledger:
        entries, waiting = [e.round for e in ledger.entries()], len(ledger.pending())
    found = _other_files(folder, model)
    if entries != [ROUND] or waiting:
        found.append(f"the ledger has rounds {entries}, and {waiting} reports wait")
    if len(said) != 1:
        found.append(f"{len(said)} different reports were sent")
    return found


# --- query ---------------------------------------------------------------------------


def _ask(_: World, folder: Path) -> None:
    """A client makes a query on each of two days and sends it to a file."""
    path = folder / "ledger.db"
    if (folder / "received").exists():
        _check_entered(folder)
    for day in range(DAYS):
        now = 86_400.0 * (1000 + day)
        with ServingClient(path, SERVED, now=partial(float, now)) as client:
            keep = client.ledger.keep

            def kept(*names: Any, keep: Any = keep, **values: Any) -> Any:
                _die_at("made")
                found = keep(*names, **values)
                _die_at("kept")
                return found

            client.ledger.keep = kept  # type: ignore[method-assign]
            query = client.query(_vector)
            assert isinstance(query, Query), query
            _send(folder, f"\n{day}:{query.encode().hex()}".encode())
            client.delivered(query)


def _vector() -> Any:
    _die_at("charged")
    return np.array([1.0, 0.0])


def _send(folder: Path, line: bytes) -> None:
    """Send in two halves, as a network may."""
    handle = os.open(folder / "received", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    half = len(line) // 2
    os.write(handle, line[:half])
    _die_at("half sent")
    os.write(handle, line[half:])
    _die_at("sent")
    os.close(handle)


def _die_at(point: str) -> None:
    if point == last_point:
        os.kill(os.getpid(), signal.SIGKILL)


def _received(folder: Path) -> dict[str, set[str]]:
    """What arrived on each day; beginnings of what also arrived whole are left out."""
    found: dict[str, set[str]] = {}
    for line in (folder / "received").read_text().split():
        day, _, said = line.partition(":")
        found.setdefault(day, set()).add(said)
    return {
        day: {one for one in said if not any(_begins(one, o) for o in said)}
        for day, said in found.items()
    }


def _begins(one: str, other: str) -> bool:
    return len(one) < len(other) and other.startswith(one)


def _check_entered(folder: Path) -> None:
    with ClientLedger(folder / "ledger.db", create=False) as ledger:
        entries = len(ledger.entries())
    said = sum(map(len, _received(folder).values()))
    assert said <= entries, f"{said} queries left, and {entries} are entered"


def _wrong_query(folder: Path, model: Path) -> list[str]:
    os.environ["TACIT_STATE"] = _anchors(folder)
    with ClientLedger(folder / "ledger.db", create=False) as ledger:
        entries, waiting = len(ledger.entries()), ledger.waiting()
    found = _other_files(folder, model)
    if (entries, waiting) != (DAYS, 0):
        found.append(f"{entries} entries of {DAYS} days, and {waiting} wait")
    for day, said in _received(folder).items():
        if len(said) != 1:
            found.append(f"day {day}: {len(said)} different queries left")
    return found


# --- What is compared ----------------------------------------------------------------


def _differences(folder: Path, model: Path) -> list[str]:
    """Files that are not those of the model, or say something else."""
    found = _other_files(folder, model)
    for path in _files(model):
        ours, theirs = folder / path, model / path
        if ours.exists() and _content(ours) != _content(theirs):
            found.append(f"{path} has another content")
    return found


def _other_files(folder: Path, model: Path) -> list[str]:
    ours, theirs = {*_files(folder)}, {*_files(model)}
    more = [f"{path} was left over" for path in sorted(ours - theirs)]
    return more + [f"{path} is missing" for path in sorted(theirs - ours)]


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if not path.is_dir() or path.name.startswith("."):
            yield path.relative_to(folder)


def _content(path: Path) -> object:
    """All that may not differ."""
    if path.suffix in PAGES:
        return None
    if path.suffix == ".json" and path.name != "cells.json":
        return _without_times(json.loads(path.read_text()))
    if path.suffix == ".jsonl":
        lines = path.read_text().splitlines()
        return [_without_times(json.loads(line)) for line in lines]
    return path.read_bytes()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k not in TIMES}
    return value


handset = runpy.run_path(str(HANDSET))
last_point: str | None = None  # where the next life ends by its own hand

SPACE = ItemSpace(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), np.zeros(3))
CORNERS = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]] * 5)
SERVED = ServedModel(
    SPACE,
    InterestResponse(
        1.0, find_interests(SPACE, CORNERS, count=3, key=Key.from_seed(0))
    ),
)

TRAIN = Task("train", _train, _wrong_run)
RELEASE = Task("release", _release, _wrong_release)
COMPARE = Task("compare", _compare, _differences)
EXPORT = Task("export", _export, _differences)
CACHE = Task("cache", _fill_cache, _differences)
LEDGER = Task("ledger", _answer, _wrong_ledger)
QUERY = Task(
    "query", _ask, _wrong_query, ("charged", "made", "kept", "half sent", "sent")
)
TASKS = (TRAIN, RELEASE, COMPARE, EXPORT, CACHE, LEDGER, QUERY)

if __name__ == "__main__":
    sys.exit(main())
