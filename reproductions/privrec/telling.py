"""Train a contender once; tell it more and more of each stranger, and judge.

Whatever it is told, a user's candidates and targets are the same: what is cut is the
history that a scorer is handed, not the one that a protocol excludes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.ranking import Personal, Scorer, Users, score_matrix
from tacit.evaluation.user_groups import by_activity
from tacit.experiment.assemble import Assembled, assemble, root_key
from tacit.experiment.evaluate import baseline_scorer, evaluate_scores, method_scorer
from tacit.experiment.settings import Experiment
from tacit.experiment.training import last_state
from tacit.keys import Key, Keys
from tacit.method import Scores
from tacit.reproduction.cells import Cell, Found, Results
from tacit.reproduction.chance import best_of_lists
from tacit.reproduction.claims import Chance
from tacit.runtime.rounds import State

from . import unseen_items
from .beside import counted, evaluated, privrec, read_found, with_method
from .contenders import Bench

TOLD = (0, 1, 2, 5, 10, 20)  # events of a history
NOT_ADAPTED = "PrivRec, not adapted"
ONE_FEATURE = "one feature, counted"
CHANCE = "popularity, which is chance"  # it knows no unseen item, and they all tie
TRAINED = ("PrivRec", "PrivRec, counting", "FCF")
OF_USERS = ("PrivRec", NOT_ADAPTED, "PrivRec, counting", "FCF", "popularity", "EASE")
OF_ITEMS = ("PrivRec", NOT_ADAPTED, ONE_FEATURE, "FCF", CHANCE)

_EDGES = {"ml1m": (32, 80), "frappe": (6, 40)}  # events; about the tertiles
# The best feature alone, on validation users.
_FEATURES = {"ml1m": "genres", "frappe": "downloads"}
# Frappe's counts are at least 1, and an unseen item is touched with 0.
_LIKED: Mapping[str, tuple[str, ...]] = {
    "ml1m": (),
    "frappe": ("method.positive_from=1",),
}


@dataclass(frozen=True)
class Told:
    """One contender on one bench, by how much it is told of each user."""

    few: Mapping[int, Found]  # by events told, of all users with enough to tell
    whole: Found  # everyone, with all of the history, in groups of activity


def strangers(bench: Bench, results: Results) -> dict[str, Told]:
    """Users who never trained, from runs that are there."""
    cells = {who: bench.cell(who) for who in TRAINED}
    make = partial(_strangers, bench, results, cells)
    return _told(results, f"strangers {bench.label}", cells, make)


def new_items(bench: Bench, results: Results) -> dict[str, Told]:
    """Items that nobody had, with contenders that are trained without them."""
    own = bench.cell("PrivRec", *_LIKED[bench.name])
    cells = {"PrivRec": own, "FCF": bench.cell("FCF")}
    make = partial(_new_items, bench, cells)
    return _told(results, f"unseen items {bench.label}", cells, make)


def chances(bench: Bench, results: Results) -> tuple[Chance, Chance]:
    """The best of the random lists for strangers, and among items that nobody had."""
    [own, *_] = bench.cell("PrivRec", *_LIKED[bench.name]).experiments()

    def make() -> list[Chance]:
        assembled, is_unseen = with_unseen_items(own)
        return [
            _chance(assemble(own), lambda score: score),
            _chance(assembled, lambda score: unseen_items.among(score, is_unseen)),
        ]

    users, items = results.measured(
        f"random lists for strangers {bench.label}", {"experiment": own.digest}, make
    )
    return users, items


def _chance(assembled: Assembled, limited: Callable[[Scorer], Scorer]) -> Chance:
    """Of the users who have enough to tell, whatever they tell."""
    test = assembled.split.test
    assert isinstance(test, Heldout)
    tellers = test.take(np.flatnonzero(test.history.lengths >= TOLD[-1]))
    return best_of_lists(
        lambda score: evaluate_scores(assembled, limited(score), tellers),
        n_items=len(assembled.split.catalog),
        key=root_key(assembled.experiment),
    )


def _told(
    results: Results,
    name: str,
    cells: Mapping[str, Cell],
    make: Callable[[int], dict[str, Any]],
) -> dict[str, Told]:
    """Every contender of a part, made once for each seed."""
    own = {who: cell.experiments() for who, cell in cells.items()}
    documents = [
        results.measured(
            f"{name} seed {seed}",
            {"told": TOLD, **{who: of[seed].digest for who, of in own.items()}},
            partial(make, seed),
        )
        for seed in range(len(own["PrivRec"]))
    ]
    return {
        who: Told(
            {n: read_found([d[who]["few"][str(n)] for d in documents]) for n in TOLD},
            read_found([d[who]["whole"] for d in documents]),
        )
        for who in documents[0]
    }


def _strangers(
    bench: Bench, results: Results, cells: Mapping[str, Cell], seed: int
) -> dict[str, Any]:
    own = assemble(cells["PrivRec"].experiments()[seed])
    scorers: dict[str, Scorer] = {
        who: baseline_scorer(own, who.lower(), budget=0)[0]
        for who in ("popularity", "EASE")
    }
    for who, cell in cells.items():
        assembled = assemble(cell.experiments()[seed])
        state = last_state(assembled, results[cell].run(seed).directory)
        scorers[who] = method_scorer(assembled, state)
        if who == "PrivRec":
            scorers[NOT_ADAPTED] = not_adapting(assembled, state)
    return {who: telling_more(bench, own, scorers[who]) for who in OF_USERS}


def _new_items(bench: Bench, cells: Mapping[str, Cell], seed: int) -> dict[str, Any]:
    own, fcf = (cells[who].experiments()[seed] for who in ("PrivRec", "FCF"))
    assembled, is_unseen = with_unseen_items(own)
    state = _trained(unseen_items.never_drawn(assembled, is_unseen))
    liked = privrec(assembled).liked
    other = unseen_items.without(assemble(fcf), is_unseen, liked=liked)
    feature = "topics" if bench.scale == "smoke" else _FEATURES[bench.name]
    scorers = {
        "PrivRec": method_scorer(assembled, state),
        NOT_ADAPTED: not_adapting(assembled, state),
        ONE_FEATURE: one_feature(assembled, feature),
        "FCF": method_scorer(other, _trained(other)),
        CHANCE: baseline_scorer(assembled, "popularity", budget=0)[0],
    }
    limited = {who: unseen_items.among(scorers[who], is_unseen) for who in OF_ITEMS}
    return {who: telling_more(bench, assembled, one) for who, one in limited.items()}


def with_unseen_items(experiment: Experiment) -> tuple[Assembled, unseen_items.Mask]:
    """The experiment's users without some of its items, and which those are."""
    assembled = assemble(experiment)
    train, liked = assembled.split.train, privrec(assembled).liked
    is_unseen = unseen_items.drawn(train, liked=liked, key=root_key(experiment))
    return unseen_items.without(assembled, is_unseen, liked=liked), is_unseen


