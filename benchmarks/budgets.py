"""A method where everybody chooses an epsilon, next to one epsilon for all.

    TACIT_DATA=… python -m benchmarks.budgets --sets ml-1m --draws 2
    TACIT_DATA=… python -m benchmarks.budgets --experiment experiments/ml-1m-dpvae.toml

    groups      strict, balanced and open users have epsilon 1, 4 and 8, by scale; who
                is in which group follows a coin, gender (women strict first) or age
                (the youngest strict first), with the same shares
    sampled     the groups of the coin by rate instead, if the plan samples by coins
    mean        everyone at the one epsilon whose mu is the mean of the groups' mu
    strictest   everyone at epsilon 1
    dropped     the balanced and the open users alone, with their own epsilons

The experiment has the method, its rounds and its sampler. NDCG@100 of held-out users,
mean over seeds and draws. A difference is that of the groups at random to a line, with
its standard error: the larger of that over users, each of whom has the mean over draws,
and that over runs, which has the noise. Last stand the held-out users of each group by
themselves. With `--kept` a study that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from benchmarks.gram_floor import EXPERIMENT, METRIC, SETS
from benchmarks.kept_values import KeptValues, Values
from benchmarks.one_training import among, trained
from tacit.accounting.calibration import gaussian_epsilon, gaussian_noise
from tacit.data.features import Category
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import evaluate_method
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import SumMethod
from tacit.plans import Plan
from tacit.privacy.budgets import rates_for_targets
from tacit.results import Metric
from tacit.sampling import Poisson

TARGETS = {"strict": 1.0, "balanced": 4.0, "open": 8.0}
SHARES = {"54/37/9": (0.54, 0.37, 0.09), "thirds": (1 / 3, 1 / 3, 1 / 3)}
COLUMNS = {"at random": None, "by gender": "gender", "by age": "age_group"}
FIRST = "groups at random"  # what the others are compared with
SAMPLED = "groups at random, sampled"
SMALL = 1_000  # users; below it delta is 1e-5
PARTS = ("validation", "test")


@dataclass(frozen=True)
class Membership:
    """The group of everybody, held out or not."""

    codes: np.ndarray

    @classmethod
    def of(
        cls, place: Assembled, shares: tuple[float, ...], column: str | None
    ) -> Membership:
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


@dataclass(frozen=True, eq=False)
class Trainees:
    """Some of a seed's users who train together, and what each of them may spend."""

    made: Assembled
    rows: np.ndarray
    target: float | Mapping[str, float]
    codes: np.ndarray | None = None  # the group of each, where the target has groups
    is_sampled: bool = False  # budgets by rate, not by scale

    def values(self, parts: tuple[str, ...], *, draw: int) -> Values:
        """The metric of every held-out user, by part, after a training."""
        split = among(self.made.split, self.rows)
        key = Key.from_seed(100 * self.made.experiment.run.seed + draw)
        method, plan = self._calibrated
        judged, state = trained(
            self.made, split, method, plan, key=key, groups=self.codes
        )
        return {
            part: evaluate_method(judged, state, getattr(split, part)).values[METRIC]
            for part in parts
        }

    @cached_property
    def _calibrated(self) -> tuple[SumMethod, Plan]:
        """The method with its noise, and the plan; the same for every draw."""
        method, plan = self.made.experiment.method, self._plan
        assert isinstance(method, SumMethod)
        if self.is_sampled:
            phases = method.with_planned_phases().phases(plan)
            plan = replace(plan, sampler=rates_for_targets(plan, phases))
        return method.calibrated(plan), plan

    @property
    def _plan(self) -> Plan:
        names = [*self.target] if isinstance(self.target, Mapping) else []
        codes = np.zeros(0, np.int64) if self.codes is None else self.codes
        sizes = np.bincount(codes, minlength=len(names)).tolist()
        return replace(
            self.made.plan,
            population=len(self.rows),
            delta=delta_of(self.made),
            target_epsilon=self.target,
            groups=dict(zip(names, sizes, strict=True)),
        )


