"""PLM-NR whose language model is trained, beside the same with a frozen one.

    TACIT_DATA=… python -m benchmarks.news_language_model --seeds 0 1 2 --part test
        [--learns head adapter] [--trained centrally fedrec] [--kept FILE]

The language model learns by an adapter in its last layer (`plm_adapter`), and
everything below is computed once per title and kept in the cache. From one start,

    untrained   a random head over sentence vectors
    head        head and user encoder are trained, the language model stays
    adapter     all of it is trained

centrally, by Adam over all clicks, or as FedRec, by FedAdam over cohorts; no noise.
Prints AUC, MRR, nDCG@5 and nDCG@10, means over seeds ± their standard error over seeds,
and differences of AUC, with those over users and over seeds. Validation impressions
unless `--part test`. With `--kept` finished trainings are not run again.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.kept_values import KeptValues, Values
from benchmarks.news_fedrec import evaluated, impressions_of
from tacit.aggregation.server_optimizers import Adam
from tacit.baselines.news_central import ReadNews, Training
from tacit.data.splits import Split
from tacit.evaluation.impressions import METRICS
from tacit.experiment.assemble import assemble
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.models.news_encoders.batch import Batch
from tacit.models.news_encoders.drawn_batch import Draws, TrueLabels
from tacit.models.news_encoders.plm_adapter import ADAPTER, PlmAdapter
from tacit.models.news_models import Encoded
from tacit.models.sentence_encoder import MiniLm
from tacit.models.token_states import TokenStates
from tacit.tree import Array, Arrays

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "privaterec" / "mind.toml"
# What they are ranked by needs no vectors of whole titles.
NO_VECTORS = ("data.text_vectors=[]", "method.content=['title']")
NO_BASELINES = ("evaluate.baselines=[]", "evaluate.untrained=false")
NEGATIVES = 4
LEARNS = ("head", "adapter")
TRAINED = ("centrally", "fedrec")
START = "not"


@dataclass(frozen=True)
class HeadAlone(PlmAdapter):
    """The same model, whose adapter stays where it starts."""

    def total(self, weights: Arrays, inputs: Arrays, batch: Batch) -> dict[str, Array]:
        """The sum of the gradients, zero for the adapter."""
        total = super().total(weights, inputs, batch)
        return {n: v * (not n.startswith(ADAPTER)) for n, v in total.items()}


@dataclass(frozen=True)
class Bench:
    """The data, the tokens of its titles, and how long and how fast is trained."""

    split: Split
    tokens: TokenStates
    options: argparse.Namespace

    def values(self, trained: str, learns: str, seed: int) -> Values:
        """The metrics of every impression after this training."""
        kind = PlmAdapter if learns == "adapter" else HeadAlone
        model = kind(self.tokens, units=self.options.units)
        draws = Draws(TrueLabels(NEGATIVES), 1, self.options.most_read)
        encoded, key = Encoded(model, draws, dtype="float32"), Key.from_seed(seed)
        inputs, begun = encoded.inputs(self.split.catalog), time.process_time()
        weights: Arrays = encoded.start(key.at("weights"), inputs)
        if trained != START:
            train = self._centrally if trained == "centrally" else self._federated
            weights = train(encoded, inputs, weights, key)
        served = encoded.served({**inputs, **weights})
        impressions = impressions_of(self.split, self.options.part)
        found = evaluated(encoded, served, impressions)
        sizes = {n: v.size for n, v in weights.items()}
        own = sum(size for n, size in sizes.items() if n.startswith(ADAPTER))
        spent = time.process_time() - begun
        print(
            f"seed {seed}, {trained}, {learns}: AUC {found.metrics()['auc'].mean:.4f}, "
            f"{spent:.0f} s, {sum(sizes.values()):,} numbers, {own:,} of the adapter",
            file=sys.stderr,
            flush=True,
        )
        return {**found.values, "users": found.users}

    def _centrally(
        self, encoded: Encoded, inputs: Arrays, weights: Arrays, key: Key
    ) -> Arrays:
        """As the central baselines: Adam over batches of clicks."""
        own, known = (
            self.options,
            {n.removeprefix("input."): v for n, v in inputs.items()},
        )
        training = Training(
            own.epochs, own.central_rate, own.batch, NEGATIVES, own.most_read
        )
        assert isinstance(encoded.encoder, PlmAdapter)
        *_, last = ReadNews(encoded.encoder, known, training).course(
            self.split.train, key=key
        )
        return last.weights

    def _federated(
        self, encoded: Encoded, inputs: Arrays, weights: Arrays, key: Key
    ) -> Arrays:
        """As FedRec: FedAdam over cohorts, one impression of each client."""
        impressions = self.split.train.known_impressions
        n_users, adam = impressions.slates.n_users, Adam.federated(self.options.rate)
        memory, size = adam.start(weights), min(self.options.cohort, n_users)
        for number in range(1, self.options.rounds + 1):
            draws = key.at("round", number)
            cohort = np.sort(draws.at("cohort").permutation(n_users)[:size])
            clients = draws.at("clients").each(np.arange(size))
            shown = impressions.take_users(cohort)
            total = encoded.total({**inputs, **weights}, shown, clients)
            mean = {name: value / size for name, value in total.items()}
            weights, memory = adam.step(weights, memory, mean)
        return weights


def main() -> None:
    options = _arguments()
    changes = (*NO_VECTORS, *NO_BASELINES, *options.set)
    split = assemble(read_experiment(options.experiment, changes)).split
    model = MiniLm()
    tokens = TokenStates.of(
        [*split.catalog.titles],
        model.loaded,
        longest=options.longest,
        digest=model.digest,
        progress=_progress,
    )
    bench, kept = Bench(split, tokens, options), KeptValues(options.kept)
    fixed = {n: str(v) for n, v in sorted(vars(options).items()) if n not in _NOT_KEPT}

    def of(trained: str, learns: str, seed: int) -> Values:
        named = {"trained": trained, "learns": learns, "seed": seed}
        compute = partial(bench.values, trained, learns, seed)
        return kept.of({**fixed, **named}, compute)

    # A start is the same for both trainings. A seed is whole before the next begins.
    runs = [(START, "untrained"), *product(options.trained, options.learns)]
    found = {(seed, run): of(*run, seed) for seed in options.seeds for run in runs}
    seeds = {run: [found[seed, run] for seed in options.seeds] for run in runs}
    _print("untrained", seeds[runs[0]])
    for trained, learns in runs[1:]:
        own = seeds[trained, learns]
        _print(f"{trained}, {learns}", own)
        _print_gain("  over the start", own, seeds[runs[0]])
        if learns == "adapter" and (trained, "head") in seeds:
            _print_gain("  over the head alone", own, seeds[trained, "head"])


def _print(name: str, seeds: list[Values]) -> None:
    shown = (f"{metric} {_over_seeds(seeds, metric)}" for metric in METRICS)
    print(f"{name}: {', '.join(shown)}", flush=True)


def _print_gain(name: str, found: list[Values], other: list[Values]) -> None:
    """The mean difference of AUC ± its errors over users and over seeds."""
    differences = [
        one["auc"] - two["auc"] for one, two in zip(found, other, strict=True)
    ]
    mean = np.mean(differences, axis=0)
    _, users = np.unique(found[0]["users"], return_inverse=True)
    residual = np.bincount(users, mean - mean.mean())
    se = float(np.sqrt((residual**2).sum())) / len(mean)
    seeds = np.array([one.mean() for one in differences])
    print(
        f"{name}: {mean.mean():+.4f} ± {se:.4f} over users, ± {_se(seeds):.4f} over "
        "seeds"
    )


def _over_seeds(seeds: list[Values], metric: str) -> str:
    means = np.array([values[metric].mean() for values in seeds])
    return f"{means.mean():.4f} ± {_se(means):.4f}"


def _se(means: np.ndarray) -> float:
    return float(means.std(ddof=1)) / len(means) ** 0.5 if len(means) > 1 else 0.0


def _progress(done: int, every: int) -> None:
    if sys.stderr.isatty() or done == every:
        print(f"{done:,} of {every:,} titles", file=sys.stderr, flush=True)


_NOT_KEPT = {"seeds", "learns", "trained", "kept"}  # every training tells these itself


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--set", action="append", default=[], help="as of tacit train")
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--learns", choices=LEARNS, nargs="+", default=LEARNS)
    parser.add_argument("--trained", choices=TRAINED, nargs="+", default=TRAINED)
    parser.add_argument("--kept", type=Path, help="results of finished trainings")
    parser.add_argument("--longest", type=int, default=20, help="tokens of a title")
    parser.add_argument("--units", type=int, default=32, help="of the adapter")
    parser.add_argument("--most-read", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--cohort", type=int, default=200)
    parser.add_argument("--rate", type=float, default=0.001, help="of FedAdam")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--central-rate", type=float, default=0.0003)
    return parser.parse_args()


if __name__ == "__main__":
    main()
