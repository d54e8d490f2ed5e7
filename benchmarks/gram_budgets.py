"""Gram where everybody chooses an epsilon, next to one epsilon for all.

    TACIT_DATA=… python -m benchmarks.gram_budgets --sets ml-1m --draws 2
    TACIT_DATA=… python -m benchmarks.gram_budgets --sets ml-100k --part test

    groups      strict, balanced and open users have epsilon 1, 4 and 8, by scale; who
                is in which group follows a coin, gender (women strict first) or age
                (the youngest strict first), with the same shares
    mean        everyone at the one epsilon whose mu is the mean of the groups' mu
    strictest   everyone at epsilon 1
    dropped     the balanced and the open users alone, with their own epsilons

NDCG@100 of held-out users, mean over seeds and draws. A difference is that of the
groups at random to a line, with its standard error: the larger of that over users, each
of whom has the mean over draws, and that over runs, which has the noise. Last stand the
held-out users of each group by themselves.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.gram_floor import EXPERIMENT, METRIC, SETS
from tacit.accounting.calibration import gaussian_epsilon, gaussian_noise
from tacit.data.features import Category
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import evaluate_method
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods.gram import Gram
from tacit.plan import Plan
from tacit.results import Metric
from tacit.runtime.simulate import Simulation

TARGETS = {"strict": 1.0, "balanced": 4.0, "open": 8.0}
SHARES = {"54/37/9": (0.54, 0.37, 0.09), "thirds": (1 / 3, 1 / 3, 1 / 3)}
COLUMNS = {"at random": None, "by gender": "gender", "by age": "age_group"}
FIRST = "groups at random"  # what the others are compared with
SMALL = 1_000  # users; below it delta is 1e-5


@dataclass(frozen=True)
class Membership:
    """The group of everybody, held out or not."""

    codes: np.ndarray

    @classmethod
    def of(cls, place: Assembled, shares: tuple[float, ...], column: str | None):
        """The first users by a column of the profiles are strict; ties are random."""
        profiles = place.split.profiles
        coins = np.random.default_rng(place.experiment.run.seed).random(len(profiles))
        keys = [coins]
        if column is not None:
            found = profiles.features[column]
            assert isinstance(found, Category)
            keys.append(found.codes)
        ranks = np.empty(len(profiles), np.int64)
        ranks[np.lexsort(keys)] = np.arange(len(profiles))
        edges = np.cumsum(shares)[:-1] * len(profiles)
        return cls(np.searchsorted(edges, ranks, side="right"))

    def sizes(self, rows: np.ndarray) -> dict[str, int]:
        """How many of some users each group has."""
        found = np.bincount(self.codes[rows], minlength=len(TARGETS))
        return dict(zip(TARGETS, found.tolist(), strict=True))


@dataclass(frozen=True)
class Place:
    """The users of one seed, and one draw of the noise."""

    made: Assembled
    part: str
    draw: int

    @property
    def delta(self) -> float:
        return 1e-5 if len(self.made.split.train) < SMALL else 1e-6

    def run(
        self,
        rows: np.ndarray,
        target: float | Mapping[str, float],
        codes: np.ndarray | None = None,
    ) -> np.ndarray:
        """The metric of every held-out user, if the users `rows` train."""
        split = self.made.split
        names = [*target] if isinstance(target, Mapping) else []
        sizes = [] if codes is None else np.bincount(codes, minlength=len(names))
        plan = Plan(
            len(rows),
            rounds=3,
            channel="secure_sum",
            delta=self.delta,
            target_epsilon=target,
            groups=dict(zip(names, map(int, sizes), strict=True)),
        )
        simulation = Simulation(
            Gram(privacy=CentralGaussian()).calibrated(plan),
            plan,
            split.catalog,
            split.profiles.take(split.users[rows]),
            split.train.take(rows),
            Key.from_seed(100 * self.made.experiment.run.seed + self.draw),
            groups=codes,
        )
        *_, (state, _) = simulation.run(simulation.start())
        trained = replace(split, users=split.users[rows], train=split.train.take(rows))
        judged = replace(self.made, simulation=simulation, split=trained)
        return evaluate_method(judged, state, getattr(split, self.part)).values[METRIC]

    def lines(self, name: str) -> Iterator[tuple[str, np.ndarray]]:
        """Every line of one table: what it is, and the metric of every user."""
        users = self.made.split.users
        everyone = np.arange(len(users))
        for how, column in COLUMNS.items():
            member = Membership.of(self.made, SHARES[name], column)
            codes = member.codes[users]
            yield f"groups {how}", self.run(everyone, TARGETS, codes)
            if column is not None:
                continue
            yield "mean", self.run(everyone, self.mean_epsilon(member.sizes(users)))
            rest = np.flatnonzero(codes > 0)
            others = {group: e for group, e in TARGETS.items() if group != "strict"}
            yield "dropped", self.run(rest, others, codes[rest] - 1)
        yield "strictest", self.run(everyone, min(TARGETS.values()))

    def mean_epsilon(self, sizes: Mapping[str, int]) -> float:
        """The epsilon of one mu for all that is the mean of the groups' own."""
        noise = {g: gaussian_noise(e, delta=self.delta) for g, e in TARGETS.items()}
        mean = sum(n / noise[g] for g, n in sizes.items()) / sum(sizes.values())
        return gaussian_epsilon(1 / mean, delta=self.delta)


