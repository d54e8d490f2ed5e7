"""`python -m benchmarks.flower`: users on several nodes, beside one machine and Ray.

    --users 200000 --nodes 4 --method popularity   seconds a round, memory of a process
    --users 1000000 --nodes 4 --method gram        end to end, memory of all processes
    --ray 1000 --ray-python .venv-ray/bin/python   beside Flower's own simulation
    --smoke                                        300 users on nodes in this process

It needs the environment of `make test-flower`, but for `--smoke`. Ray is in one of its
own, made by `make .venv-ray/.installed`, whose Python is named; the ratio is that of
the time per client. Every node has a table of its own users in Parquet. The same users
are then trained on one machine, in a process of its own. It ends with code 1 if the
models are apart by more than 1e-9 a round, or if the largest memory of all processes
together is above 12 GiB.

Memory is the largest that the system has seen a process hold (VmHWM). Flower starts a
process for each message, so a node is its SuperNode, its executor and the largest of
those processes. Seconds a round are the server's: from the question to the model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ITEMS, EVENTS = 2_000, 20  # of a world, and per user
APART_PER_ROUND = 1e-9  # the largest difference of a number of both models
MOST_GIB = 12.0  # of the peaks of all processes together
METHODS = {
    "popularity": """
[method]
name = "federated_popularity"
max_votes = 20
""",
    "gram": """
[method]
name = "gram"
count_rounds = 1
head = 500
rank = 32
""",
}
EXPERIMENT = """
[data]
source = "table"
items = "declared"
split = "none"
population = %d
[data.table]
path = "%s"
user = "user"
item = "item"
[data.table.items]
path = "%s"
item = "item"
[privacy]
mechanism = "central"
channel = "secure_sum"
noise_multiplier = 1.0
delta = 1e-7
[run]
seed = 1
rounds = %d
[evaluate]
metrics = ["ndcg@10"]
baselines = []
"""


def write_world(folder: Path, *, users: int, nodes: int, form: str) -> None:
    """One table of items, and one table of events per node, by a hash of the user."""
    from tacit.data.user_shares import share_of

    write = _write_parquet if form == "parquet" else _write_csv
    write(folder / f"items.{form}", {"item": [f"i{i}" for i in range(ITEMS)]})
    ids = [f"u{i}" for i in range(users)]
    shares = np.array([share_of(one, parts=nodes) for one in ids])
    weights = 1.0 / np.arange(1, ITEMS + 1) ** 0.8
    edges = np.cumsum(weights / weights.sum())
    draws = np.random.default_rng(0)
    for part in range(nodes):
        own = np.flatnonzero(shares == part)
        items = np.searchsorted(edges, draws.random((len(own), EVENTS)))
        # Half of what somebody has is of their own kind, so that there is a structure.
        kinds = (own % 10)[:, None]
        is_own = draws.random(items.shape) < 0.5
        items = np.minimum(np.where(is_own, items // 10 * 10 + kinds, items), ITEMS - 1)
        columns = {
            "user": [f"u{i}" for i in np.repeat(own, EVENTS)],
            "item": [f"i{i}" for i in items.ravel()],
        }
        write(folder / f"events-{part}.{form}", columns)


def _write_parquet(path: Path, columns: dict[str, list[str]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path)


def _write_csv(path: Path, columns: dict[str, list[str]]) -> None:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def write_experiments(
    folder: Path, *, users: int, nodes: int, method: str, rounds: int, form: str
) -> list[Path]:
    """One experiment per node, which differ in the table alone."""
    made = []
    for part in range(nodes):
        table, items = folder / f"events-{part}.{form}", folder / f"items.{form}"
        made.append(folder / f"node-{part}.toml")
        text = EXPERIMENT % (users, table, items, rounds) + METHODS[method]
        made[-1].write_text(text)
    return made


# --- Memory ---------------------------------------------------------------------------


@dataclass
class Watch:
    """The largest memory of every process below this one, by what it is."""

    seen: dict[int, tuple[str, int]] = field(default_factory=dict)
    ended: bool = False

    def __enter__(self) -> Watch:
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True
        self.thread.join()

    def _watch(self) -> None:
        while not self.ended:
            for pid in _below(os.getpid()):
                found = _peak(pid)
                if found is not None:
                    name, peak = found
                    known, before = self.seen.get(pid, (name, 0))
                    largest = max(peak, before) if known == name else peak
                    self.seen[pid] = name, largest
            time.sleep(0.1)

    def by_role(self) -> dict[str, int]:
        """The largest process of each role, in bytes."""
        roles: dict[str, int] = {}
        for name, peak in self.seen.values():
            if name == "other":
                continue
            roles[name] = max(roles.get(name, 0), peak)
        return dict(sorted(roles.items()))


def _below(pid: int) -> list[int]:
    found, ahead = [], [pid]
    while ahead:
        one = ahead.pop()
        try:
            text = Path(f"/proc/{one}/task/{one}/children").read_text()
        except OSError:
            continue
        children = [int(child) for child in text.split()]
        found += children
        ahead += children
    return found


def _peak(pid: int) -> tuple[str, int] | None:
    try:
        words = _words(pid)
        status = Path(f"/proc/{pid}/status").read_text()
        if _words(pid) != words:  # just before it became another program
            return None
        line = next(one for one in status.splitlines() if one.startswith("VmHWM"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None
    return _role(words), int(line.split()[1]) * 1024


def _words(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")


def _role(words: Sequence[str]) -> str:
    """Which of Flower's programs, and of which node, by the port it speaks to."""
    text = " ".join(words)
    nodes = ("flower-superlink", "flower-supernode", "flower-superexec")
    for kind in (*nodes, "flwr-serverapp", "flwr-clientapp"):
        if kind in text:
            named = ("--runtime-api-address", "--port")
            for flag in named:
                if flag in words:
                    return f"{kind} {words[words.index(flag) + 1].rpartition(':')[2]}"
            return kind
    # What this process has at a fork counts as the child's, until it is a program.
    return "tacit flower" if "tacit" in words else "other"


