"""`python -m benchmarks.federation_quality`: what two servers cost on MovieLens-1M.

For every epsilon, NDCG@100 on the test users of

    trusted      one trusted aggregator, epsilon in the release view     (simulated)
    two servers  full noise of each, epsilon in the server's view        (simulated)
    services     the same through leader, helper and coordinator: processes of their
                 own, every client's report sealed and sent over HTTP

and, for the services, whether what both published less both noises is the sum of all
reports in every number. Each draw has new noise; the split is one. `--set` changes the
experiment, such as another data set.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.federation_seeds import Noting, noted_seed
from tacit.exact_sum import Noise
from tacit.experiment.assemble import assemble, data_read_once
from tacit.experiment.evaluate import evaluate_method
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.service.federation.coordinated_run import CoordinatedRun, PublishedSum
from tacit.service.federation.one_machine import TwoServersTrial
from tacit.service.federation.sealing import SumFields
from tacit.service.federation.seed_batches import Closing
from tacit.service.federation.services import serve_aggregator, serve_coordinator
from tacit.service.federation.settings import (
    AggregatorSettings,
    CoordinatorSettings,
    read_settings,
)
from tacit.service.federation.simulated_clients import Counts, SimulatedClients
from tacit.service.federation.trial import wait_for
from tacit.service.manifest import read_document
from tacit.transport.shared_sum import from_bytes, modulo

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "ml-1m-gram.toml"
METRIC = "ndcg@100"
PROCESSES = multiprocessing.get_context("spawn")


def main() -> int:
    """Print one line per epsilon and way; 1 if a sum was not exact."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation_quality")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    parser.add_argument("--draws", type=int, default=3, help="of each simulation")
    parser.add_argument("--runs", type=int, default=1, help="through the services")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    options = parser.parse_args()
    is_exact = True
    print(f"{'epsilon':>8} {'way':12} {METRIC:>9} {'se':>7}  draws, seconds each")
    with data_read_once():
        for epsilon in options.epsilons:
            for way, n in (
                ("trusted", options.draws),
                ("two servers", options.draws),
                ("services", options.runs),
            ):
                found, seconds = [], time.monotonic()
                for draw in range(n):
                    if way == "services":
                        value, exact = through_services(options, epsilon)
                        is_exact &= exact
                    else:
                        value = simulated(options, epsilon, way, draw)
                    found.append(value)
                if n:
                    each = (time.monotonic() - seconds) / n
                    spread = np.std(found, ddof=1) / n**0.5 if n > 1 else float("nan")
                    told = f"{np.mean(found):9.4f} {spread:7.4f}  {n}, {each:.0f} s"
                    print(f"{epsilon:8g} {way:12} {told}", flush=True)
    print("sums exact in every number" if is_exact else "WRONG: a sum is not exact")
    return 0 if is_exact else 1


def _experiment(options: Any, epsilon: float, *changes: str) -> Any:
    target = f"privacy.target_epsilon={epsilon}"
    return read_experiment(options.experiment, [*options.changes, target, *changes])


def simulated(options: Any, epsilon: float, way: str, draw: int) -> float:
    """The metric of one simulation, with the noise of this draw."""
    channel = "secure_sum" if way == "trusted" else "two_servers"
    made = _experiment(options, epsilon, f"privacy.channel={channel}", "data.seed=0")
    assembled = assemble(replace(made, run=replace(made.run, seed=1000 + draw)))
    simulation = assembled.simulation
    *_, (state, _) = simulation.run(simulation.start())
    found = evaluate_method(assembled, state, assembled.split.test)
    return float(found.metrics()[METRIC].mean)


# --- Through the services -------------------------------------------------------------


def through_services(options: Any, epsilon: float) -> tuple[float, bool]:
    """The metric of one run over real processes, and whether its sums were exact."""
    made = _experiment(options, epsilon, "privacy.channel=two_servers", "data.seed=0")
    assembled = assemble(made)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "federation"
        trial = TwoServersTrial.prepared(assembled, place)
        processes = [
            PROCESSES.Process(target=serve, args=(role, place)) for role in trial.roles
        ]
        try:
            for one, role in zip(processes, trial.roles, strict=True):
                one.start()
                wait_for(_alive(one), place / f"{role}.toml")
            counts = play(trial)
        finally:
            for one in processes:
                one.terminate()
                one.join(30)
        sums = published(place)
        exact = all(
            is_exact(place, one, own) for one, own in zip(sums, counts, strict=True)
        )
        assert isinstance(trial.run, CoordinatedRun)
        server = trial.run.after([one for _, one in sums])
    state = replace(assembled.simulation.start(), server=server)
    found = evaluate_method(assembled, state, assembled.split.test)
    return float(found.metrics()[METRIC].mean), exact


def play(trial: TwoServersTrial) -> list[Counts]:
    """Answer all rounds with every client; what each round added up to."""
    simulation = trial.assembled.simulation
    clients = SimulatedClients(
        trial.url, trial.run.invitation, simulation.shards, Key.from_os()
    )
    found: list[Counts] = []
    while not trial.status()["is_over"]:
        answered = clients.answer(keeps_total=True)
        if answered is None:
            time.sleep(0.1)
            continue
        assert answered.delivered == answered.clients == trial.cast.simulated
        found.append(answered)
    return found


def serve(role: str, place: Path) -> None:
    """One service; aggregators note the seed of their noise before it is erased."""
    os.environ["TACIT_STATE"] = str(place / "state")
    sys.stdout = sys.stderr = (place / "log").open("a")
    path = place / f"{role}.toml"
    if role == "coordinator":
        serve_coordinator(read_settings(path, CoordinatorSettings))
        return
    settings = read_settings(path, AggregatorSettings)
    serve_aggregator(settings, passing=Noting(place, role))


def published(place: Path) -> list[tuple[Any, PublishedSum]]:
    """The manifest of each round, and what both operators published of it."""
    query = "SELECT document, closing, sum, reports FROM rounds ORDER BY number"
    with closing(sqlite3.connect(place / "coordinator" / "coordinator.db")) as file:
        rows = file.execute(query).fetchall()
    found = []
    for document, closed, own, reports in rows:
        manifest = read_document(document, SumFields)
        leader = Closing.read(closed, numbers=manifest.fields.numbers).published
        found.append((manifest, PublishedSum(leader, own, reports)))
    return found


def is_exact(place: Path, one: tuple[Any, PublishedSum], counts: Counts) -> bool:
    """Whether both published arrays less both noises are the sum of all reports."""
    manifest, sums = one
    total = from_bytes(sums.leader, manifest.fields.numbers)
    total = total + from_bytes(sums.helper, manifest.fields.numbers)
    for role in ("leader", "helper"):
        seed = noted_seed(place, role, manifest.round_id)
        noise = Noise(seed).draw(manifest.fields.sigma**2, len(total))
        total = total - modulo(noise)
    assert counts.total is not None
    return bool((total == modulo(counts.total)).all())


class _alive:  # noqa: N801
    """A process as `wait_for` asks it."""

    def __init__(self, process: Any) -> None:
        self._process = process

    def poll(self) -> int | None:
        code: int | None = self._process.exitcode
        return code


if __name__ == "__main__":
    raise SystemExit(main())
