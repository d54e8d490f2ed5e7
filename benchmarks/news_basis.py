"""PrivateRec's basis: what its start, training and mixture are worth, by validation.

    TACIT_DATA=… python -m benchmarks.news_basis --set method.basis_length=8 --seeds 0 1
    TACIT_DATA=… python -m benchmarks.news_basis --starts
    TACIT_DATA=… python -m benchmarks.news_basis --search --part test

Of each seed, AUC of the untrained and of the trained model, each three times:

    mixture    as users are ranked for
    one list   the mean vector of those who train, for all users alike
    own        the user vector before the mixture

and the mixture trained less untrained (± its standard error, clustered by user), the
mean of the largest attention of a user, how many of their ten best news two users
share, and how far the basis went, over its length. The trained model with the basis of
the start says what the moves of the basis are worth.
`--starts` is a table of untrained mixtures by B, length and how they are read, and
`--search` one of trained ones: the settings from which the defaults were chosen.
Validation impressions unless `--part test`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from benchmarks.news_fedrec import (
    OneVector,
    evaluated,
    gain,
    impressions_of,
    model_of,
)
from tacit.data.impressions import Impressions
from tacit.experiment.assemble import Assembled, assemble, data_read_once
from tacit.experiment.settings import read_experiment
from tacit.method import Arrays
from tacit.models.news_encoders.interests import attention
from tacit.models.news_encoders.plm_nr import BASIS
from tacit.models.news_models import Encoded
from tacit.results import Evaluation

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "privaterec" / "mind.toml"
_PAIRS = 200  # users whose lists are compared
LENGTHS = (1.0, 4.0, 8.0, 16.0, 32.0, 64.0)
SEARCHED: tuple[tuple[str, ...], ...] = (
    *(
        (f"method.interests={n}", f"method.basis_length={length}")
        for n, length in product((3, 5), (8.0, 16.0, 32.0))
    ),
    *((f"method.rate={rate}", "method.interests=5") for rate in (0.0003, 0.003)),
    *(
        (
            "method.interests=5",
            f"run.rounds={n}",
            f"run.sampler={{name = 'fixed_size', size = {size}}}",
        )
        for n, size in ((30, 200), (120, 200), (60, 1000))
    ),
    ("method.interests=5", "method.starts_at=content"),
    ("method.interests=5", "method.serving=softplus"),
)


@dataclass(frozen=True)
class Looked:
    """The AUC of one model, by how users are read."""

    mixture: Evaluation
    one_list: Evaluation
    own: Evaluation
    most: float  # mean of the largest attention
    shared: float  # of the ten best news of two users, on average

    def __str__(self) -> str:
        three = {"mixture": self.mixture, "one list": self.one_list, "own": self.own}
        shown = (f"{n} {e.metrics()['auc'].mean:.4f}" for n, e in three.items())
        lists = f"attention {self.most:.2f}, two users share {self.shared:.1f} of 10"
        return f"{', '.join(shown)}, {lists}"


def main() -> None:
    given = _arguments()
    with data_read_once():
        if given.starts:
            _starts(given)
            return
        for changes in SEARCHED[given.first :] if given.search else ((),):
            for seed in given.seeds:
                own = (*given.set, *changes, f"run.seed={seed}")
                print(f"{' '.join(own)}", flush=True)
                _train(_assembled(given.experiment, own), given.part)


def _starts(given: argparse.Namespace) -> None:
    for size, length, serving in product((3, 5, 10), LENGTHS, ("relu", "softplus")):
        found = []
        for seed in given.seeds:
            own = (
                *given.set,
                f"method.interests={size}",
                f"method.basis_length={length}",
                f"method.serving={serving}",
                f"run.seed={seed}",
            )
            made = _assembled(given.experiment, own)
            start = made.simulation.start().server
            found.append(look(made, start.weights, given.part))
        means = [
            np.mean([getattr(one, name).metrics()["auc"].mean for one in found])
            for name in ("mixture", "one_list", "own")
        ]
        shown = " ".join(f"{mean:.4f}" for mean in means)
        print(f"B = {size}, length {length:g}, {serving}: {shown}", flush=True)


def _train(made: Assembled, part: str) -> None:
    start = made.simulation.start()
    *_, (trained, _) = made.simulation.run(start)
    first, last = start.server.weights, trained.server.weights
    before, after = look(made, first, part), look(made, last, part)
    moved = np.linalg.norm(last[BASIS] - first[BASIS]) / np.linalg.norm(first[BASIS])
    mean, error = gain(after.mixture, before.mixture)
    held = look(made, {**last, BASIS: first[BASIS]}, part).mixture
    rest = gain(held, before.mixture)
    print(f"  untrained  {before}\n  trained    {after}")
    print(
        f"  trained - untrained {mean:+.4f} ± {error:.4f}, with the basis of the start"
    )
    print(f"  {rest[0]:+.4f} ± {rest[1]:.4f}; the basis went {moved:.3f} of its length")
    sys.stdout.flush()


def look(made: Assembled, weights: Arrays, part: str) -> Looked:
    """The AUC of these weights on the impressions of a part."""
    model, split = model_of(made), made.split
    served = model.served(weights)
    impressions = impressions_of(split, part)
    plain = replace(model, interests=0)
    one = OneVector.mean(model, served, split.train.histories)
    own = plain.users(served, impressions.slates.histories)
    return Looked(
        evaluated(model, served, impressions),
        evaluated(one, served, impressions),
        evaluated(plain, served, impressions),
        float(attention(own, served[BASIS]).max(axis=1).mean()),
        _shared(model, served, impressions),
    )


def _shared(model: Encoded, served: Arrays, impressions: Impressions) -> float:
    """How many of their ten best news among all two users have in common, on average.

    The first users of the part, each beside the next.
    """
    users = model.users(served, impressions.slates.histories)[:_PAIRS]
    scores = users @ model.news(served, np.arange(impressions.slates.n_items)).T
    best = np.argpartition(-scores, 10, axis=1)[:, :10]
    pairs = pairwise(best)
    return float(np.mean([len(np.intersect1d(*pair)) for pair in pairs]))


def _assembled(file: Path, changes: tuple[str, ...]) -> Assembled:
    named = {change.partition("=")[0]: change for change in changes}
    return assemble(read_experiment(file, tuple(named.values())))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--starts", action="store_true")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--first", type=int, default=0, help="line of the search")
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    return parser.parse_args()


if __name__ == "__main__":
    main()
