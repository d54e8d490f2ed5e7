"""The method and its baselines on the same held-out users."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.ranking import Personal, Scorer
from tacit.experiment.assemble import Assembled, protocol, root_key
from tacit.experiment.registry import baseline
from tacit.experiment.scorer import scorer
from tacit.experiment.search import search
from tacit.method import Clients, Scores, enrol
from tacit.results import Evaluation
from tacit.runtime.rounds import State
from tacit.serving.recommender import Recommender

Users = Int64[np.ndarray, "users"]


def judge(assembled: Assembled, state: State, heldout: Heldout) -> Evaluation:
    """The evaluation of the method with the weights in `state`."""
    return _evaluate(assembled, method_scorer(assembled, state), heldout)


def judge_baseline(
    assembled: Assembled, name: str, heldout: Heldout, *, budget: int = 0
) -> Evaluation:
    """The evaluation of a baseline, fitted centrally on the training users' histories.

    With a `budget`, the best of so many settings on the validation users is taken.
    """
    key = root_key(assembled.experiment).at("baseline", name)
    ranker, split = baseline(name), assembled.split
    if budget:
        metric = assembled.experiment.evaluate.metrics[0]
        tried = search(ranker, split, metric=metric, budget=budget, key=key)
        ranker = tried.best.ranker
    return _evaluate(assembled, scorer(ranker.fit(split.train, key=key)), heldout)


def method_scorer(assembled: Assembled, state: State) -> Personal:
    """Scores as each user's own client would compute them.

    Users who trained keep their private state; the others enrol as strangers do, with
    their own profile and nothing else.
    """
    method, split = assembled.method, assembled.split
    recommender = Recommender(method, method.broadcast(state.server), split.catalog)
    key = root_key(assembled.experiment).at("serve")
    row_of = np.full(len(split.profiles), -1)  # -1: did not train
    row_of[split.users] = np.arange(len(split.users))

    def clients(users: Users) -> Clients:
        rows = row_of[users]
        if (rows >= 0).all():
            return state.clients.take(rows)
        profiles = split.profiles.take(users)
        return enrol(method, assembled.plan, profiles, key.each(users))

    def score(users: Users, history: Shards) -> Scores:
        keys = key.each(users).at("represent")
        return recommender.score(history, clients(users), keys)

    return Personal(score)


def _evaluate(assembled: Assembled, score: Scorer, heldout: Heldout) -> Evaluation:
    settings = assembled.experiment.evaluate
    return evaluate(
        score,
        heldout,
        metrics=settings.metrics,
        protocol=protocol(assembled.experiment),
    )
