"""Gram's local form beside the central one at its exchange rate: a table of its page.

    python -m benchmarks.gram_local [--users 5000 50000] [--draws 20] [--test 2000]

Invented worlds of 100 items; ten rounds of which three count; everyone speaks once.
N reports of PrivUnitG have the noise of one central release at mu = kappa sqrt(N), so
both columns should agree within the spread of their draws.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tacit.data.splits.by_user import new_users
from tacit.data.splits.split import Split
from tacit.data.synthetic.world import World
from tacit.evaluation.evaluate import evaluate
from tacit.keys import Key
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.method import CentralGaussian, LocalPrivUnit
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.sampling import Once
from tacit.serving.recommender import Recommender, stranger

ITEMS, HEAD = 100, 40
ROUNDS, COUNTING = 10, 3
DRAWS = {5_000: 20, 50_000: 5, 1_000_000: 2}


def main() -> None:
    """Print a line for each world and epsilon."""
    asked = _options()
    for users in asked.users:
        split = world(users, n_test=asked.test)
        draws = DRAWS[users] if asked.draws is None else asked.draws
        for epsilon in (1.0, 2.0, 4.0, 8.0):
            both = np.array([[*pair(split, epsilon, seed)] for seed in range(draws)])
            error = both.std(axis=0, ddof=1) / math.sqrt(draws)
            local, central = (
                f"{m:.4f} ± {e:.4f}"
                for m, e in zip(both.mean(axis=0), error, strict=True)
            )
            print(f"{users:>9,} users, epsilon {epsilon:g}: {local} | {central}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gram_local")
    parser.add_argument("--users", type=int, nargs="+", default=[*DRAWS])
    parser.add_argument("--draws", type=int, help="runs per world, at least 2")
    parser.add_argument("--test", type=int, default=2000, help="users to test on")
    asked = parser.parse_args()
    if asked.draws is None and (others := {*asked.users} - {*DRAWS}):
        parser.error(f"--users {sorted(others)} needs --draws")
    return asked


def world(users: int, *, n_test: int) -> Split:
    """Users of an invented world, some of them to test."""
    made = World(users=users, items=ITEMS, events_per_user=12, rank=4, seed=1)
    key = Key.from_seed(0)
    return new_users(made.dataset(), n_validation=n_test // 10, n_test=n_test, key=key)


def pair(split: Split, epsilon: float, seed: int) -> Iterator[float]:
    """NDCG@20 of the local form, then of the central one at its exchange rate."""
    gram = Gram(head=HEAD, count_rounds=COUNTING, rank=32)
    local = replace(gram, privacy=LocalPrivUnit(epsilon))
    yield ndcg(split, local, "direct", seed)
    users = len(split.users) / ROUNDS
    noises = {
        "counts": noise(epsilon, ITEMS, users),
        "relations": noise(epsilon, HEAD * (HEAD + 1) // 2, users),
    }
    central = replace(gram, privacy=CentralGaussian(noises))
    yield ndcg(split, central, "secure_sum", seed)


def noise(epsilon: float, size: int, users: float) -> float:
    """The multiplier 1 / (kappa sqrt(N)) over 1 / N, of a round's reports."""
    return math.sqrt(users * PrivUnit(epsilon, size).variance(1.0))


def ndcg(split: Split, method: Gram, channel: str, seed: int) -> float:
    """NDCG@20 of the test users after one run."""
    plan = Plan(len(split.users), rounds=ROUNDS, sampler=Once(), channel=channel)
    users = split.profiles.take(split.users)
    key = Key.from_seed(seed)
    simulation = Simulation(method, plan, split.catalog, users, split.train, key)
    *_, (state, _) = simulation.run(simulation.start())
    told = Recommender(method, method.broadcast(state.server), split.catalog)
    return (
        evaluate(
            lambda shards: told.score(shards, stranger(method, len(shards))),
            split.test,
            metrics=("ndcg@20",),
        )
        .metrics()["ndcg@20"]
        .mean
    )


if __name__ == "__main__":
    main()
