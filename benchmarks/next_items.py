"""What comes next, and the next visit: private lists and anchors, in three ways.

    TACIT_DATA=… python -m benchmarks.next_items --sets ml-1m --hold item --runs DIR
    python -m benchmarks.next_items --sets memory-0 memory-1 --epsilons inf --seeds 1

One model is trained per epsilon and seed, and then ranks in each way. Runs stay in
`--runs`, so that the same command goes on. `item`: NDCG@10 and Recall@20 of the last
item of each history, by the gap before it. `visit`: NDCG@100 of the last visit, which
begins a day or more after all before. `day`: AUC of what was shown on the last day of
the MIND sample. Each user's figure is the mean over seeds; standard errors are over
users, of differences over the same users. Anchors are chosen on validation people. The
worlds are invented (`visit_worlds`): how much of a taste stays is in the name.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from benchmarks.kept_values import KeptValues, Values
from benchmarks.visit_worlds import WORLDS
from tacit.data.shards import Shards
from tacit.evaluation.ranking import Personal, Scorer
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.comparison import Progress, finished_run
from tacit.experiment.evaluate import Users, baseline_scorer, evaluate_scores
from tacit.experiment.settings import Experiment, check_experiment
from tacit.experiment.training import Nobody, last_state
from tacit.keys import Key
from tacit.method import ListFor, Scores, enrol
from tacit.results import Metric
from tacit.runtime.rounds import State
from tacit.runtime.run import RunDirectory
from tacit.serving.recommender import Recommender

SETS: dict[str, dict[str, Any]] = {
    "ml-1m": {"source": "movielens-1m", "min_value": 4, "min_interactions": 5},
    "ml-100k": {"source": "movielens-100k", "min_value": 4, "min_interactions": 5},
    "mind": {"source": "mind-small-sample"},
}
DELTA = {"ml-1m": 1e-6, "mind": 1e-6}  # elsewhere 1e-5
HELD: dict[str, dict[str, str]] = {
    "item": {"split": "leave-latest-out"},
    "visit": {"split": "leave-last-visit-out"},
    "day": {
        "split": "by-time",
        "validation_from": "2019-11-13",
        "test_from": "2019-11-14",
    },
}
METRICS = {  # the first decides what is chosen on validation people
    "item": ("ndcg@10", "recall@20"),
    "visit": ("ndcg@100", "ndcg@10"),
    "day": ("auc", "ndcg@10"),
}
METHODS: dict[str, dict[str, Any]] = {
    "federated_popularity": {"rounds": 1, "sampler": {"name": "once"}},
    "gram": {"rounds": 3},
}
ANCHORS = ("popularity", "recent_popularity", "item_knn", "ease", "markov")
IN_WAYS = ("gram", "item_knn", "ease", "markov")  # others rank in one way
WAYS: tuple[ListFor, ...] = get_args(ListFor)


@dataclass(frozen=True)
class Line:
    """Whose lists these are: a method at an epsilon, or an anchor, in one way."""

    name: str
    way: ListFor
    epsilon: float = math.inf

    @property
    def label(self) -> str:
        """How the line is printed."""
        noise = f" at epsilon {self.epsilon:g}" if math.isfinite(self.epsilon) else ""
        return f"{self.name}{noise}" + (f", {self.way}" if self.name in IN_WAYS else "")


@dataclass(frozen=True)
class Study:
    """One set, held out in one way, on validation or on test people."""

    name: str
    hold: str
    part: str
    runs: Path

    def values(self, line: Line, seed: int, kept: KeptValues) -> Values:
        """The metrics of every user, who they are, and the gap before what came."""
        own = {"set": self.name, "hold": self.hold, "part": self.part, "seed": seed}
        return kept.of({**own, "line": line.label}, lambda: self._ranked(line, seed))

    def _ranked(self, line: Line, seed: int) -> Values:
        assembled, score = self._scorer(line, seed)
        heldout = getattr(assembled.split, self.part)
        found = evaluate_scores(assembled, score, heldout)
        gaps = found.groups.member_of.astype(float)
        return {**found.values, "users": found.users.astype(float), "gap": gaps}

    def _scorer(self, line: Line, seed: int) -> tuple[Assembled, Scorer]:
        if line.name in METHODS:
            return self._trained(line, seed)
        settings = {line.name: {"list_for": line.way}} if line.name in IN_WAYS else {}
        made = self.experiment("federated_popularity", math.inf, seed)
        evaluate = replace(made.evaluate, baseline_settings=settings)
        assembled = assemble(replace(made, evaluate=evaluate))
        score, chosen = baseline_scorer(assembled, line.name, budget=12)
        print(f"{line.label}, seed {seed}: {chosen}", flush=True)
        return assembled, score

    def _trained(self, line: Line, seed: int) -> tuple[Assembled, Scorer]:
        made = self.experiment(line.name, line.epsilon, seed)
        folder = f"{line.name}-{line.epsilon:g}"
        place = self.runs / f"{self.name}-{self.hold}" / folder / f"seed-{seed}"
        finished_run(made, place, Progress(Nobody(), 1), page=False)
        assembled = assemble(made)
        state = last_state(assembled, RunDirectory(place))
        return assembled, _scorer_of(assembled, state, line.way)

    def experiment(self, method: str, epsilon: float, seed: int) -> Experiment:
        """What is trained: three rounds of Gram, or a list for all."""
        privacy: dict[str, Any] = {"mechanism": "none", "channel": "secure_sum"}
        if math.isfinite(epsilon):
            delta = DELTA.get(self.name, 1e-5)
            privacy |= {"mechanism": "central", "delta": delta}
            privacy["target_epsilon"] = epsilon
        return check_experiment(
            {
                "data": {**self._data(), **HELD[self.hold]},
                "method": {"name": method},
                "privacy": privacy,
                "run": {"seed": seed, **METHODS[method]},
                "evaluate": {
                    "metrics": [*METRICS[self.hold]],
                    "baselines": [],
                    "every": METHODS[method]["rounds"],
                },
            }
        )

    def _data(self) -> dict[str, Any]:
        if self.name in SETS:
            return SETS[self.name]
        path = self.runs / f"{self.name}.csv"
        if not path.exists():
            WORLDS[self.name].write(path)
        columns = {"user": "user", "item": "item", "time": "time"}
        table = {"path": str(path.resolve()), **columns}
        return {"source": "table", "table": table}


def _scorer_of(assembled: Assembled, state: State, way: ListFor) -> Personal:
    """The model as each user's own client would rank by it, for what is asked."""
    method, profiles = assembled.method, assembled.split.profiles
    broadcast = method.broadcast(state.server)
    model = Recommender(method, broadcast, assembled.split.catalog).ranking_for(way)

    def score(users: Users, history: Shards) -> Scores:
        keys = Key.from_seed(0).each(users)
        clients = enrol(method, assembled.plan, profiles.take(users), keys)
        return model.score(history, clients, keys)

    return Personal(score)


