"""Contenders of PrivateRec's Table 1 where noise grows with a large model.

    python -m benchmarks.news_fedrec --every 25 --minutes 30 --part validation
    python -m benchmarks.news_fedrec --seeds 0 1 2 --set method.mode=paper
        --set privacy.mechanism=published_gradient --set privacy.epsilon=10.0

Trains the experiment as `tacit train` does, with the same gradients, bounds, noise and
steps by law, but with shortcuts that only a simulation has:

    no clip          the sum of gradients is that of the summed loss: one backward pass
    noise of a sum   drawn once. n Laplace noises add up to the difference of two gamma
                     variables of shape n; Gaussian ones to a Gaussian

Prints, every few rounds, the AUC, how far it is above the start and above one list for
all users (± paired standard errors over users) and the processor time; it stops after
`--minutes` of that. The last line of a seed has all four metrics.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Float64, Int64

from tacit.data.impressions import Impressions, Slates
from tacit.data.ragged import Ragged
from tacit.data.splits import Split
from tacit.evaluation.impressions import METRICS, evaluate_impressions
from tacit.experiment.assemble import Assembled, assemble, data_read_once
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.methods.privaterec import PrivateRec
from tacit.models.news_models import Encoded, Rows
from tacit.phase import Phase
from tacit.privacy import CentralGaussian, PublishedGradientNoise
from tacit.results import Evaluation
from tacit.sampling import FixedSize
from tacit.tree import Array, Arrays

EXPERIMENT = (
    Path(__file__).parents[1] / "experiments" / "privaterec" / "synthetic-nrms.toml"
)


class Ranking(Protocol):
    """What ranks by inner products of what is served."""

    def users(self, served: Arrays, histories: Ragged) -> Rows:
        """The vector of each history."""

    def news(self, served: Arrays, items: Int64[np.ndarray, "some"]) -> Rows:
        """The vector of each of these news."""


@dataclass(frozen=True)
class OneVector:
    """A model that gives all users the same vector, and so the same list."""

    model: Encoded
    vector: Float64[np.ndarray, "axes"]

    def users(self, served: Arrays, histories: Ragged) -> Rows:
        """The vector, as often as there are histories."""
        return np.tile(self.vector, (len(histories), 1))

    def news(self, served: Arrays, items: Int64[np.ndarray, "some"]) -> Rows:
        """The vectors of these news."""
        return self.model.news(served, items)

    @classmethod
    def mean(cls, model: Encoded, served: Arrays, histories: Ragged) -> OneVector:
        """The mean vector of these users."""
        return cls(model, model.users(served, histories).mean(axis=0))


def main() -> None:
    given = _arguments()
    with data_read_once():
        for seed in given.seeds:
            changes = (*given.set, f"run.seed={seed}")
            made = assemble(read_experiment(given.experiment, changes))
            _train(made, seed, given)


def _train(made: Assembled, seed: int, given: argparse.Namespace) -> None:
    split, begun = made.split, time.process_time()
    impressions = impressions_of(split, given.part)
    model, start = model_of(made), None
    for done, weights in course(made, seed, every=given.every):
        served = model.served(weights)
        found = evaluated(model, served, impressions)
        mean = OneVector.mean(model, served, split.train.histories)
        one = evaluated(mean, served, impressions)
        start = start or found
        spent = time.process_time() - begun
        print(f"seed {seed}, round {done}, {spent:.0f} s: {_shown(found, start, one)}")
        if spent > 60 * given.minutes:
            print(f"stopped after {given.minutes:g} minutes of processor time")
            break
        sys.stdout.flush()
    metrics = ", ".join(f"{n} {m.mean:.4f}" for n, m in found.metrics().items())
    numbers = sum(v.size for n, v in weights.items() if not n.startswith("input."))
    print(f"  {metrics}; {numbers:,} numbers", flush=True)


def course(
    made: Assembled, seed: int, *, every: int
) -> Iterator[tuple[int, dict[str, Array]]]:
    """All public arrays before the first round, and after every few."""
    method, plan = method_of(made), made.plan
    key, [phase] = Key.from_seed(seed), method.phases(plan)
    server = method.start(plan, made.split.catalog, key.at("start"))
    yield 0, dict(server.weights)
    impressions, sampler = made.split.train.known_impressions, plan.sampler
    n_users = impressions.slates.n_users
    size = min(n_users, sampler.size) if isinstance(sampler, FixedSize) else n_users
    for done in range(1, plan.rounds + 1):
        draws = key.at("round", done)
        cohort = np.sort(draws.at("cohort").permutation(n_users)[:size])
        shown = impressions.take_users(cohort)
        total = _total(method, phase, server.weights, shown, draws)
        server = method.learn(server, phase, total)
        if done % every == 0 or done == plan.rounds:
            yield done, dict(server.weights)


def impressions_of(split: Split, part: str) -> Impressions:
    """The impressions of the validation or of the test day."""
    found = split.test if part == "test" else split.validation
    assert isinstance(found, Impressions)
    return found


def method_of(made: Assembled) -> PrivateRec:
    """The method, which must be PrivateRec."""
    assert isinstance(made.method, PrivateRec)
    return made.method


def model_of(made: Assembled) -> Encoded:
    """Its encoders."""
    model = method_of(made)._model
    assert isinstance(model, Encoded)
    return model


def _total(
    method: PrivateRec, phase: Phase, known: Arrays, shown: Impressions, draws: Key
) -> dict[str, Array]:
    """The sum of a cohort's gradients, bounded and under noise as agreed."""
    model, privacy, users = method._model, method.privacy, shown.slates.n_users
    assert isinstance(model, Encoded)
    keys = draws.at("clients").each(np.arange(users))
    if isinstance(privacy, PublishedGradientNoise):
        clip = privacy.theta
    elif isinstance(privacy, CentralGaussian):
        clip = phase.bounded_by(privacy.clip)
    else:  # no noise, or noise inside the model
        return model.total(known, shown, keys)
    tree = model.gradients(known, shown, keys, effects=np.zeros(0))
    total = clip_by_norm(tree, clip).sum()
    size = sum(value.size for value in total.values())
    variance = privacy.variance(phase, users=users, size=size)
    noise = draws.at("noise").generator()
    return {
        name: value + summed_noise(privacy, noise, value.shape, users, variance)
        for name, value in total.items()
    }