def table(name: str, places: list[list[Place]]) -> dict[str, object]:
    """The means of all lines, differences to the first, and the metric by group."""
    found, runs = dict[str, list[np.ndarray]](), dict[str, list[float]]()
    for draws in places:
        mine = dict[str, list[np.ndarray]]()
        for place in draws:
            for line, values in place.lines(name):
                mine.setdefault(line, []).append(values)
        for line, several in mine.items():
            found.setdefault(line, []).append(np.mean(several, axis=0))
            runs.setdefault(line, []).extend(map(float, map(np.mean, several)))
    values = {line: np.concatenate(several) for line, several in found.items()}
    return {
        "shares": name,
        "epsilon of the mean": [
            one.mean_epsilon(_membership(one, name, None).sizes(one.made.split.users))
            for one, *_ in places
        ],
        "means": {line: float(v.mean()) for line, v in values.items()},
        "differences": {
            line: _above(values[FIRST] - v, np.subtract(runs[FIRST], runs[line]))
            for line, v in values.items()
            if line != FIRST
        },
        "by group": {
            how: _by_group(name, column, values, [one for one, *_ in places])
            for how, column in COLUMNS.items()
        },
    }


def _membership(place: Place, name: str, column: str | None) -> Membership:
    return Membership.of(place.made, SHARES[name], column)


def _above(over_users: np.ndarray, over_runs: np.ndarray) -> dict[str, object]:
    users, runs = Metric.of(over_users), Metric.of(over_runs)
    return replace(users, se=max(users.se or 0.0, runs.se or 0.0)).to_json()


def _by_group(
    name: str, column: str | None, values: dict[str, np.ndarray], places: list[Place]
) -> dict[str, dict[str, float]]:
    """Of the held-out users of each group: with groups so, at random, and without."""
    held = [getattr(one.made.split, one.part).users for one in places]
    codes = np.concatenate(
        [
            _membership(one, name, column).codes[users]
            for one, users in zip(places, held, strict=True)
        ]
    )
    how = next(h for h, c in COLUMNS.items() if c == column)
    lines = dict.fromkeys([f"groups {how}", FIRST, "mean", "strictest"])
    return {
        group: {line: float(values[line][codes == code].mean()) for line in lines}
        for code, group in enumerate(TARGETS)
    }


def main() -> None:
    """Print one table per set and shares."""
    asked, made = _options(), list[dict[str, object]]()
    for name in asked.sets:
        places = [
            [Place(_assembled(asked, name, seed), asked.part, draw) for draw in draws]
            for seed, draws in ((s, range(asked.draws)) for s in range(asked.seeds))
        ]
        for shares in asked.shares:
            one = {"set": name, **table(shares, places)}
            made.append(one)
            print(json.dumps(one, indent=1), flush=True)
            if asked.out is not None:
                asked.out.write_text(json.dumps(made, indent=1))


def _assembled(asked: argparse.Namespace, name: str, seed: int) -> Assembled:
    kind = SETS[name]
    changes = kind if isinstance(kind, tuple) else ()
    return assemble(read_experiment(asked.experiment, [*changes, f"run.seed={seed}"]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gram_budgets")
    known = [name for name, kind in SETS.items() if isinstance(kind, tuple)]
    parser.add_argument("--sets", nargs="+", choices=known, default=["ml-1m"])
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--shares", nargs="+", choices=[*SHARES], default=[*SHARES])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
