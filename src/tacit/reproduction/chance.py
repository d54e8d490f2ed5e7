"""How good one random list is that everybody gets: the bar of every claim.

A model that learnt nothing gives nearly the same list to all users. Such a list is good
or bad by chance, for everyone alike, so that an interval over users does not cover it:
of two of them one is always "better", and both are "close". A model counts as having
learnt something if it is above the best of N lists that were drawn. Of one more random
list that is true once in N + 1 times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tacit.data.shards import Shards
from tacit.evaluation.ranking import Scorer
from tacit.experiment.assemble import assemble, root_key
from tacit.experiment.comparison_grid import measured
from tacit.experiment.evaluate import evaluate_scores
from tacit.experiment.settings import Experiment
from tacit.keys import Key
from tacit.method import Scores
from tacit.reproduction.cells import Cell, Results
from tacit.reproduction.claims import LISTS, Chance
from tacit.results import Evaluation


def best_by_chance(results: Results, cell: Cell) -> Chance:
    """The best of the random lists by each metric, on the test users of seed 0."""
    one = cell.experiments()[0]
    found: dict[str, float] = results.measured(
        f"random lists {one.data.source}",
        {"measured": measured(one), "seed": one.split_seed, "lists": LISTS},
        lambda: _of_experiment(one),
    )
    return found


def best_of_lists(
    judge: Callable[[Scorer], Evaluation], *, n_items: int, key: Key
) -> Chance:
    """The best of the random lists by each metric that `judge` measures."""
    judged = [judge(scorer) for scorer in random_lists(n_items, key=key)]
    return {
        metric: max(float(one.values[metric].mean()) for one in judged)
        for metric in judged[0].values
    }


def random_lists(n_items: int, *, key: Key) -> Iterator[Scorer]:
    """Scorers that give every history the same scores, of which each has its own."""
    draw = key.at("random lists").generator()
    for _ in range(LISTS):
        yield _for_all(draw.permutation(n_items).astype(np.float32))


def _of_experiment(experiment: Experiment) -> Chance:
    assembled = assemble(experiment)
    return best_of_lists(
        lambda scorer: evaluate_scores(assembled, scorer, assembled.split.test),
        n_items=len(assembled.split.catalog),
        key=root_key(experiment),
    )


def _for_all(scores: np.ndarray) -> Callable[[Shards], Scores]:
    return lambda history: np.tile(scores, (len(history), 1))