def lines(names: list[str], epsilons: list[float]) -> Iterator[Line]:
    """All that is ranked, in the order of the names."""
    for name in names:
        for epsilon in epsilons if name in METHODS else [math.inf]:
            for way in WAYS if name in IN_WAYS else WAYS[:1]:
                yield Line(name, way, epsilon)


def told(study: Study, asked: argparse.Namespace, kept: KeptValues) -> list[Any]:
    """One entry per line: means, by gap, and the difference to what it began from."""
    entries, found = [], dict[str, Values]()
    for line in lines(asked.names, asked.epsilons):
        seeds = [study.values(line, seed, kept) for seed in range(asked.seeds)]
        found[line.label] = own = _over_seeds(seeds)
        entry: dict[str, Any] = {"set": study.name, "hold": study.hold}
        entry |= {"line": line.label, "people": len(own["users"])}
        for metric in METRICS[study.hold]:
            entry[metric] = _mean(own, own[metric]).to_json()
        first = METRICS[study.hold][0]
        if study.hold == "item":
            entry["by gap"] = [
                Metric.of(own[first][own["gap"] == gap]).to_json() for gap in range(3)
            ]
        others = [replace(line, way="any"), Line(_POPULARITY, "any", line.epsilon)]
        for other in others:
            if other.label != line.label and other.label in found:
                apart = own[first] - found[other.label][first]
                entry[f"above {other.label}"] = _mean(own, apart).to_json()
        entries.append(entry)
        print(json.dumps(entry), flush=True)
    return entries


def _mean(own: Values, values: np.ndarray) -> Metric:
    """The mean; its error is over users, who may have several impressions."""
    return Metric.clustered(values, own["users"].astype(int))


_POPULARITY = "federated_popularity"


def _over_seeds(seeds: list[Values]) -> Values:
    """The mean of every user over the seeds, which have the same users."""
    first = seeds[0]
    for other in seeds[1:]:
        np.testing.assert_array_equal(other["users"], first["users"])
    return {name: np.mean([one[name] for one in seeds], axis=0) for name in first}


def main() -> None:
    """Print a line of JSON for each line of each set, and write all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.next_items")
    parser.add_argument("--sets", nargs="+", choices=[*SETS, *WORLDS], required=True)
    parser.add_argument("--hold", choices=[*HELD], default="visit")
    every = [1.0, 4.0, 8.0, math.inf]
    parser.add_argument("--epsilons", nargs="+", type=float, default=every)
    names = [*METHODS, *ANCHORS]  # the private ones first
    parser.add_argument("--names", nargs="+", choices=names, default=names)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--part", choices=["validation", "test"], default="test")
    parser.add_argument("--runs", type=Path, help="by default they are not kept")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        runs = asked.runs or Path(place)
        runs.mkdir(parents=True, exist_ok=True)
        kept, entries = KeptValues(runs / "values.jsonl"), []
        for name in asked.sets:
            entries += told(Study(name, asked.hold, asked.part, runs), asked, kept)
            if asked.out is not None:
                asked.out.write_text(json.dumps(entries, indent=1))


if __name__ == "__main__":
    main()
