"""Gram on protocol P1 in the arithmetic of a release, beside a simulation's.

    TACIT_DATA=… python -m benchmarks.release_gram

NDCG@100 of the 500 test users of MovieLens 1M, three seeds of the split with three
draws of noise each. A release itself measures nothing on users: here the same exact
sums and the cipher's noise are used on users who are held out.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from tacit.experiment.assemble import assemble
from tacit.experiment.evaluate import evaluate_method
from tacit.experiment.settings import read_experiment
from tacit.keys import Key

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "ml-1m-gram.toml"
DRAWS, EPSILONS = 3, (1, 8)


def main() -> None:
    """Print simulation and release side by side, one line of the table per epsilon."""
    asked = _options()
    print("| epsilon | simulation | release | difference, its standard error |")
    print("|---|---|---|---|")
    for epsilon in EPSILONS:
        seeds = range(asked.seeds)
        found = np.array([_of_seed(asked.experiment, epsilon, s) for s in seeds])
        simulated, released = found.reshape(-1, 2).T
        apart = released - simulated
        error = apart.std(ddof=1) / np.sqrt(len(apart))
        print(
            f"| {epsilon} | {simulated.mean():.4f} | {released.mean():.4f} | "
            f"{apart.mean():+.4f}, {error:.4f} |",
            flush=True,
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.release_gram")
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


def _of_seed(experiment: Path, epsilon: float, seed: int) -> list[tuple[float, float]]:
    changes = [f"run.seed={seed}", f"privacy.target_epsilon={epsilon}"]
    assembled = assemble(read_experiment(experiment, changes))
    found = []
    for draw in range(DRAWS):
        both = []
        for is_release in (False, True):
            made = replace(
                assembled.simulation,
                is_release=is_release,
                key=Key.from_os() if is_release else Key.from_seed(seed).at(draw),
            )
            *_, (state, _) = made.run(made.start())
            judged = evaluate_method(
                replace(assembled, simulation=made), state, assembled.split.test
            )
            both.append(judged.metrics()["ndcg@100"].mean)
        found.append((both[0], both[1]))
    return found


if __name__ == "__main__":
    main()
