"""Hyper-parameters chosen on validation users, with the same budget for everyone.

A baseline that nobody tuned is not a baseline. Each declares in `GRID` what may be
tried; a search tries all of it, or `budget` settings drawn at random where there are
more (Bergstra and Bengio 2012). Only `split.train` and `split.validation` are read.
Rankers that can share work between settings do (`GridRanker`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit import check
from tacit.baselines.ranker import Fitted, Grid, GridRanker, Ranker
from tacit.data.splits import Split
from tacit.evaluation.evaluate import Protocol, evaluate
from tacit.experiment.scorer import fit, scorer
from tacit.keys import Key
from tacit.results import Chosen, Metric

BUDGET = 12  # settings per baseline; one number for all, so that none is favored

Settings = Mapping[str, float]


@dataclass(frozen=True)
class Trial:
    """One setting and its metric on the validation users."""

    ranker: Ranker
    settings: Settings
    found: Metric
    seconds: float  # to fit and to evaluate

    def to_json(self) -> dict[str, Any]:
        """`settings`, the metric's `mean`, `se` and `n`, and `seconds`."""
        figures = self.found.to_json()
        return {"settings": dict(self.settings), **figures, "seconds": self.seconds}


@dataclass(frozen=True)
class Search:
    """All trials, in the order of the grid."""

    metric: str
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The trial with the largest mean; the first of several."""
        return max(self.trials, key=lambda trial: trial.found.mean)

    @property
    def chosen(self) -> Chosen:
        """The best settings, and of how many."""
        return Chosen(self.best.settings, len(self.trials))

    def to_json(self) -> dict[str, Any]:
        """`metric`, `trials` and the settings that were `best`."""
        trials = [trial.to_json() for trial in self.trials]
        best = dict(self.best.settings)
        return {"metric": self.metric, "trials": trials, "best": best}


def search(
    ranker: Ranker,
    split: Split,
    *,
    metric: str = "ndcg@100",
    budget: int = BUDGET,
    grid: Grid | None = None,
    protocol: Protocol | None = None,
    key: Key,
) -> Search:
    """Try settings of `ranker` and keep the score of each.

    Fields that are not in the grid (its own unless given) stay as they are. The same
    key draws the same settings from the same grid, whatever the split.
    """
    check.count(budget=budget)
    tried = settings_of(ranker.GRID if grid is None else grid, budget, key=key)
    fits = _fits(ranker, tried, split, key.at("search", "fit"))
    trials = []
    for settings in tried:
        start = time.perf_counter()
        fitted = next(fits)
        found = evaluate(
            scorer(fitted), split.validation, metrics=(metric,), protocol=protocol
        )
        del fitted  # before the next one is made: it may be large
        seconds = time.perf_counter() - start
        candidate = replace(ranker, **settings)
        trials.append(Trial(candidate, settings, found.metrics()[metric], seconds))
    return Search(metric, tuple(trials))


def settings_of(grid: Grid, budget: int, *, key: Key) -> list[Settings]:
    """Every combination of the grid's values, or `budget` different ones."""
    every: list[Settings] = [
        dict(zip(grid, values, strict=True))
        for values in itertools.product(*grid.values())
    ]
    if len(every) <= budget:
        return every
    draw = key.at("search", "settings").generator()
    chosen = draw.choice(len(every), budget, replace=False)
    return [every[index] for index in sorted(chosen)]  # in the order of the grid


def _fits(
    ranker: Ranker, settings: Sequence[Settings], split: Split, key: Key
) -> Iterator[Fitted]:
    """The ranker fitted with each of the settings, one at a time."""
    if isinstance(ranker, GridRanker):
        return ranker.fit_each(split.train, settings, key=key)
    return (fit(replace(ranker, **one), split, key=key) for one in settings)
