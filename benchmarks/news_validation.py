"""Central news models on the MIND sample: settings by validation, then the test.

    TACIT_DATA=… python -m benchmarks.news_validation plm_nr epochs=6 rate=0.001
    TACIT_DATA=… python -m benchmarks.news_validation nrms words=PATH --seeds 3 --test

Prints the AUC of the validation impressions before training and after every epoch. With
`--test` it prints that of the test impressions after the last epoch, and nothing of
validation: for once the settings are chosen. Words are learnt unless a file of vectors
is named.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tacit.baselines.news_central import FittedNews
from tacit.data.impressions import Impressions
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
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--test", action="store_true")
    given = parser.parse_args()
    split = assemble(read_experiment(given.experiment)).split
    ranker = baseline(given.model, dict(map(_setting, given.settings)))
    read = ranker.reading(split.catalog)
    for seed in range(given.seeds):
        course = read.course(split.train, key=Key.from_seed(seed))
        if given.test:
            *_, last = course
            print(f"seed {seed}, test  {_auc(last, split.test)}", flush=True)
            continue
        for epoch, fitted in enumerate(course):
            found = _auc(fitted, split.validation)
            print(f"seed {seed}, epoch {epoch}  {found}", flush=True)


def _auc(fitted: FittedNews, impressions: Impressions) -> str:
    score = slate_scorer(scorer(fitted))
    auc = evaluate_impressions(score, impressions, metrics=("auc",)).metrics()["auc"]
    return f"{auc.mean:.4f} ± {auc.se:.4f}"


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
