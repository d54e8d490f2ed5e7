"""Train a contender once; tell it more and more of each stranger, and judge.

Whatever it is told, a person's candidates and targets are the same: what is cut is the
history that a scorer is handed, not the one that a protocol excludes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.ranking import Personal, Scorer, Users, score_matrix
from tacit.evaluation.user_groups import by_activity
from tacit.keys import Key, Keys
from tacit.method import Scores, Server
from tacit.reproduction.kept import kept
from tacit.reproduction.privrec.benches import Bench, Source
from tacit.reproduction.privrec.cold_start_items import UnseenItems, among, some
from tacit.reproduction.privrec.settings import AsWeWould
from tacit.reproduction.privrec.trials import (
    CONTENDERS,
    Judged,
    Trained,
    counted,
    judge,
    on_devices,
    servers,
)
from tacit.results import Json

TOLD = (0, 1, 2, 5, 10, 20)  # events of a history
NOT_ADAPTED = "PrivRec, not adapted"
ONE_FEATURE = "one feature, counted"
CHANCE = "popularity, which is chance"  # it knows no unseen item, and they all tie
OF_PEOPLE = ("PrivRec", NOT_ADAPTED, "PrivRec, counting", "FCF", "popularity", "EASE")
OF_ITEMS = ("PrivRec", NOT_ADAPTED, ONE_FEATURE, "FCF", CHANCE)

_LOG = logging.getLogger("tacit.reproduction")
_ANY = 1.0  # Frappe's counts are at least that
_EDGES: Mapping[Source, tuple[int, int]] = {  # events; about the tertiles
    "movielens-1m": (32, 80),
    "frappe": (6, 40),
}
_FEATURES: Mapping[Source, str] = {  # the best one alone, on validation people
    "movielens-1m": "genres",
    "frappe": "downloads",
}


@dataclass(frozen=True)
class Told:
    """One contender on one bench, by how much it is told of each person."""

    few: Mapping[int, Judged]  # by events told, of all people with enough to tell
    whole: Judged  # everyone, with all of the history, in groups of activity

    @classmethod
    def joined(cls, seeds: Sequence[Told]) -> Told:
        """Several seeds as one."""
        few = {n: Judged.joined([one.few[n] for one in seeds]) for n in seeds[0].few}
        return cls(few, Judged.joined([one.whole for one in seeds]))

    def to_json(self) -> Json:
        """With every person's numbers."""
        few = {str(n): judged.to_json() for n, judged in self.few.items()}
        return {"few": few, "whole": self.whole.to_json()}

    @classmethod
    def from_json(cls, document: Json) -> Told:
        """What `to_json` wrote."""
        read = Judged.from_json
        few = {int(n): read(judged) for n, judged in document["few"].items()}
        return cls(few, read(document["whole"]))


def told_trials(name: str, bench: Bench) -> Told:
    """The same trial with each seed of the scale; another seed has other people."""
    return Told.joined([told_trial(name, one) for one in bench.each_seed()])


@kept(Told.to_json, Told.from_json)
def told_trial(name: str, bench: Bench) -> Told:
    """The contender of this name, trained and judged on the test people."""
    _LOG.info("cold start: %s on %s, seed %d", name, bench.source, bench.seed)
    score = _CONTENDERS[name](bench)
    if isinstance(bench, UnseenItems):
        score = among(score, bench.is_unseen())
    people, key = bench.split().test, bench.key.at("told")
    lengths = people.history.lengths
    tellers = some(people, lengths >= TOLD[-1])
    groups = by_activity(lengths, edges=_EDGES[bench.source])
    few = {n: judge(telling(score, n, key), tellers) for n in TOLD}
    return Told(few, judge(score, people, groups=groups))


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


@lru_cache(maxsize=3)  # the seeds of a bench
def _learnt(bench: Bench) -> Server:
    """PrivRec's network, for both who adapt it and who do not."""
    ours, train = AsWeWould(bench), bench.split().train
    method, plan = ours.privrec, ours.plan(len(train))
    if isinstance(bench, UnseenItems):
        train = bench.training()
        method = replace(method, positive_from=method.positive_from or _ANY)
    [last] = deque(servers(method, plan, bench, train=train), maxlen=1)
    return last


def _adapting(bench: Bench) -> Scorer:
    return on_devices(AsWeWould(bench).privrec, _learnt(bench), bench)


def _not_adapting(bench: Bench) -> Scorer:
    method = replace(AsWeWould(bench).privrec, adapt_epochs=0)
    return on_devices(method, _learnt(bench), bench)


def _one_feature(bench: Bench) -> Scorer:
    """Kinds of items by the mean likes of those that somebody has."""
    items = (_FEATURES[bench.source],)
    method = replace(AsWeWould(bench).privrec, items=items, by_value=())
    known = bench.split().train.log.per_item > 0
    return counted(method, bench, known=known)


_CONTENDERS: Mapping[str, Trained] = {
    **CONTENDERS,
    "PrivRec": _adapting,
    NOT_ADAPTED: _not_adapting,
    ONE_FEATURE: _one_feature,
    CHANCE: CONTENDERS["popularity"],
}
