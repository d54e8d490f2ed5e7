"""The method and its baselines on the same held-out users or impressions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Int64

from tacit.baselines import TUNED
from tacit.baselines.ranker import Ranker
from tacit.data.shards import Shards
from tacit.data.splits import Heldout, HeldoutPart
from tacit.evaluation.candidate_sets import SampledCandidates
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.ranking import Personal, Progress, Scorer
from tacit.evaluation.user_groups import by_gap
from tacit.experiment.assemble import (
    Assembled,
    protocol,
    public_groups,
    root_key,
)
from tacit.experiment.registry import baseline
from tacit.experiment.scorer import fit, scorer
from tacit.experiment.search import BUDGET, search
from tacit.experiment.settings import Experiment
from tacit.keys import Key
from tacit.method import Clients, Scores, enrol
from tacit.results import Chosen, Evaluation, Groups
from tacit.runtime.rounds import State
from tacit.serving.recommender import Recommender

Users = Int64[np.ndarray, "users"]
Items = Int64[np.ndarray, "items"]

UNTRAINED = "untrained"  # the name of a method before its first round


def evaluate_method(
    assembled: Assembled, state: State, heldout: HeldoutPart
) -> Evaluation:
    """The evaluation of the method with the weights in `state`."""
    return evaluate_scores(assembled, method_scorer(assembled, state), heldout)


def contenders_of(experiment: Experiment) -> list[str]:
    """Who is ranked by: the method, its start if asked for, then each baseline."""
    settings = experiment.evaluate
    start = [UNTRAINED] if settings.untrained else []
    return [experiment.method_name, *start, *settings.baselines]


def scorers(
    assembled: Assembled, state: State, *, but: Collection[str] = ()
) -> Iterator[tuple[str, Scorer, Chosen | None]]:
    """Names and scorers of all contenders in their order, without some of them.

    A baseline is chosen and fitted when it is asked for, one at a time.
    """
    experiment = assembled.experiment
    for name in contenders_of(experiment):
        if name in but:
            continue
        if name == experiment.method_name:
            yield name, method_scorer(assembled, state), None
        elif name == UNTRAINED:
            yield name, method_scorer(assembled, assembled.simulation.start()), None
        else:
            yield name, *baseline_scorer(assembled, name)


def evaluate_scores(
    assembled: Assembled,
    score: Scorer,
    heldout: HeldoutPart,
    *,
    progress: Progress | None = None,
) -> Evaluation:
    """The evaluation of any scores, by the experiment's protocol and metrics."""
    experiment = assembled.experiment
    ranked = ranked_for(experiment, heldout)
    found = evaluate(
        score,
        ranked,
        metrics=experiment.evaluate.metrics,
        protocol=protocol(experiment),
        groups=_gaps(experiment, ranked),
        progress=progress,
    )
    return replace(found, budgets=_budgets(assembled, found.users))


def _gaps(experiment: Experiment, heldout: HeldoutPart) -> Groups | None:
    """The held-out users by the time to their targets, if these come next."""
    if not experiment.data.holds_out_next or not isinstance(heldout, Heldout):
        return None
    return by_gap(heldout)


def _budgets(assembled: Assembled, users: Users) -> Groups | None:
    """The public groups of held-out users, if the experiment has groups."""
    column = public_groups(assembled.experiment, assembled.split)
    if column is None:
        return None
    return Groups(tuple(column.labels), column.codes[users].astype(np.int64))


def evaluate_among_all(
    assembled: Assembled, score: Scorer, heldout: HeldoutPart
) -> Evaluation | None:
    """The same users' `full_metrics` among all items; None if none are asked for."""
    experiment = assembled.experiment
    metrics = experiment.evaluate.full_metrics
    if not metrics:
        return None
    return evaluate(score, ranked_for(experiment, heldout), metrics=metrics)


