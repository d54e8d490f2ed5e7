"""Central news models on the MIND sample: settings by validation, then the test.

    TACIT_DATA=… python -m benchmarks.news_validation plm_nr epochs=6 rate=0.001
    TACIT_DATA=… python -m benchmarks.news_validation nrms words=PATH --test best

Prints the AUC of the validation impressions before training and after every epoch. With
`--test last` it prints instead that of the test impressions after the last epoch, and
with `--test best` also that after the epoch that was best on validation: once, when all
settings are chosen. Words are learnt unless a file of vectors is named.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.news_fedrec import impressions_of
from tacit.baselines.news_central import FittedNews, ReadNews
from tacit.baselines.ranker import CatalogRanker
from tacit.data.impressions import Impressions
from tacit.evaluation.impressions import evaluate_impressions
from tacit.evaluation.slate_scores import slate_scorer
from tacit.experiment.assemble import assemble
from tacit.experiment.registry import baseline
from tacit.experiment.scorer import scorer
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.results import Metric

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "mind-gram.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=["plm_nr", "nrms", "naml"])
    parser.add_argument("settings", nargs="*", help="a field of the baseline=its value")
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--test", choices=["last", "best"])
    given = parser.parse_args()
    split = assemble(read_experiment(given.experiment)).split
    ranker = baseline(given.model, dict(map(_setting, given.settings)))
    assert isinstance(ranker, CatalogRanker)
    read = ranker.reading(split.catalog)
    assert isinstance(read, ReadNews)
    validation = impressions_of(split, "validation")
    for seed in given.seeds:
        course = enumerate(read.course(split.train, key=Key.from_seed(seed)))
        if given.test == "last":
            *_, (epoch, fitted) = course
        else:
            epoch, fitted = _best(course, validation, seed)
        if given.test:
            found = _auc(fitted, impressions_of(split, "test"))
            print(f"seed {seed}, test after epoch {epoch}  {_shown(found)}", flush=True)


def _best(
    course: Iterator[tuple[int, FittedNews]], validation: Impressions, seed: int
) -> tuple[int, FittedNews]:
    """The epoch that is best on validation impressions; all of them are printed."""
    chosen, highest = None, -1.0
    for epoch, fitted in course:
        found = _auc(fitted, validation)
        print(
            f"seed {seed}, validation after epoch {epoch}  {_shown(found)}", flush=True
        )
        if found.mean > highest:
            chosen, highest = (epoch, fitted), found.mean
    assert chosen is not None  # a course has the untrained model at least
    return chosen


def _auc(fitted: FittedNews, impressions: Impressions) -> Metric:
    score = slate_scorer(scorer(fitted))
    return evaluate_impressions(score, impressions, metrics=("auc",)).metrics()["auc"]


def _shown(auc: Metric) -> str:
    return f"{auc.mean:.4f} ± {auc.se:.4f}"


def _setting(text: str) -> tuple[str, float | int | bool | str]:
    """A field and its value: a number, true or false where it is one."""
    name, _, value = text.partition("=")
    if value in ("true", "false"):
        return name, value == "true"
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


if __name__ == "__main__":
    main()