def _trained(assembled: Assembled) -> State:
    """After the last round of a simulation that no run directory can hold."""
    run = assembled.simulation
    [(state, _)] = deque(run.run(run.start()), maxlen=1)
    return state


def not_adapting(assembled: Assembled, state: State) -> Scorer:
    """The same network, as everybody gets it."""
    method = replace(privrec(assembled), adapt_epochs=0)
    return method_scorer(with_method(assembled, method), state)


def one_feature(assembled: Assembled, feature: str) -> Scorer:
    """Kinds of items by the mean likes of those that somebody has."""
    method = replace(privrec(assembled), items=(feature,), by_value=())
    known = assembled.split.train.log.per_item > 0
    return counted(with_method(assembled, method), known=known)


def telling_more(bench: Bench, assembled: Assembled, score: Scorer) -> dict[str, Any]:
    """The test users' numbers by how many events of theirs the scorer is told."""
    test, key = assembled.split.test, root_key(assembled.experiment).at("told")
    assert isinstance(test, Heldout)
    tellers = test.take(np.flatnonzero(test.history.lengths >= TOLD[-1]))
    few = replace(assembled, split=replace(assembled.split, test=tellers))
    groups = by_activity(test.history.lengths, edges=_EDGES[bench.name])
    return {
        "few": {str(n): evaluated(few, telling(score, n, key)) for n in TOLD},
        "whole": evaluated(assembled, score, groups=groups),
    }


def telling(score: Scorer, n: int, key: Key) -> Personal:
    """The same scorer, told only `n` events of each history, drawn by the key."""

    def told(users: Users, history: Shards) -> Scores:
        few = first(history, n, key.each(users))
        return score_matrix(score, Heldout(users, few, few))

    return Personal(told)


def first(history: Shards, n: int, keys: Keys) -> Shards:
    """The first `n` events of each in a random order of its own: 2 of them have the 1.

    Kept events stand in the order of the history.
    """
    owners = history.owners
    order = np.lexsort((keys.uniform_ragged(history.lengths), owners))
    place = np.arange(len(order)) - history.offsets[owners]
    is_kept = np.zeros(len(order), bool)
    is_kept[order[place < n]] = True
    return Shards.of(history.log.keep(is_kept))