def ranked_for(experiment: Experiment, heldout: HeldoutPart) -> HeldoutPart:
    """What is held out of those users whom the experiment ranks for."""
    settings, candidates = experiment.evaluate, protocol(experiment)
    is_skipping = settings.too_few_candidates == "skip"
    if is_skipping and isinstance(candidates, SampledCandidates):
        heldout = _with_enough(candidates, heldout)
    return heldout if settings.max_users is None else heldout.first(settings.max_users)


def _with_enough(candidates: SampledCandidates, heldout: HeldoutPart) -> HeldoutPart:
    """The users who lack enough items to be ranked among so many."""
    assert isinstance(heldout, Heldout)  # impressions have no other candidates
    is_enough = candidates.free(heldout) >= candidates.n
    # A user who touched nearly everything has too few items left to be sampled.
    return heldout if is_enough.all() else heldout.take(np.flatnonzero(is_enough))


def baseline_scorer(
    assembled: Assembled, name: str, *, budget: int | None = None
) -> tuple[Scorer, Chosen | None]:
    """The scores of a baseline fitted on what everyone trains on, and how it was set.

    The best of `budget` settings on the validation users is taken; of 0, its own. By
    default those in `TUNED` are searched unless the experiment sets them.
    """
    experiment, split = assembled.experiment, assembled.split
    key = root_key(experiment).at("baseline", name)
    given = experiment.evaluate.baseline_settings.get(name)
    ranker, chosen = baseline(name, given), None
    if budget is None:
        budget = BUDGET if name in TUNED and given is None else 0
    if budget and ranker.GRID:
        ranker, chosen = _searched(assembled, ranker, budget, key)
    return scorer(fit(ranker, split, key=key)), chosen


def _searched(
    assembled: Assembled, ranker: Ranker, budget: int, key: Key
) -> tuple[Ranker, Chosen]:
    """The ranker with the best settings on the validation users, as they are ranked."""
    experiment, split = assembled.experiment, assembled.split
    tried = search(
        ranker,
        replace(split, validation=ranked_for(experiment, split.validation)),
        metric=experiment.evaluate.metrics[0],
        budget=budget,
        protocol=protocol(experiment),
        key=key,
    )
    return tried.best.ranker, tried.chosen


def method_scorer(assembled: Assembled, state: State) -> Personal:
    """Scores as each user's own client would compute them.

    Users who trained keep their private state; the others enrol as strangers do, with
    their own profile and nothing else.
    """
    method, split = assembled.method, assembled.split
    # As a client ranks: from the broadcast alone, not from what the server keeps.
    recommender = Recommender(
        method, method.broadcast(state.server), split.catalog
    ).ranking_for(assembled.experiment.serve.ranked_for)
    key = root_key(assembled.experiment).at("serve")
    row_of = np.full(len(split.profiles), -1)  # -1: did not train
    row_of[split.users] = np.arange(len(split.users))

    def clients(users: Users) -> Clients:
        rows = row_of[users]
        if (rows >= 0).all():
            return state.clients.take(rows)
        profiles = split.profiles.take(users)
        own = enrol(method, assembled.plan, profiles, key.each(users))
        return _with_trained(own, state.clients, rows)

    def score(users: Users, history: Shards) -> Scores:
        keys = key.each(users).at("represent")
        return recommender.score(history, clients(users), keys)

    def among(users: Users, history: Shards, items: Items) -> Scores:
        keys = key.each(users).at("represent")
        return recommender.score(history, clients(users), keys, items=items)

    return Personal(score, among)


def _with_trained(own: Clients, trained: Clients, rows: Users) -> Clients:
    """Clients of whom some have trained; `rows` says where, and -1 for the others.

    An impression may be of a user who trained or of one who did not, and what a client
    keeps does not depend on who else is ranked for.
    """
    known = np.flatnonzero(rows >= 0)
    if not len(known):
        return own
    kept = trained.take(rows[known])
    numbers, groups = own.numbers.copy(), own.groups.copy()
    numbers[known], groups[known] = kept.numbers, kept.groups
    merged = own.with_state(known, kept.state)
    return replace(merged, numbers=numbers, groups=groups)
