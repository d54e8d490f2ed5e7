"""Methods next to private popularity, by the length of a history, paired over users.

    TACIT_DATA=… python -m benchmarks.gram_floor --part test --out floor.json
    python -m benchmarks.gram_floor --sets demo articles --epsilons 1 4 --lengths 1 all
    TACIT_DATA=… python -m benchmarks.gram_floor --sets ml-100k --method fedvae
    python -m benchmarks.gram_floor --sets demo --epsilons 4 --method krr --query 2

Private popularity has the whole budget; the first version of Gram counts once and
relates once. NDCG@100 of held-out users whose histories are cut to so many items, drawn
at random; mean over seeds and draws. A difference stands with its standard error: the
larger of that over users, each of whom has the mean over draws, and that over runs,
which has the noise. A cell is below if its difference is negative and zero is outside
the 95 % band that holds for all cells together (Holm). `foretold` is what the plan says
beforehand, where it is told how long a history usually is. The worlds are invented;
some have the sizes of tables on which the first version lost to popularity.

`krr`, `dpa` and `vdp` are lists of Gram that a server ranks for one private query of
each user, whatever the history; the query has an epsilon of its own (`--query`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import stdtr

from tacit.data.shards import Shards
from tacit.data.splits import Heldout, Split, new_users
from tacit.data.synthetic.world import World
from tacit.evaluation.ranking import Personal
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import Users, evaluate_method, evaluate_scores
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import (
    CentralGaussian,
    LocalPrivUnit,
    Scores,
    SumMethod,
    Unprotected,
)
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.methods.gram_forecast import round_history, usual_history
from tacit.plans import Plan
from tacit.results import Metric
from tacit.runtime.rounds import State
from tacit.runtime.simulate import Simulation
from tacit.serving.query import Mode
from tacit.serving.queryable import vectors_of
from tacit.serving.recommender import Recommender
from tacit.serving.settings import ServingSettings, served_model

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
EXPERIMENT = EXPERIMENTS / "ml-1m-gram.toml"
METRIC = "ndcg@100"
LENGTHS = ("0", "1", "2", "3", "5", "10", "all")
ALARM = 0.05  # the chance that any cell is called below although none is


def _source(name: str, least: float, held: int) -> tuple[str, ...]:
    """A data set at hand, the least value of a like, and how many are held out."""
    return (
        f'data.source="{name}"',
        f"data.min_value={least}",
        f"data.validation={held}",
        f"data.test={held}",
    )


# Many small tastes beside a steep popularity: without noise a personal list is twice as
# good, and at epsilon 1 none of its directions stands out.
FLAT = World(
    1_901,
    700,
    events_per_user=24,
    rank=38,
    strength=26.0,
    popularity_exponent=1.25,
    topics=100,
    demographics=0.0,
    repeats=0.0,
    activity_spread=0.5,
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
    "flat700": FLAT,
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
FILES = {  # of the other methods that rank; their sizes are for MovieLens
    "dpals": EXPERIMENTS / "ml-1m-dpals.toml",
    **{
        name: EXPERIMENTS / "five-papers" / f"{name}.toml"
        for name in ("dpvae", "fedvae", "fmf-ldp", "privaterec", "privrec")
    },
}
SERVED: dict[str, Callable[[float], ServingSettings]] = {  # with the usual sizes
    "krr": lambda epsilon: ServingSettings(Mode.KRR, epsilon),
    "dpa": lambda epsilon: ServingSettings(Mode.DPA, epsilon),
    "vdp": lambda epsilon: ServingSettings(Mode.VDP, epsilon),
    "vdp, one axis": lambda epsilon: ServingSettings(Mode.VDP, epsilon, axes=1),
}


def _noise(noisy: bool) -> CentralGaussian | Unprotected:
    return CentralGaussian() if noisy else Unprotected()


@dataclass(frozen=True)
class Cell:
    """What was found on one set at one epsilon: a row per method, a column per user."""

    name: str
    epsilon: float
    length: str  # of the histories
    method: str
    found: dict[str, np.ndarray]
    runs: dict[str, np.ndarray]  # the means of the runs
    ended: str  # the last phase of the first run
    foretold: str

    @property
    def differences(self) -> dict[str, Metric]:
        """How much the method is above each of the others."""
        return {n: self._above(n) for n in self.found if n != self.method}

    def _above(self, name: str) -> Metric:
        over_users, over_runs = self._apart(name)
        return replace(over_users, se=max(over_users.se or 0.0, over_runs.se or 0.0))

    def _apart(self, name: str) -> tuple[Metric, Metric]:
        users, runs = (
            Metric.of(values[self.method] - values[name])
            for values in (self.found, self.runs)
        )
        return users, runs

    @property
    def chance(self) -> float:
        """The two-sided p-value of the difference to popularity.

        That over users or over runs, whichever is larger.
        """
        return max(_chance(apart) for apart in self._apart("popularity"))

    def shown(self) -> str:
        """One line: means, and differences with their standard errors."""
        mean = self.found[self.method].mean()
        named = f"{self.name:12} {self.epsilon:5g} {self.length:>4}"
        parts = [f"{named}  {self.method} {mean:.4f}"]
        for name, apart in self.differences.items():
            difference = f"({apart.mean:+.4f} ± {apart.se:.4f})"
            parts.append(f"{name} {self.found[name].mean():.4f} {difference}")
        foretold = f"; foretold: {self.foretold}" if self.foretold else ""
        return "  ".join([*parts, f"[{self.ended}{foretold}]"])

    def json(self) -> dict[str, object]:
        """The same for a machine."""
        return {
            "set": self.name,
            "epsilon": self.epsilon,
            "length": self.length,
            "method": self.method,
            "means": {n: float(v.mean()) for n, v in self.found.items()},
            "differences": {n: m.to_json() for n, m in self.differences.items()},
            "chance": self.chance,
            "ended": self.ended,
            "foretold": self.foretold,
        }


def _chance(apart: Metric) -> float:
    """The two-sided p-value of a mean by Student; 1 where nothing differs."""
    if not apart.se:
        return 1.0
    return float(2 * stdtr(apart.n - 1, -abs(apart.mean) / apart.se))


def told_apart(chances: Sequence[float], *, alarm: float = ALARM) -> list[bool]:
    """Which p-values are small enough for all to hold together (Holm 1979).

    >>> told_apart([0.03, 0.01, 0.04]), told_apart([0.03, 0.01, 0.02])
    ([False, True, False], [True, True, True])
    """
    order = np.argsort(chances)
    apart = [False] * len(chances)
    for rank, one in enumerate(order):
        if chances[one] > alarm / (len(chances) - rank):
            break
        apart[one] = True
    return apart


def below(cells: Sequence[Cell]) -> list[Cell]:
    """The cells that are below private popularity, at one chance for all of them."""
    apart = told_apart([cell.chance for cell in cells])
    return [
        cell
        for cell, is_apart in zip(cells, apart, strict=True)
        if is_apart and cell.differences["popularity"].mean < 0
    ]


def cells(name: str, asked: argparse.Namespace) -> Iterator[Cell]:
    """Every epsilon and every length on one set."""
    places = [_assembled(name, seed) for seed in range(asked.seeds)]
    for epsilon in asked.epsilons:
        yield from _cells(places, name, epsilon, asked)


def _cells(
    places: Sequence[Assembled], name: str, epsilon: float, asked: argparse.Namespace
) -> Iterator[Cell]:
    values = dict[tuple[str, str], list[np.ndarray]]()  # by method and length
    runs = dict[tuple[str, str], list[float]]()
    ended, foretold = "", ""
    methods = [*dict.fromkeys([asked.method, *asked.against])]
    for seed, place in enumerate(places):
        for method in methods:
            draws = []
            for draw in range(asked.draws):
                run = _Run(place, name, epsilon, 100 * seed + draw, asked)
                by_length, last, told = run.of(method)
                draws.append(by_length)
                if method == asked.method:
                    ended, foretold = ended or last, foretold or told
            for at, length in enumerate(asked.lengths):
                some = [by_length[at] for by_length in draws]
                values.setdefault((method, length), []).append(np.mean(some, axis=0))
                runs.setdefault((method, length), []).extend(map(np.mean, some))
    for length in asked.lengths:
        joined = {m: np.concatenate(values[m, length]) for m in methods}
        means = {m: np.array(runs[m, length]) for m in methods}
        yield Cell(name, epsilon, length, asked.method, joined, means, ended, foretold)


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


def cut(heldout: Heldout, length: str) -> Heldout:
    """The same users with so many items of their histories, drawn at random."""
    if length == "all":
        return heldout
    keys = Key.from_seed(0).at("cut").each(heldout.users)
    return replace(heldout, history=heldout.history.at_most(int(length), keys))


@dataclass(frozen=True)
class _Run:
    place: Assembled
    name: str
    epsilon: float
    seed: int
    asked: argparse.Namespace

    def of(self, method: str) -> tuple[list[np.ndarray], str, str]:
        """The metric of all users by length, the last phase, and what was foretold."""
        made, told = self._simulation(method)
        state, last = made.start(), ""
        while not made.method.is_over(state.server):
            if isinstance(made.method, SumMethod):
                phase = made.method.next_phase(state.server)
                last = phase.name if phase else last
            state, _ = made.step(state)
        judged = replace(self.place, simulation=made)
        heldout = getattr(self.place.split, self.asked.part)
        parts = [cut(heldout, length) for length in self.asked.lengths]
        if method in SERVED:
            score = self._served(method, made, state)
            evaluated = [evaluate_scores(judged, score, part) for part in parts]
        else:
            evaluated = [evaluate_method(judged, state, part) for part in parts]
        return [one.values[METRIC] for one in evaluated], last, told

    def _served(self, method: str, made: Simulation, state: State) -> Personal:
        """The lists of a server that is asked once by every user."""
        broadcast = made.method.broadcast(state.server)
        recommender = Recommender(made.method, broadcast, self.place.split.catalog)
        model = served_model(recommender, SERVED[method](self.asked.query))
        key = Key.from_seed(self.seed).at("query")

        def score(users: Users, histories: Shards) -> Scores:
            vectors = vectors_of(recommender, histories)
            queries = model.release(vectors, key.each(users))
            decoded = model.mechanism.decode(model.read(queries))
            return model.space.scores(decoded).astype(np.float32)

        return Personal(score)

    def _simulation(self, method: str) -> tuple[Simulation, str]:
        split, is_noisy = self.place.split, bool(np.isfinite(self.epsilon))
        key = Key.from_seed(self.seed)
        delta = 1e-5 if self.name in SMALL else 1e-6
        if method in FILES:
            return self._from_file(FILES[method], delta, key), ""
        made, rounds = METHODS["gram" if method in SERVED else method](is_noisy)
        if isinstance(made, Gram):
            usual = usual_history(split.train.lengths.tolist())
            made = replace(made, usual_history=round_history(usual))
        plan = Plan(
            len(split.train),
            rounds=rounds,
            channel="secure_sum",
            delta=delta if is_noisy else None,
            target_epsilon=self.epsilon if is_noisy else None,
        )
        made = made.calibrated(plan)
        people = split.profiles.take(split.users)
        gain = None
        if isinstance(made, Gram):
            gain = made.foretell(plan, split.catalog)
        told = f"{gain.low:.2f} to {gain.high:.2f}" if gain else ""
        return Simulation(made, plan, split.catalog, people, split.train, key), told

    def _from_file(self, experiment: Path, delta: float, key: Key) -> Simulation:
        """The method of a file of settings, on this set's users."""
        kind = SETS[self.name]
        if isinstance(kind, World) or not np.isfinite(self.epsilon):
            raise SystemExit(f"{experiment.stem} runs on sets of data, and under noise")
        changes = kind or _source("movielens-1m", 4, 500)
        epsilon = f"privacy.target_epsilon={self.epsilon}"
        seed = self.place.experiment.run.seed
        asked = [*changes, epsilon, f"run.seed={seed}"]
        method = read_experiment(experiment).method
        is_local = isinstance(getattr(method, "privacy", None), LocalPrivUnit)
        if not is_local:
            asked.append(f"privacy.delta={delta}")
        return replace(assemble(read_experiment(experiment, asked)).simulation, key=key)