# --- Runs -----------------------------------------------------------------------------


def over_nodes(folder: Path, paths: Sequence[Path]) -> dict[str, Any]:
    """A run on so many nodes: seconds to prepare, per round and in all, and memory."""
    from tacit.cli.flower_processes import (
        Flwr,
        Link,
        start_superlink,
        start_supernode,
    )

    port, nodes = 9600, len(paths)
    link = Link(f"127.0.0.1:{port}")
    began = time.monotonic()
    with Watch() as watch:
        for part, path in enumerate(paths):
            words = ["--share", f"{part}/{nodes}", "--own", "--prepare"]
            words += ["--folder", str(folder / f"node-{part}")]
            _tacit("flower", "node", str(path), *words)
        prepared = time.monotonic() - began
        processes = [start_superlink(folder / "link", port=port)]
        try:
            asked = Flwr(link, folder / "flwr")
            time.sleep(5)
            for part in range(nodes):
                place = folder / f"node-{part}"
                processes.append(start_supernode(place, link, port=port + 1 + part))
            asked.wait_for_nodes(nodes, processes)
            began_run = time.monotonic()
            out = folder / "run"
            words = ["--nodes", str(nodes), "--superlink", link.address]
            _tacit("flower", "run", str(paths[0]), *words, "--out", str(out))
            took = time.monotonic() - began_run
        finally:
            for process in reversed(processes):
                process.stop()
    lines = (out / "metrics.jsonl").read_text().splitlines()
    roles = watch.by_role()
    return {
        "seconds_to_prepare": round(prepared, 1),
        "seconds_of_run": round(took, 1),
        "seconds_per_round": [round(json.loads(x)["seconds"], 2) for x in lines],
        "took_part": [json.loads(x)["simulation_only"]["took_part"] for x in lines],
        "peak_mib": {name: round(size / 2**20) for name, size in roles.items()},
        "sum_of_peaks_gib": round(sum(roles.values()) / 2**30, 2),
    }


