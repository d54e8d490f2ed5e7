"""Gram's choices on the validation users of MovieLens 1M: tables of its page.

    TACIT_DATA=… python -m benchmarks.gram_validation refresh
    TACIT_DATA=… python -m benchmarks.gram_validation reach

NDCG@100 of protocol P1's 500 validation users, three seeds, one draw of noise each.
Content is what the catalog tells of its items: genres and the year.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import evaluate_method
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import CentralGaussian, Unprotected
from tacit.methods.gram import Gram
from tacit.methods.gram_heuristics import Evidence
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.runtime.warm_start import Earlier

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "ml-1m-gram.toml"

Row = tuple[str, float]


@dataclass(frozen=True)
class Bench:
    """The users of one seed."""

    assembled: Assembled
    seed: int

    @classmethod
    def of(cls, experiment: Path, seed: int) -> Bench:
        return cls(assemble(read_experiment(experiment, [f"run.seed={seed}"])), seed)

    def run(
        self,
        method: Gram,
        rows: np.ndarray,
        *,
        epsilon: float | None,
        draw: int,
        rounds: int = 2,
        earlier: Earlier | None = None,
    ) -> tuple[Gram, Earlier, float]:
        """The method as calibrated, what it left, and NDCG@100."""
        split = self.assembled.split
        plan = Plan(
            len(rows),
            rounds=rounds,
            channel="secure_sum",
            delta=1e-6,
            target_epsilon=epsilon,
        )
        made = method.calibrated(plan)
        simulation = Simulation(
            made,
            plan,
            split.catalog,
            split.profiles.take(split.users[rows]),
            split.train.take(rows),
            Key.from_seed(10 * self.seed + draw),
            earlier=earlier,
        )
        *_, (state, _) = simulation.run(simulation.start())
        trained = replace(split, users=split.users[rows], train=split.train.take(rows))
        judged = replace(self.assembled, simulation=simulation, split=trained)
        found = (
            evaluate_method(judged, state, split.validation).metrics()["ndcg@100"].mean
        )
        server = state.server
        return made, Earlier(server.weights, server.memory, ()), found


def refresh(bench: Bench) -> Iterator[Row]:
    """Some users, then others; runs that are not a refresh choose their phases."""
    n = len(bench.assembled.split.users)
    order = np.random.default_rng(bench.seed).permutation(n)
    gram = Gram(privacy=CentralGaussian())
    for epsilon in (1.0, 2.0, 4.0, 8.0):
        for name, share in (("half", 0.5), ("four fifths", 0.8)):
            first, rest = (np.sort(r) for r in np.split(order, [int(share * n)]))
            made, left, found = bench.run(
                gram, first, epsilon=epsilon, draw=1, rounds=3
            )
            yield f"{epsilon:g} {name}", found
            again, anew = gram.refreshing(made), replace(gram, refresh="all")
            after = partial(bench.run, epsilon=epsilon, earlier=left)
            what = f"{epsilon:g} {name}"
            yield f"{what}, the rest", after(again, rest, draw=2, rounds=1)[2]
            yield f"{what}, the same", after(again, first, draw=2, rounds=1)[2]
            yield f"{what}, all anew", after(anew, rest, draw=3, rounds=2)[2]
            with patch.object(Evidence, "weight_beside", lambda *_: 1.0):
                found = after(again, rest, draw=2, rounds=1)[2]
            yield f"{what}, without a weight", found
        whole = bench.run(gram, np.arange(n), epsilon=epsilon, draw=5, rounds=3)
        yield f"{epsilon:g} one run", whole[2]


def reach(bench: Bench) -> Iterator[Row]:
    """More items than rows."""
    everyone = np.arange(len(bench.assembled.split.users))
    content = tuple(bench.assembled.split.catalog.features)
    for epsilon, rows in ((2.0, 360), (8.0, 600), (None, 600)):
        shapes: dict[str, dict[str, Any]] = {
            "head alone": {"head": rows},
            "with content": {"head": rows, "content": content},
            "twice": {"head": rows, "reach": 2 * rows, "content": content},
            "four times": {"head": rows, "reach": 4 * rows, "content": content},
            "exact twice": {"head": 2 * rows, "content": content},
        }
        for name, shape in shapes.items():
            privacy = CentralGaussian() if epsilon else Unprotected()
            method = Gram(privacy=privacy, **shape)
            found = bench.run(method, everyone, epsilon=epsilon, draw=1)[2]
            yield f"{epsilon} {rows} {name}", found


STUDIES: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "refresh": refresh,
    "reach": reach,
}


def main() -> None:
    """Print the mean over seeds and its standard error, for each row of the study."""
    asked, found = _options(), dict[str, list[float]]()
    for seed in range(asked.seeds):
        bench = Bench.of(asked.experiment, seed)
        for name, value in STUDIES[asked.study](bench):
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        error = np.std(values, ddof=1) / len(values) ** 0.5
        print(f"{name:32} {np.mean(values):.4f} ± {error:.4f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gram_validation")
    parser.add_argument("study", choices=[*STUDIES])
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--seeds", type=int, default=3, help="at least 2")
    return parser.parse_args()


if __name__ == "__main__":
    main()