def main() -> None:
    """Print one line per cell, and last which are below popularity."""
    asked = _options()
    made = []
    for name in asked.sets:
        for cell in cells(name, asked):
            made.append(cell)
            print(cell.shown(), flush=True)
            if asked.out is not None:
                asked.out.write_text(json.dumps([one.json() for one in made], indent=1))
    worse = below(made)
    apart = [cell.differences["popularity"] for cell in made]
    alone = sum(one.mean < -2 * (one.se or 0.0) for one in apart)
    print(f"{len(worse)} of {len(made)} cells are below popularity, all held together")
    print(f"{alone} are below by two standard errors, each cell alone")
    for cell in worse:
        print(f"below: {cell.shown()}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gram_floor")
    every = [0.5, 1.0, 2.0, 4.0, 8.0, float("inf")]
    parser.add_argument("--sets", nargs="+", choices=[*SETS], default=[*SETS])
    parser.add_argument("--epsilons", nargs="+", type=float, default=every)
    parser.add_argument("--lengths", nargs="+", choices=LENGTHS, default=LENGTHS)
    methods = ["gram", *FILES, *SERVED]
    parser.add_argument("--method", choices=methods, default="gram")
    parser.add_argument("--query", type=float, default=2.0, help="its epsilon")
    against = ["popularity", "first version", "gram"]
    parser.add_argument("--against", nargs="+", choices=against, default=["popularity"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
