"""Contenders that are no experiment, judged on the users of one.

central    PrivRec's network on everybody's examples, then adapted by each client
counted    its features without a network: likes of each kind of item
foretold   its features, put in order by one who knows what each user will take
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.ranking import Personal, Scorer
from tacit.experiment.assemble import Assembled, assemble, root_key
from tacit.experiment.evaluate import evaluate_among_all, evaluate_scores, method_scorer
from tacit.experiment.settings import Experiment
from tacit.method import Method, Scores
from tacit.methods.privrec import PrivRec
from tacit.models.feature_mlp.central import CentralTraining
from tacit.reproduction.cells import Cell, Found, Results
from tacit.results import Evaluation, Groups

Users = Int64[np.ndarray, "users"]
ScorerOf = Callable[[Assembled], Scorer]


def judged(results: Results, who: str, cell: Cell, scorer: ScorerOf) -> Found:
    """A contender on the test users of a cell, made once for each seed."""

    def make(experiment: Experiment) -> dict[str, Any]:
        assembled = assemble(experiment)
        return evaluated(assembled, scorer(assembled))

    documents = [
        results.measured(
            f"{who} {cell.folder} seed {one.split_seed}",
            {"experiment": one.digest},
            partial(make, one),
        )
        for one in cell.experiments()
    ]
    return read_found(documents)


def evaluated(
    assembled: Assembled, score: Scorer, *, groups: Groups | None = None
) -> dict[str, Any]:
    """The test users' numbers as plain JSON, by the paper's way and among all items."""
    users = assembled.split.test
    own = evaluate_scores(assembled, score, users)
    among_all = evaluate_among_all(assembled, score, users)
    assert among_all is not None  # every cell has full_metrics
    both = {"own": own, "among_all": among_all}
    return {
        kind: (one if groups is None else replace(one, groups=groups)).to_json()
        for kind, one in both.items()
    }


def read_found(documents: Sequence[Mapping[str, Any]]) -> Found:
    """What `evaluated` wrote, one document per seed."""
    own, among_all = (
        tuple(Evaluation.from_json(one[kind]) for one in documents)
        for kind in ("own", "among_all")
    )
    return Found(own, among_all)


def privrec(assembled: Assembled) -> PrivRec:
    """The method of an experiment that is one of PrivRec."""
    assert isinstance(assembled.method, PrivRec)
    return assembled.method


def with_method(assembled: Assembled, method: Method) -> Assembled:
    """The same users and plan with another method."""
    return replace(assembled, simulation=replace(assembled.simulation, method=method))


def central(assembled: Assembled) -> Scorer:
    """PrivRec's network on pooled examples; clients adapt it as they would."""
    method, split = privrec(assembled), assembled.split
    state = assembled.simulation.start()
    cohort = method.cohort(method.broadcast(state.server))
    key = root_key(assembled.experiment).at("central")
    negatives = key.each(split.users).at("negatives")
    examples = cohort.examples(state.clients.state, split.train, negatives)
    learnt = CentralTraining().learnt(
        cohort.network, cohort.weights, examples, key=key.at("order")
    )
    weights = {**state.server.weights, **learnt}
    after = replace(state, server=replace(state.server, weights=weights))
    return method_scorer(assembled, after)


def counted(
    assembled: Assembled, *, known: Bool[np.ndarray, "items"] | None = None
) -> Scorer:
    """Kinds of items by how many likes one of the kind has: one list for everybody.

    What a model of the same features can know of items without knowing users. Where
    not all items are `known`, a kind is judged by those that are.
    """
    train, kind_of = assembled.split.train, kinds_of(assembled)
    liked = train.items[train.values >= privrec(assembled).liked]
    likes = np.bincount(liked, minlength=len(kind_of))
    sizes = np.maximum(1, np.bincount(kind_of, weights=known))
    mean = np.bincount(kind_of, weights=likes) / sizes
    scores = mean[kind_of].astype(np.float32)
    return lambda history: np.broadcast_to(scores, (len(history), len(scores)))


def foretold(assembled: Assembled) -> Scorer:
    """Kinds by the share of their items that the user will take, which it knows.

    No model of the same features can do much better, however it adapts.
    """
    heldout, kind_of = assembled.split.test, kinds_of(assembled)
    assert isinstance(heldout, Heldout)
    n_kinds = int(kind_of.max()) + 1
    row_of = {user: row for row, user in enumerate(heldout.users.tolist())}

    def per_kind(shards: Shards) -> Float64[np.ndarray, "users kinds"]:
        places = shards.owners * n_kinds + kind_of[shards.items]
        found = np.bincount(places, minlength=len(shards) * n_kinds)
        return found.reshape(len(shards), n_kinds).astype(float)

    def score(users: Users, history: Shards) -> Scores:
        targets = heldout.targets.take([row_of[user] for user in users.tolist()])
        wanted, had = per_kind(targets), per_kind(history)
        others = np.bincount(kind_of, minlength=n_kinds) - had - wanted
        return (wanted / (1 + np.maximum(0, others)))[:, kind_of].astype(np.float32)

    return Personal(score)


def kinds_of(assembled: Assembled) -> Int32[np.ndarray, "items"]:
    """The kind of each item; a network over its features cannot tell two of a kind."""
    server = assembled.simulation.start().server
    method = privrec(assembled)
    return method.cohort(method.broadcast(server)).items.kind_of
