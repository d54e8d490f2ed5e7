"""A SuperLink and three SuperNodes on this machine: real processes, to run and kill."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tacit.child_processes import ChildProcess
from tacit.cli.flower_processes import (
    Flwr,
    Link,
    start_superlink,
    start_supernode,
)
from tacit.data.user_shares import share_of
from tacit.errors import Unanswered
from tacit.experiment.assemble import assemble
from tacit.experiment.over_nodes import prepare_node
from tacit.experiment.settings import read_experiment
from tacit.method import Unmetered
from tacit.runtime.simulate import Simulation
from tacit.serving.model_file import load_model
from tacit.transport.node_answer import Share

GUARD = Path(__file__).parent / "guard"
SHARES = 3
BASE = """
[data]
source = "synthetic"
world = { users = 90, items = 40, events_per_user = 8.0, rank = 3, seed = 1 }
split = "new-users"
validation = 5
test = 5

[run]
seed = 4
rounds = %d
%s

[evaluate]
metrics = ["ndcg@10"]
baselines = []
"""


def experiment(folder: Path, name: str, method: str, *, rounds=2, run="") -> Path:
    """An experiment file on a small world, with these sections of its method."""
    path = folder / f"{name}.toml"
    path.write_text(BASE % (rounds, run) + method)
    return path


def free_ports(n: int) -> int:
    """The first of `n` ports in a row that nobody listens on."""
    while True:
        first = random.randrange(20_000, 50_000)
        try:
            for port in range(first, first + n):
                with socket.socket() as tried:
                    tried.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


def guarded(place: Path) -> None:
    """Let every process that this one starts refuse to connect elsewhere."""
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(GUARD), known]))
    os.environ["TACIT_TEST_CONNECTIONS"] = str(place / "connections.log")
    os.environ["TACIT_CACHE"] = str(place / "cache")
    os.environ["TACIT_STATE"] = str(place / "state")


@dataclass
class Federation:
    """The processes of one test; each can be killed and started again."""

    place: Path
    port: int = field(default_factory=lambda: free_ports(1 + SHARES))
    processes: dict[str, ChildProcess] = field(default_factory=dict)

    @property
    def link(self) -> Link:
        return Link(f"127.0.0.1:{self.port}")

    @property
    def flwr(self) -> Flwr:
        return Flwr(self.link, self.place / "flwr")

    def prepare(self, path: Path) -> None:
        settings = read_experiment(path)
        for part in range(SHARES):
            prepare_node(settings, Share(part, SHARES), self.place / f"node-{part}")

    def start_link(self) -> None:
        self.processes["link"] = start_superlink(self.place, port=self.port)
        self.wait(self._answers, "the SuperLink answers")

    def _answers(self) -> bool:
        self.processes["link"].refuse_ended()
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def start_node(self, part: int, **environment: str) -> None:
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        try:
            made = start_supernode(
                self.place / f"node-{part}", self.link, port=self.port + 1 + part
            )
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        self.processes[f"node {part}"] = made

    def kill(self, name: str) -> None:
        """End a process and all that it started at once, as a power cut does."""
        killed = self.processes.pop(name)
        for pid in [killed.popen.pid, *below(killed.popen.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.stop()

    def stop(self) -> None:
        for name in [*self.processes]:
            self.kill(name)

    def run(self, path: Path, out: Path, *words: str) -> subprocess.Popen[str]:
        """`tacit flower run` as a process of its own."""
        command = [sys.executable, "-m", "tacit", "flower", "run", str(path)]
        command += ["--nodes", str(SHARES), "--superlink", self.link.address]
        command += ["--out", str(out), "--json", *words]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait(self, is_so: Callable[[], bool], what: str, seconds=120.0) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if is_so():
                return
            time.sleep(0.1)
        raise Unanswered(f"after {seconds} s it is not so that {what}")


def below(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    children = [int(child) for child in text.split()]
    return [*children, *(one for child in children for one in below(child))]


def finished(process: subprocess.Popen[str]) -> dict[str, object]:
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err + out
    return json.loads(out)


def rounds_of(out: Path) -> list[dict[str, object]]:
    path = out / "metrics.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


class _Without(Unmetered):
    """The ledger of clients of whom some rows refuse in some rounds."""

    def __init__(self, rows, rounds):
        self.rows, self.rounds = rows, rounds

    def permits(self, clients, *, round, multipliers=None):
        if round not in self.rounds:
            return np.ones(len(clients), bool)
        return ~np.isin(clients, self.rows)


def on_one_machine(path: Path, *, without=(), rounds=range(10**6)) -> Simulation:
    """The same experiment here; users of the shares `without` refuse in `rounds`."""
    made = assemble(read_experiment(path)).simulation
    if not without:
        return made
    ids = made.profiles.ids
    rows = [i for i, one in enumerate(ids) if share_of(one, parts=SHARES) in without]
    return Simulation(
        made.method,
        made.plan,
        made.catalog,
        made.profiles,
        made.shards,
        made.key,
        groups=made.groups,
        ledger=_Without(np.array(rows), rounds),
    )


def assert_same_model(out: Path, made: Simulation) -> None:
    """The model of a run equals that of one machine: 1e-9 for each round."""
    *_, (state, _) = made.run(made.start())
    expected = made.method.broadcast(state.server).weights
    found = load_model(out / "model.safetensors", out / "model.json").broadcast.weights
    assert found.keys() == expected.keys()
    # A rounding of the first round is carried on by the next, hence 1e-9 a round.
    for name, value in expected.items():
        np.testing.assert_allclose(
            found[name], value, rtol=1e-9 * made.plan.rounds, atol=1e-9, err_msg=name
        )
