"""Settings of the central news models on the validation day of the MIND sample.

    TACIT_DATA=… python -m benchmarks.news_validation plm_nr epochs=6 rate=0.001
    TACIT_DATA=… python -m benchmarks.news_validation nrms words=PATH epochs=6

Prints the AUC of the validation impressions before training and after every epoch. No
test impression is looked at. Words are learnt unless a file of vectors is named.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from tacit.evaluation.impressions import evaluate_impressions
from tacit.evaluation.slate_scores import slate_scorer
from tacit.experiment.assemble import assemble
from tacit.experiment.registry import baseline
from tacit.experiment.scorer import scorer
from tacit.experiment.settings import read_experiment
from tacit.keys import Key

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "mind-gram.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=["plm_nr", "nrms", "naml"])
    parser.add_argument("settings", nargs="*", help="a field of the baseline=its value")
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    split = assemble(read_experiment(given.experiment)).split
    ranker = baseline(given.model, dict(map(_setting, given.settings)))
    read = ranker.reading(split.catalog)
    begun = time.perf_counter()
    course = read.course(split.train, key=Key.from_seed(given.seed))
    for epoch, fitted in enumerate(course):
        score = slate_scorer(scorer(fitted))
        found = evaluate_impressions(score, split.validation, metrics=("auc",))
        auc, took = found.metrics()["auc"], time.perf_counter() - begun
        print(f"{epoch:3d}  {auc.mean:.4f} ± {auc.se:.4f}  {took:6.1f} s", flush=True)


def _setting(text: str) -> tuple[str, float | int | str]:
    """A field and its value: a number where it is one."""
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


if __name__ == "__main__":
    main()
