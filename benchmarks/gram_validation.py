"""Gram's choices on the validation users of MovieLens 1M: tables of its page.

    TACIT_DATA=… python -m benchmarks.gram_validation refresh
    TACIT_DATA=… python -m benchmarks.gram_validation reach

NDCG@100 of protocol P1's 500 validation users, three seeds, one draw of noise each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import judge
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import CentralGaussian, Unprotected
from tacit.methods.gram import Gram
from tacit.methods.gram_heuristics import Evidence
from tacit.plan import Plan
from tacit.runtime.simulate import Simulation
from tacit.runtime.warm_start import Earlier

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "ml-1m-gram.toml"
SEEDS = (0, 1, 2)
CONTENT = ("genres", "year")

Row = tuple[str, float]


@dataclass(frozen=True)
class Bench:
    """The users of one seed."""

    assembled: Assembled
    seed: int

    @classmethod
    def of(cls, seed: int) -> Bench:
        return cls(assemble(read_experiment(EXPERIMENT, [f"run.seed={seed}"])), seed)

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
        found = judge(judged, state, split.validation).metrics()["ndcg@100"].mean
        server = state.server
        return made, Earlier(server.weights, server.memory, ()), found


def refresh(bench: Bench) -> Iterator[Row]:
    """Some users, then others."""
    n = len(bench.assembled.split.users)
    order = np.random.default_rng(bench.seed).permutation(n)
    gram = Gram(privacy=CentralGaussian())
    for epsilon in (1.0, 2.0, 4.0, 8.0):
        for name, share in (("half", 0.5), ("four fifths", 0.8)):
            first, rest = (np.sort(r) for r in np.split(order, [int(share * n)]))
            made, left, found = bench.run(gram, first, epsilon=epsilon, draw=1)
            yield f"{epsilon:g} {name}", found
            again, anew = gram.refreshing(made), replace(gram, refresh="all")
            after = {"epsilon": epsilon, "draw": 2, "rounds": 1, "earlier": left}
            what = f"{epsilon:g} {name}"
            yield f"{what}, the rest", bench.run(again, rest, **after)[2]
            yield f"{what}, the same", bench.run(again, first, **after)[2]
            after |= {"draw": 3, "rounds": 2}
            yield f"{what}, all anew", bench.run(anew, rest, **after)[2]
            after |= {"draw": 2, "rounds": 1}
            with patch.object(Evidence, "weight_beside", lambda *_: 1.0):
                found = bench.run(again, rest, **after)[2]
            yield f"{what}, without a weight", found
        whole = bench.run(gram, np.arange(n), epsilon=epsilon, draw=5)
        yield f"{epsilon:g} one run", whole[2]


def reach(bench: Bench) -> Iterator[Row]:
    """More items than rows."""
    everyone = np.arange(len(bench.assembled.split.users))
    for epsilon, rows in ((2.0, 360), (8.0, 600), (None, 600)):
        shapes = {
            "head alone": {"head": rows},
            "with content": {"head": rows, "content": CONTENT},
            "twice": {"head": rows, "reach": 2 * rows, "content": CONTENT},
            "four times": {"head": rows, "reach": 4 * rows, "content": CONTENT},
            "exact twice": {"head": 2 * rows, "content": CONTENT},
        }
        for name, shape in shapes.items():
            privacy = CentralGaussian() if epsilon else Unprotected()
            method = Gram(privacy=privacy, **shape)
            found = bench.run(method, everyone, epsilon=epsilon, draw=1)[2]
            yield f"{epsilon} {rows} {name}", found


def main(study: Callable[[Bench], Iterator[Row]]) -> None:
    found: dict[str, list[float]] = {}
    for seed in SEEDS:
        for name, value in study(Bench.of(seed)):
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        error = np.std(values, ddof=1) / len(values) ** 0.5
        print(f"{name:32} {np.mean(values):.4f} ± {error:.4f}")


if __name__ == "__main__":
    main({"refresh": refresh, "reach": reach}[sys.argv[1]])
