"""What DP-VAE's priors and its construction of training data are worth.

    TACIT_DATA=… python -m benchmarks.dpvae_ablations --words glove.6B.50d.zip
    TACIT_DATA=… python -m benchmarks.dpvae_ablations --sets ml-1m --words … --kept kept

    plain        the paper's network (`model = "vae"`), no priors, beta as asked for
    priors       each user's prior from gender, age, occupation and place
    shuffled     the same priors, each given to another user
    beta = 1, 2  no priors, and a KL term of full or double weight
    at most 50   training users have 50 of their items, drawn at random
    20 and more  only users with 20 items and more train

Protocol P1 without noise and at epsilon 4, sound mode. Everybody ranks for the same
held-out users among the same items; the ranker sees 1, 3, 5 or all of the items that
fold in, drawn once. A Markdown table per set and epsilon: NDCG@100, and the difference
to one line (`--against`), paired over users and runs as in `benchmarks.budgets`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.budgets import delta_of
from benchmarks.gram_floor import METRIC, SETS
from benchmarks.kept_values import KeptValues, Values
from benchmarks.one_training import among, trained
from tacit.data.catalog import Profiles
from tacit.data.features import take
from tacit.data.metadata_vectors import vector_name
from tacit.data.shards import Shards
from tacit.data.splits import Split
from tacit.evaluation.ranking import Personal
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import evaluate_scores, method_scorer
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import CentralGaussian, Scores, Unprotected
from tacit.methods.dpvae import DpVae
from tacit.plans import Plan
from tacit.results import Metric

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "ml-1m-dpvae.toml"
KINDS = ("gender", "age_group", "occupation", "zip")
MOST, LEAST = 50, 20  # items of a training user
CUTS = {"1 item": 1, "3 items": 3, "5 items": 5, "all": None}
SIZES = {  # without noise as published, else as on docs/methods/dpvae.md
    math.inf: {"hidden": 80, "latent": 20},
    4.0: {"hidden": 32, "latent": 16},
}

Divide = Callable[[Split], Split]


@dataclass(frozen=True)
class Variant:
    """What differs from the plain method: settings, or who trains on what."""

    settings: tuple[tuple[str, object], ...] = ()
    divide: Divide = lambda split: split


def shuffled(split: Split) -> Split:
    """Everybody's metadata are those of somebody else, all kinds together."""
    profiles = split.profiles
    order = Key.from_seed(0).at("shuffled").generator().permutation(len(profiles))
    names = {*map(vector_name, KINDS)}
    own = {n: f for n, f in profiles.features.items() if n in names}
    features = {**profiles.features, **take(own, order)}
    return replace(split, profiles=Profiles(profiles.ids, features))


def capped(split: Split) -> Split:
    """Training users with more than 50 items have 50 of them."""
    return replace(split, train=drawn(split.train, split.users, MOST))


def without_short(split: Split) -> Split:
    """Users with fewer than 20 items do not train."""
    return among(split, np.flatnonzero(split.train.lengths >= LEAST))


def drawn(shards: Shards, users: np.ndarray, most: int) -> Shards:
    """At most so many items of each user, the same ones every time."""
    return shards.at_most(most, Key.from_seed(0).at("drawn", most).each(users))


PLAIN = "plain"
VARIANTS = {
    PLAIN: Variant(),
    "priors": Variant((("priors", KINDS),)),
    "priors, shuffled": Variant((("priors", KINDS),), shuffled),
    "beta = 1": Variant((("beta", 1.0),)),
    "beta = 2": Variant((("beta", 2.0),)),
    "at most 50 items": Variant(divide=capped),
    "20 items and more": Variant(divide=without_short),
}


@dataclass(frozen=True)
class Run:
    """One training: a variant at an epsilon, on the users of one seed."""

    made: Assembled
    variant: str
    epsilon: float
    draw: int

    def values(self) -> Values:
        """By cut and part the metric of every held-out user."""
        split = VARIANTS[self.variant].divide(self.made.split)
        plan = self._plan(len(split.train))
        method = self._method.calibrated(plan)
        seed = 100 * self.made.experiment.run.seed + self.draw
        key = Key.from_seed(seed)
        judged, state = trained(self.made, split, method, plan, key=key)
        whole = method_scorer(judged, state)
        return {
            f"{part}, {name}": evaluate_scores(
                judged, _seeing(whole, most), getattr(split, part)
            ).values[METRIC]
            for name, most in CUTS.items()
            for part in ("validation", "test")
        }

    @property
    def _method(self) -> DpVae:
        method = self.made.experiment.method
        assert isinstance(method, DpVae)
        privacy = CentralGaussian() if math.isfinite(self.epsilon) else Unprotected()
        changes = dict(VARIANTS[self.variant].settings)
        if method.model == "vae":
            changes = {**SIZES[self.epsilon], **changes}
        return replace(method, privacy=privacy, **changes)  # type: ignore[arg-type]

    def _plan(self, population: int) -> Plan:
        is_private = math.isfinite(self.epsilon)
        return replace(
            self.made.plan,
            population=population,
            groups={},
            delta=delta_of(self.made) if is_private else None,
            target_epsilon=self.epsilon if is_private else None,
        )

    def kept(self, kept: KeptValues) -> Values:
        """The values, computed if they are not there."""
        run = {
            "experiment": self.made.experiment.digest,
            "seed": self.made.experiment.run.seed,
            "variant": self.variant,
            "epsilon": str(self.epsilon),
            "draw": self.draw,
        }
        return kept.of(run, self.values)