def in_process(folder: Path, paths: Sequence[Path]) -> dict[str, Any]:
    """The same run over nodes that this process opens for every question."""
    from tacit.experiment.over_nodes import gather_over, head_of, node_at, prepare_node
    from tacit.experiment.settings import Experiment, read_experiment
    from tacit.experiment.training import train
    from tacit.runtime.federation import Reply
    from tacit.transport.node_answer import Share

    experiment = read_experiment(paths[0])
    head = head_of(experiment).digest
    for part, path in enumerate(paths):
        share = Share(part, len(paths))
        prepare_node(read_experiment(path), share, folder / f"node-{part}", own=True)

    class Nodes:
        def ask(
            self, question: bytes, *, round: int, most_bytes: int
        ) -> Iterator[Reply]:
            assert most_bytes > 0
            for part in range(len(paths)):
                node = node_at(folder / f"node-{part}", "smoke", head=head)
                yield Reply(f"node {part} in round {round}", node.answer(question))

    def gather(known: Experiment) -> Any:
        return gather_over(known, Nodes(), shares=len(paths))

    train(experiment, folder / "run", page=False, gather=gather)
    return {}


def _tacit(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "tacit", *words], check=True)


def one_machine(folder: Path, *, users: int, nodes: int) -> dict[str, Any]:
    """The same users in one process, which prints its figures and keeps its model."""
    command = [sys.executable, "-m", "benchmarks.flower", "--alone", str(folder)]
    command += ["--users", str(users), "--nodes", str(nodes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def alone(folder: Path, *, users: int, nodes: int) -> None:
    """Train here on all tables and print the figures; `one_machine` calls it."""
    from tacit import memory
    from tacit.data import cache
    from tacit.data.interactions import Interactions
    from tacit.data.shards import Shards
    from tacit.data.strings import Strings
    from tacit.experiment.over_nodes import head_of
    from tacit.experiment.settings import read_experiment
    from tacit.keys import Key
    from tacit.method import Profiles
    from tacit.runtime.simulate import Simulation
    from tacit.serving.model_file import load_model

    experiment = read_experiment(folder / "node-0.toml")
    head = head_of(experiment)
    ids, numbers, logs = [], [], []
    for part in range(nodes):
        place = folder / f"node-{part}" / head.digest
        dataset = cache.read(place / "shard")
        assert dataset is not None
        logs.append(dataset.interactions)
        ids += [*dataset.profiles.ids]
        numbers.append(np.load(place / "numbers.npy"))
    items = np.concatenate([log.items for log in logs])
    lengths = np.concatenate([np.diff(log.offsets) for log in logs])
    whole = Interactions.of_columns(
        np.repeat(np.arange(len(ids)), lengths),
        items,
        n_users=len(ids),
        n_items=len(head.catalog),
    )
    made = Simulation(
        head.method,
        head.plan,
        head.catalog,
        Profiles(Strings.of(ids)),
        Shards.of(whole),
        Key.from_seed(1).at("run"),
        absent=users - len(ids),
        numbers=np.concatenate(numbers),
    )
    state, seconds = made.start(), []
    while not made.method.is_over(state.server):
        began = time.monotonic()
        state, _ = made.step(state)
        seconds.append(round(time.monotonic() - began, 2))
    run = folder / "run"
    found = load_model(run / "model.safetensors", run / "model.json").broadcast.weights
    expected = made.method.broadcast(state.server).weights
    apart = max(
        float(np.max(np.abs(found[name] - value))) if value.size else 0.0
        for name, value in expected.items()
    )
    print(
        json.dumps(
            {
                "users": len(ids),
                "seconds_per_round": seconds,
                "peak_mib": round((memory.peak() or 0) / 2**20),
                "models_apart": apart,
            }
        )
    )


def beside_ray(clients: int, python: Path) -> dict[str, object]:
    """Flower's own simulation of so many clients, in the environment of that Python."""
    command = [str(python), "-m", "benchmarks.flower", "--ray-alone", str(clients)]
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "FLWR_TELEMETRY_ENABLED": "0"}
    quiet |= {"FLWR_DISABLE_UPDATE_CHECK": "1"}
    done = subprocess.run(
        command, env={**os.environ, **quiet}, check=True, stdout=subprocess.PIPE
    )
    found: dict[str, object] = json.loads(done.stdout.decode().splitlines()[-1])
    return found


def milliseconds_per_client(spread: dict[str, Any]) -> float:
    """Of a run over nodes: all of its rounds over all that took part in them."""
    seconds, took_part = sum(spread["seconds_per_round"]), sum(spread["took_part"])
    return round(1e3 * seconds / took_part, 4)


def problems(
    spread: dict[str, Any], single: dict[str, Any], *, rounds: int
) -> list[str]:
    """What is not as promised; nothing in a run that passed."""
    found, most = [], APART_PER_ROUND * rounds
    if not single["models_apart"] <= most:  # not >, so that a NaN is one
        found.append(f"models are apart by {single['models_apart']:g}, above {most:g}")
    peaks = spread.get("sum_of_peaks_gib", 0.0)
    if not peaks <= MOST_GIB:
        found.append(f"the peaks of all processes are {peaks} GiB, above {MOST_GIB:g}")
    return found


def ray(clients: int) -> dict[str, object]:
    """Flower's own simulation: one client app per user, over Ray's workers."""
    from flwr.simulation import run_simulation

    from benchmarks.flower_ray import client, server_for

    took: list[float] = []
    began = time.monotonic()
    run_simulation(
        server_app=server_for(clients, took),
        client_app=client,
        num_supernodes=clients,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    return {
        "clients": clients,
        "seconds_of_round": round(took[0], 2),
        "milliseconds_per_client": round(1e3 * took[0] / clients, 2),
        "seconds_in_all": round(time.monotonic() - began, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one JSON document; 1 if something is not as promised."""
    asked = _asked(arguments)
    sizes = {
        "users": asked.users,
        "nodes": asked.nodes,
        "method": asked.method,
        "rounds": asked.rounds,
    }
    if asked.alone is not None:
        alone(asked.alone, users=asked.users, nodes=asked.nodes)
        return 0
    if asked.ray_alone:
        print(json.dumps(ray(asked.ray_alone)))
        return 0
    with tempfile.TemporaryDirectory(prefix="tacit-flower-") as name:
        folder = Path(name)
        os.environ["TACIT_CACHE"] = str(folder / "cache")
        os.environ["TACIT_STATE"] = str(folder / "state")
        form = "csv" if asked.smoke else "parquet"
        write_world(folder, users=asked.users, nodes=asked.nodes, form=form)
        paths = write_experiments(folder, **sizes, form=form)
        spread = (in_process if asked.smoke else over_nodes)(folder, paths)
        single = one_machine(folder, users=asked.users, nodes=asked.nodes)
    found: dict[str, Any] = {**sizes, "over_nodes": spread, "one_machine": single}
    if asked.ray:
        # After the nodes have ended: each has the machine for itself.
        theirs = beside_ray(asked.ray, asked.ray_python)
        found["ray"], own = theirs, milliseconds_per_client(spread)
        found["milliseconds_per_client_over_nodes"] = own
        ratio = float(str(theirs["milliseconds_per_client"])) / own
        found["ray_takes_times_as_long_per_client"] = round(ratio, 1)
    found["problems"] = problems(spread, single, rounds=asked.rounds)
    print(json.dumps(found, indent=2))
    return 1 if found["problems"] else 0


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flower")
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--method", choices=[*METHODS], default="popularity")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ray", type=int, default=0, metavar="CLIENTS")
    parser.add_argument("--ray-python", type=Path, default=Path(".venv-ray/bin/python"))
    parser.add_argument("--ray-alone", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--smoke", action="store_true", help="300 users on two nodes")
    parser.add_argument("--alone", type=Path, default=None, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.smoke:
        asked.users, asked.nodes, asked.ray = 300, 2, 0
    if asked.ray and not asked.ray_python.exists():
        parser.error(f"{asked.ray_python} is not there; make .venv-ray/.installed")
    return asked


if __name__ == "__main__":
    sys.exit(main())
