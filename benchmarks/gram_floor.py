"""Gram next to private popularity and to its first version, paired over users.

    TACIT_DATA=… python -m benchmarks.gram_floor --part test --out floor.json
    python -m benchmarks.gram_floor --sets demo articles --epsilons 1 4

Private popularity has the whole budget, the first version counts once and relates once.
NDCG@100 of held-out users, mean over seeds and draws. A difference stands with its
standard error: the larger of that over users, each of whom has the mean over draws, and
that over runs, which has the noise. `foretold` is what the plan says beforehand, where
it is told how long a history usually is. The worlds are invented; some have the sizes
of tables on which the first version lost to popularity.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.data.splits import Split, new_users
from tacit.data.synthetic.world import World
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import evaluate_method
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import CentralGaussian, SumMethod, Unprotected
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.methods.gram_forecast import round_history, usual_history
from tacit.plans import Plan
from tacit.results import Metric
from tacit.runtime.simulate import Simulation

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "ml-1m-gram.toml"
METRIC = "ndcg@100"


def _source(name: str, least: float, held: int) -> tuple[str, ...]:
    """A data set at hand, the least value of a like, and how many are held out."""
    return (
        f'data.source="{name}"',
        f"data.min_value={least}",
        f"data.validation={held}",
        f"data.test={held}",
    )


SETS: dict[str, tuple[str, ...] | World] = {
    "ml-1m": (),
    "ml-100k": _source("movielens-100k", 4, 100),
    "lastfm": _source("lastfm", 1, 200),
    "citeulike-a": _source("citeulike-a", 0, 500),
    "steam": _source("steam-200k", 0, 500),
    "filmtrust": _source("filmtrust", 3, 150),
    "frappe": _source("frappe", 0, 100),
    "mind": _source("mind-small-sample", 0, 460),
    "demo": World(),
    "ratings": World(6_102, 15_536, events_per_user=30, popularity_exponent=0.6),
    "articles": World(2_873, 712, events_per_user=8, popularity_exponent=0.6),
    "films": World(534, 6_169, events_per_user=60, popularity_exponent=0.7),
    "few": World(300, 300, events_per_user=15),
    # Sizes that no rule was chosen on.
    "1k": World(1_000, 2_000, events_per_user=25, popularity_exponent=0.8),
    "3k": World(3_000, 1_000, events_per_user=12),
    "10k": World(10_000, 10_000, events_per_user=20, popularity_exponent=0.8),
    "30k": World(30_000, 5_000, events_per_user=10, popularity_exponent=0.7),
    "100k": World(100_000, 20_000, events_per_user=15, popularity_exponent=0.8),
    "300k": World(300_000, 3_000, events_per_user=8, popularity_exponent=0.7),
    "books": World(24_950, 167_063, events_per_user=12, popularity_exponent=0.6),
}
SMALL = ("ml-100k", "filmtrust", "few", "films", "1k")  # few users: a larger delta
METHODS: dict[str, Callable[[bool], tuple[SumMethod, int]]] = {
    "gram": lambda noisy: (Gram(privacy=_noise(noisy)), 3),
    "popularity": lambda noisy: (FederatedPopularity(privacy=_noise(noisy)), 1),
    "first version": lambda noisy: (Gram(privacy=_noise(noisy)), 2),
}


def _noise(noisy: bool) -> CentralGaussian | Unprotected:
    return CentralGaussian() if noisy else Unprotected()


@dataclass(frozen=True)
class Cell:
    """What was found on one set at one epsilon: a row per method, a column per user."""

    name: str
    epsilon: float
    found: dict[str, np.ndarray]
    runs: dict[str, np.ndarray]  # the means of the runs
    ended: str  # the last phase of Gram's first run
    foretold: str

    @property
    def differences(self) -> dict[str, Metric]:
        """How much Gram is above each of the others."""
        return {n: self._above(n) for n in self.found if n != "gram"}

    def _above(self, name: str) -> Metric:
        over_users, over_runs = (
            Metric.of(values["gram"] - values[name])
            for values in (self.found, self.runs)
        )
        return replace(over_users, se=max(over_users.se or 0.0, over_runs.se or 0.0))

    def shown(self) -> str:
        """One line: means, and differences with their standard errors."""
        own = self.found["gram"]
        parts = [f"{self.name:12} {self.epsilon:5g}  gram {own.mean():.4f}"]
        for name, values in self.found.items():
            if name != "gram":
                apart = self.differences[name]
                told = f"({apart.mean:+.4f} ± {apart.se:.4f})"
                parts.append(f"{name} {values.mean():.4f} {told}")
        return "  ".join([*parts, f"[{self.ended}; foretold: {self.foretold}]"])

    def json(self) -> dict[str, object]:
        """The same for a machine."""
        return {
            "set": self.name,
            "epsilon": self.epsilon,
            "means": {n: float(v.mean()) for n, v in self.found.items()},
            "differences": {n: m.to_json() for n, m in self.differences.items()},
            "ended": self.ended,
            "foretold": self.foretold,
        }


def cells(name: str, asked: argparse.Namespace) -> Iterator[Cell]:
    """Every epsilon on one set."""
    places = [_assembled(name, seed) for seed in range(asked.seeds)]
    for epsilon in asked.epsilons:
        found, runs = dict[str, list[np.ndarray]](), dict[str, list[float]]()
        ended, foretold = "", ""
        for seed, place in enumerate(places):
            for method in METHODS:
                draws = []
                for draw in range(asked.draws):
                    run = _Run(place, name, epsilon, seed=100 * seed + draw)
                    values, last, told = run.of(method, asked.part)
                    draws.append(values)
                    if method == "gram":
                        ended, foretold = ended or last, foretold or told
                found.setdefault(method, []).append(np.mean(draws, axis=0))
                runs.setdefault(method, []).extend(map(np.mean, draws))
        joined = {method: np.concatenate(values) for method, values in found.items()}
        means = {method: np.array(values) for method, values in runs.items()}
        yield Cell(name, epsilon, joined, means, ended, foretold)


def _assembled(name: str, seed: int) -> Assembled:
    kind = SETS[name]
    changes = kind if isinstance(kind, tuple) else ('data.source="synthetic"',)
    sizes = () if isinstance(kind, tuple) else ("data.validation=100", "data.test=100")
    made = assemble(read_experiment(EXPERIMENT, [*changes, *sizes, f"run.seed={seed}"]))
    return made if isinstance(kind, tuple) else replace(made, split=_world(kind, seed))


def _world(world: World, seed: int) -> Split:
    held = min(500, world.users // 5)
    dataset = replace(world, seed=seed).load().filtered(min_interactions=5)
    key = Key.from_seed(seed)
    return new_users(dataset, n_validation=held, n_test=held, key=key)


@dataclass(frozen=True)
class _Run:
    place: Assembled
    name: str
    epsilon: float
    seed: int

    def of(self, method: str, part: str) -> tuple[np.ndarray, str, str]:
        """The metric of every held-out user, the last phase, and what was foretold."""
        split, noisy = self.place.split, np.isfinite(self.epsilon)
        made, rounds = METHODS[method](bool(noisy))
        if isinstance(made, Gram):
            usual = usual_history(split.train.lengths.tolist())
            made = replace(made, usual_history=round_history(usual))
        private = {
            "delta": 1e-5 if self.name in SMALL else 1e-6,
            "target_epsilon": self.epsilon,
        }
        plan = Plan(
            len(split.train),
            rounds=rounds,
            channel="secure_sum",
            **(private if noisy else {}),
        )
        made = made.calibrated(plan)
        people = split.profiles.take(split.users)
        simulation = Simulation(
            made, plan, split.catalog, people, split.train, Key.from_seed(self.seed)
        )
        state, last = simulation.start(), ""
        while not made.is_over(state.server):
            phase = made.next_phase(state.server)
            last = phase.name if phase else last
            state, _ = simulation.step(state)
        judged = replace(self.place, simulation=simulation)
        found = evaluate_method(judged, state, getattr(split, part))
        told = (made.outlook(plan, split.catalog) or "").rpartition("expect ")[2]
        return found.values[METRIC], last, told


def main() -> None:
    """Print one line per cell, and last how many are below popularity."""
    asked = _options()
    made = []
    for name in asked.sets:
        for cell in cells(name, asked):
            made.append(cell)
            print(cell.shown(), flush=True)
            if asked.out is not None:
                asked.out.write_text(json.dumps([one.json() for one in made], indent=1))
    apart = [cell.differences["popularity"] for cell in made]
    below = [one for one in apart if one.mean < -2 * (one.se or 0.0)]
    print(f"{len(below)} of {len(made)} cells are below popularity by two errors")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gram_floor")
    every = [0.5, 1.0, 2.0, 4.0, 8.0, float("inf")]
    parser.add_argument("--sets", nargs="+", choices=[*SETS], default=[*SETS])
    parser.add_argument("--epsilons", nargs="+", type=float, default=every)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