def _seeing(whole: Personal, most: int | None) -> Personal:
    """The same scorer where it sees only so many items of each history."""
    if most is None:
        return whole

    def score(users: np.ndarray, history: Shards) -> Scores:
        return whole.score(users, drawn(history, users, most))

    return Personal(score)


@dataclass(frozen=True)
class Study:
    """The places of one set, one per seed, and what is asked of them."""

    places: list[Assembled]
    asked: argparse.Namespace
    kept: KeptValues

    def table(self, name: str, epsilon: float) -> Iterator[str]:
        """The lines of one Markdown table."""
        shown = "no noise" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
        yield f"| {name}, {shown} | {' | '.join(CUTS)} |"
        yield "|---" * (1 + len(CUTS)) + "|"
        first = self.asked.against
        reference = self._found(first, epsilon)
        for variant in dict.fromkeys([first, *self.asked.variants]):
            found = self._found(variant, epsilon)
            other = None if variant == first else reference
            cells = [self._cell(found, other, cut) for cut in CUTS]
            yield f"| {variant} | {' | '.join(cells)} |"

    def _found(self, variant: str, epsilon: float) -> list[list[Values]]:
        """By seed and draw."""
        return [
            [
                Run(place, variant, epsilon, draw).kept(self.kept)
                for draw in range(self.asked.draws)
            ]
            for place in self.places
        ]

    def _cell(
        self, found: list[list[Values]], other: list[list[Values]] | None, cut: str
    ) -> str:
        own = self._stacked(found, cut)
        mean = _shown(float(np.concatenate([v.mean(0) for v in own]).mean()))
        if other is None:
            return mean
        pairs = zip(own, self._stacked(other, cut), strict=True)
        apart = [ours - theirs for ours, theirs in pairs]
        users, runs = (
            Metric.of(np.concatenate([v.mean(axis) for v in apart])) for axis in (0, 1)
        )
        error = max(users.se or 0.0, runs.se or 0.0)
        return f"{mean} ({_signed(users.mean)} ± {_shown(error)})"

    def _stacked(self, found: list[list[Values]], cut: str) -> list[np.ndarray]:
        """Of each seed the metric, one row per draw and one column per user."""
        name = f"{self.asked.part}, {cut}"
        return [np.stack([one[name] for one in draws]) for draws in found]


def _shown(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def _signed(value: float) -> str:
    return ("+" if value >= 0 else "−") + _shown(abs(value))


def main() -> None:
    """Print one table per set and epsilon."""
    asked = _options()
    kept = KeptValues(asked.kept)
    for name in asked.sets:
        places = [_assembled(asked, name, seed) for seed in range(asked.seeds)]
        study = Study(places, asked, kept)
        for epsilon in asked.epsilons:
            for line in study.table(name, epsilon):
                print(line, flush=True)
            print()


def _assembled(asked: argparse.Namespace, name: str, seed: int) -> Assembled:
    kind = SETS[name]
    changes = [
        *(kind if isinstance(kind, tuple) else ()),
        f"run.seed={seed}",
        f"method.model={asked.model!r}",
    ]
    if asked.model == "vae":
        changes.append(f"method.beta={asked.beta}")
    if asked.words is not None:
        changes.append(f"data.metadata_vectors.words={str(asked.words)!r}")
    return assemble(read_experiment(asked.experiment, changes))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dpvae_ablations")
    known = [name for name, kind in SETS.items() if isinstance(kind, tuple)]
    parser.add_argument("--sets", nargs="+", choices=known, default=["ml-100k"])
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--words", type=Path, help="a file of word vectors")
    parser.add_argument("--model", choices=["vae", "autoencoder"], default="vae")
    parser.add_argument("--beta", type=float, default=0.5)
    variants = [*VARIANTS]
    parser.add_argument("--variants", nargs="+", choices=variants, default=variants)
    parser.add_argument("--against", choices=variants, default=PLAIN)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[math.inf, 4.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    parser.add_argument("--kept", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
