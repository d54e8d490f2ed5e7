"""How many people a budget needs, and what a consenting few are worth beside it.

    TACIT_DATA=… python -m benchmarks.how_many --sets ml-1m --seeds 3
    python -m benchmarks.how_many --sets world-32000 --people 2000 8000 32000
    TACIT_DATA=… python -m benchmarks.how_many --sets ml-1m --weights 3 10 30

    n, no noise     some people, drawn by the seed, who learn without noise
    n, epsilon e    the same people with noise, everyone at e; of all people, or of each
                    number that `--people` names
    p % at w        p of a hundred accept that nothing is promised to them, and each of
                    their reports weighs w times one of the others, at `--strict`

NDCG@100 of held-out users, mean over seeds, with its standard error: the larger of that
over users, each of whom has the mean over draws, and that over seeds. `worth` is the
number of people without noise whose lists are as good as those of everyone at an
epsilon, on the line between the two numbers next to it, by the logarithm. `cost` is
what the noise takes from so many people, paired over users. The sets world-N and
films-N are invented, with N people who train. An interrupted study goes on by `--kept`.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.gram_floor import EXPERIMENT, METRIC
from benchmarks.kept_values import KeptValues, Values
from benchmarks.one_training import among, trained
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import evaluate_method
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import CentralGaussian, SumMethod, Unprotected
from tacit.results import Metric

SHARES = (0.05, 0.10)
FEWEST = 125  # people, the least number that learns without noise
DELTA = 1e-6
_WORLDS = {  # invented; a set is named by one of them and the people who train
    "world": "items = 1000",
    "films": "items = 3706, events_per_user = 100.0, popularity_exponent = 0.45, "
    "popularity_decay = 5.5",
}


@dataclass(frozen=True, eq=False)
class Line:
    """Who trains, by which rule of noise."""

    name: str
    people: int
    epsilon: float | None = None  # None: without noise
    consenting: int = 0
    weight: float = 1.0

    def values(self, made: Assembled, part: str, draw: int) -> Values:
        """The metric of every held-out user after a training."""
        seed = made.experiment.run.seed
        order = np.random.default_rng(seed).permutation(len(made.split.users))
        rows, few = np.sort(order[: self.people]), order[: self.consenting]
        codes = np.isin(rows, few).astype(np.int64)
        targets: Mapping[str, float | None] = {"others": self.epsilon, "few": None}
        sizes = {"others": self.people - self.consenting, "few": self.consenting}
        plan = replace(
            made.plan,
            population=self.people,
            delta=None if self.epsilon is None else DELTA,
            target_epsilon=targets if self.consenting else self.epsilon,
            groups=sizes if self.consenting else {},
        )
        method = made.experiment.method
        assert isinstance(method, SumMethod)
        scale = {"others": 1 / self.weight, "few": 1.0} if self.consenting else {}
        noisy = CentralGaussian(scale=scale)
        quiet = self.epsilon is None
        method = replace(method, privacy=Unprotected() if quiet else noisy)
        key, split = Key.from_seed(100 * seed + draw), among(made.split, rows)
        judged, state = trained(
            *(made, split, method.calibrated(plan), plan),
            key=key,
            groups=codes if self.consenting else None,
        )
        heldout = getattr(split, part)
        return {part: evaluate_method(judged, state, heldout).values[METRIC]}


def lines(people: int, asked: argparse.Namespace) -> Iterator[Line]:
    """All lines of one set."""
    strict = asked.strict
    if asked.weights:
        for share in SHARES:
            few = round(share * people)
            yield Line(f"{share:.0%} alone", few)
            for weight in asked.weights:
                name = f"{share:.0%} at {weight:g}, epsilon {strict:g}"
                yield Line(name, people, strict, few, weight)
        return
    doubled = [FEWEST * 2**i for i in range(20) if FEWEST * 2**i <= people / 2]
    for n in asked.people or (*doubled, people):
        yield Line(f"{n:,}, no noise", n)
    for n in asked.people or (people,):
        for epsilon in asked.epsilons:
            yield Line(f"{n:,}, epsilon {epsilon:g}", n, epsilon)


def study(name: str, asked: argparse.Namespace) -> dict[str, object]:
    """The means of every line of a set, and what its noise costs."""
    kept = KeptValues(asked.kept)
    places = [_assembled(name, seed) for seed in range(asked.seeds)]
    people = len(places[0].split.users)
    found = dict[Line, list[np.ndarray]]()  # by seed, then draws × users
    for line in lines(people, asked):
        draws = 1 if line.epsilon is None else asked.draws
        found[line] = [
            np.stack(
                [_kept(kept, name, line, one, asked, draw) for draw in range(draws)]
            )
            for one in places
        ]
        print(line.name, _joined(found[line]), flush=True)
    quiet = {line.people: line for line in found if line.epsilon is None}
    curve = {n: _joined(found[line]).mean for n, line in quiet.items()}
    noisy = [
        line for line in found if line.epsilon is not None and line.people in quiet
    ]
    costs = {
        line.name: [
            without - values
            for without, values in zip(
                found[quiet[line.people]], found[line], strict=True
            )
        ]
        for line in noisy
    }
    return {
        "set": name,
        "part": asked.part,
        "people": people,
        "means": {line.name: _joined(some).to_json() for line, some in found.items()},
        "worth": {line.name: worth(_joined(found[line]).mean, curve) for line in noisy},
        "cost": {name: _joined(some).to_json() for name, some in costs.items()},
    }


def _joined(by_seed: list[np.ndarray]) -> Metric:
    """The mean over draws, users and seeds; the larger error of users and of seeds."""
    users = Metric.of(np.concatenate([values.mean(0) for values in by_seed]))
    seeds = Metric.of(np.array([values.mean() for values in by_seed]))
    return replace(users, se=max(users.se or 0.0, seeds.se or 0.0))


def worth(value: float, curve: Mapping[int, float]) -> int | None:
    """How many people without noise have this value; None outside of what was tried.

    >>> worth(0.25, {100: 0.2, 400: 0.3})
    200
    """
    points = sorted(curve.items())
    for (few, low), (many, high) in pairwise(points):
        if low <= value <= high and low < high:
            part = (value - low) / (high - low)
            return round(math.exp(math.log(few) + part * math.log(many / few)))
    return None


def _kept(
    kept: KeptValues,
    name: str,
    line: Line,
    made: Assembled,
    asked: argparse.Namespace,
    draw: int,
) -> np.ndarray:
    run = {
        "set": name,
        "seed": made.experiment.run.seed,
        "line": line.name,
        "part": asked.part,
        "draw": draw,
    }
    values = kept.of(run, lambda: line.values(made, asked.part, draw))
    return values[asked.part]


def _assembled(name: str, seed: int) -> Assembled:
    changes = [f"run.seed={seed}"]
    kind, _, people = name.partition("-")
    if kind in _WORLDS:
        world = f"users = {int(people) + 1_000}, {_WORLDS[kind]}, seed = 7"
        changes += ['data.source="synthetic"', "data.min_value=0"]
        changes.append(f"data.world={{ {world} }}")
    return assemble(read_experiment(EXPERIMENT, changes))


def main() -> None:
    """Print one table per set."""
    asked, made = _options(), list[dict[str, object]]()
    for name in asked.sets:
        made.append(study(name, asked))
        print(json.dumps(made[-1], indent=1), flush=True)
    if asked.out is not None:
        asked.out.write_text(json.dumps(made, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.how_many")
    parser.add_argument("--sets", nargs="+", default=["ml-1m"])
    parser.add_argument("--people", nargs="*", type=int, default=[])
    parser.add_argument("--epsilons", nargs="*", type=float, default=[1.0, 4.0, 8.0])
    parser.add_argument("--weights", nargs="*", type=float, default=[])
    parser.add_argument("--strict", type=float, default=1.0, help="of the others")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--part", choices=("validation", "test"), default="validation")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