def summed_noise(
    privacy: PublishedGradientNoise | CentralGaussian,
    draw: np.random.Generator,
    shape: tuple[int, ...],
    users: int,
    variance: float,
) -> Array:
    """The noise of all users together, with the law of its sum."""
    if isinstance(privacy, CentralGaussian) or privacy.gaussian_delta:
        return math.sqrt(variance) * draw.standard_normal(shape)
    scale = math.sqrt(
        variance / users / 2
    )  # of one Laplace noise: its variance is 2 b²
    return scale * (draw.gamma(users, size=shape) - draw.gamma(users, size=shape))


def evaluated(
    model: Ranking,
    served: Arrays,
    impressions: Impressions,
    *,
    metrics: tuple[str, ...] = METRICS,
) -> Evaluation:
    """The metrics of every impression."""

    def score(slates: Slates) -> Float64[np.ndarray, "candidates"]:
        users = model.users(served, slates.histories)[slates.history_of]
        news = model.news(served, slates.shown.values)
        return np.einsum("ij,ij->i", users[slates.shown.owners], news)

    return evaluate_impressions(score, impressions, metrics=metrics)


def gain(found: Evaluation, start: Evaluation) -> tuple[float, float]:
    """The mean difference of AUC and its standard error, clustered by user."""
    gained = found.values["auc"] - start.values["auc"]
    _, rows = np.unique(found.users, return_inverse=True)
    residual = np.bincount(rows, gained - gained.mean())
    return float(gained.mean()), float(np.sqrt((residual**2).sum())) / len(gained)


def _shown(found: Evaluation, start: Evaluation, one: Evaluation) -> str:
    auc = found.metrics()["auc"]
    over, beside = gain(found, start), gain(found, one)
    return (
        f"AUC {auc.mean:.4f} ± {auc.se:.4f}, {over[0]:+.4f} ± {over[1]:.4f} over "
        f"start, {beside[0]:+.4f} ± {beside[1]:.4f} over one list"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--set", action="append", default=[], help="as of tacit train")
    parser.add_argument("--every", type=int, default=25)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    return parser.parse_args()


if __name__ == "__main__":
    main()