@dataclass(frozen=True)
class Place:
    """The users of one seed, and how often every line is trained."""

    made: Assembled
    parts: tuple[str, ...]
    draws: int
    kept: KeptValues
    how: tuple[str, ...]  # which columns decide the groups

    def values(self, shares: str) -> dict[str, dict[str, np.ndarray]]:
        """By line and part the metric, one row per draw and one column per user."""
        found = dict[str, dict[str, np.ndarray]]()
        for line, who in self.lines(shares):
            several = [
                self._kept(line, shares, who, draw) for draw in range(self.draws)
            ]
            found[line] = {p: np.stack([one[p] for one in several]) for p in self.parts}
        return found

    def _kept(self, line: str, shares: str, who: Trainees, draw: int) -> Values:
        run = {
            "experiment": self.made.experiment.digest,
            "seed": self.made.experiment.run.seed,
            "line": line,
            "draw": draw,
        }
        if line != "strictest":  # which is the same whoever would be in which group
            run["shares"] = shares
        return self.kept.of(run, partial(who.values, PARTS, draw=draw))

    def lines(self, shares: str) -> Iterator[tuple[str, Trainees]]:
        """Every line of one table: what it is, and who trains for it."""
        everyone, users = np.arange(len(self.made.split.users)), self.made.split.users
        for how in self.how:
            codes = self.membership(shares, how).codes[users]
            groups = Trainees(self.made, everyone, TARGETS, codes)
            yield f"groups {how}", groups
            if how != "at random":
                continue
            if isinstance(self.made.plan.sampler, Poisson):
                yield SAMPLED, replace(groups, is_sampled=True)
            yield "mean", Trainees(self.made, everyone, self.mean_epsilon(shares))
            rest = np.flatnonzero(codes > 0)
            others = {group: e for group, e in TARGETS.items() if group != "strict"}
            yield "dropped", Trainees(self.made, rest, others, codes[rest] - 1)
        yield "strictest", Trainees(self.made, everyone, min(TARGETS.values()))

    def membership(self, shares: str, how: str) -> Membership:
        """Who is in which group."""
        return Membership.of(self.made, SHARES[shares], COLUMNS[how])

    def mean_epsilon(self, shares: str) -> float:
        """The epsilon of one mu for all that is the mean of the groups' own."""
        delta = delta_of(self.made)
        sizes = self.membership(shares, "at random").sizes(self.made.split.users)
        noise = {g: gaussian_noise(e, delta=delta) for g, e in TARGETS.items()}
        mean = sum(n / noise[g] for g, n in sizes.items()) / sum(sizes.values())
        return gaussian_epsilon(1 / mean, delta=delta)


def delta_of(made: Assembled) -> float:
    """A larger delta where users are few."""
    return 1e-5 if len(made.split.train) < SMALL else 1e-6


def tables(shares: str, places: list[Place]) -> Iterator[dict[str, object]]:
    """For each part the means, differences to the first line, and means by group."""
    found = [place.values(shares) for place in places]
    for part in places[0].parts:
        by_line = {line: [one[line][part] for one in found] for line in found[0]}
        users = {line: _means(several, 0) for line, several in by_line.items()}
        runs = {line: _means(several, 1) for line, several in by_line.items()}
        yield {
            "part": part,
            "shares": shares,
            "epsilon of the mean": [place.mean_epsilon(shares) for place in places],
            "means": {line: float(values.mean()) for line, values in users.items()},
            "by seed": {
                line: [float(values.mean()) for values in several]
                for line, several in by_line.items()
            },
            "differences": {
                line: _above(users[FIRST] - users[line], runs[FIRST] - runs[line])
                for line in users
                if line != FIRST
            },
            "by group": {
                how: _by_group(shares, how, users, places, part)
                for how in places[0].how
            },
        }


def _means(several: list[np.ndarray], axis: int) -> np.ndarray:
    """Of all seeds: users with their mean over draws (0), or draws over users (1)."""
    return np.concatenate([values.mean(axis) for values in several])


def _above(over_users: np.ndarray, over_runs: np.ndarray) -> dict[str, object]:
    users, runs = Metric.of(over_users), Metric.of(over_runs)
    return replace(users, se=max(users.se or 0.0, runs.se or 0.0)).to_json()


def _by_group(
    shares: str,
    how: str,
    values: dict[str, np.ndarray],
    places: list[Place],
    part: str,
) -> dict[str, dict[str, float]]:
    """Of the held-out users of each group: with groups so, at random, and without."""
    codes = np.concatenate(
        [
            one.membership(shares, how).codes[getattr(one.made.split, part).users]
            for one in places
        ]
    )
    lines = dict.fromkeys([f"groups {how}", FIRST, "mean", "strictest"])
    return {
        group: {line: float(values[line][codes == code].mean()) for line in lines}
        for code, group in enumerate(TARGETS)
    }


def main() -> None:
    """Print one table per set, shares and part."""
    asked, made = _options(), list[dict[str, object]]()
    how, kept = ("at random", *asked.also), KeptValues(asked.kept)
    for name in asked.sets:
        places = [
            Place(
                _assembled(asked, name, seed), tuple(asked.part), asked.draws, kept, how
            )
            for seed in range(asked.seeds)
        ]
        for shares in asked.shares:
            for one in tables(shares, places):
                made.append({"set": name, **one})
                print(json.dumps(made[-1], indent=1), flush=True)
        if asked.out is not None:
            asked.out.write_text(json.dumps(made, indent=1))


def _assembled(asked: argparse.Namespace, name: str, seed: int) -> Assembled:
    kind = SETS[name]
    changes = kind if isinstance(kind, tuple) else ()
    return assemble(read_experiment(asked.experiment, [*changes, f"run.seed={seed}"]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.budgets")
    known = [name for name, kind in SETS.items() if isinstance(kind, tuple)]
    columns = [how for how in COLUMNS if how != "at random"]
    parser.add_argument("--sets", nargs="+", choices=known, default=["ml-1m"])
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--shares", nargs="+", choices=[*SHARES], default=[*SHARES])
    parser.add_argument("--also", nargs="*", choices=columns, default=columns)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=["validation"])
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
