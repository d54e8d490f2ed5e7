"""One list for all: what a model is worth whose users all have the same vector.

    z     the mean of the user vectors of those who trained
    s_n   z · v_n + offset of item n, for every user alike

A model may be above chance and still give everybody the same list. Where its figure is
no better than this one, nothing personal was learnt.
"""

from __future__ import annotations

import hashlib

import numpy as np

from tacit.data.shards import Shards
from tacit.evaluation.ranking import Scorer
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.evaluate import evaluate_scores
from tacit.experiment.saved_run import SavedRun, load
from tacit.experiment.settings import Experiment
from tacit.method import Scores
from tacit.reproduction.cells import Cell, Found, Results
from tacit.results import Evaluation
from tacit.serving.queryable import space_of, vectors_of
from tacit.serving.recommender import Recommender


def one_list_for_all(results: Results, cell: Cell) -> Found:
    """The cell's trained models with one vector for all, seed by seed."""
    pairs = zip(cell.experiments(), results[cell].runs, strict=True)
    return Found(tuple(_of_seed(results, cell, *pair) for pair in pairs), ())


def mean_vector(recommender: Recommender, users: Shards) -> Scorer:
    """Scores of all items by the mean vector of these users, whatever the history."""
    mean = vectors_of(recommender, users).mean(axis=0, keepdims=True)
    scores = space_of(recommender).scores(mean)

    def score(history: Shards) -> Scores:
        return np.tile(scores, (len(history), 1))

    return score


def _of_seed(
    results: Results, cell: Cell, experiment: Experiment, run: SavedRun
) -> Evaluation:
    model = hashlib.blake2b(run.directory.model.read_bytes(), digest_size=8)
    found = results.measured(
        f"one list {cell.experiment.stem} seed {experiment.split_seed}",
        {"run": cell.folder, "model": model.hexdigest()},
        lambda: _judged(assemble(experiment), load(run.directory.path)).to_json(),
    )
    return Evaluation.from_json(found)


def _judged(assembled: Assembled, recommender: Recommender) -> Evaluation:
    split = assembled.split
    return evaluate_scores(assembled, mean_vector(recommender, split.train), split.test)
