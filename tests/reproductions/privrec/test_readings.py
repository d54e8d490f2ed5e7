"""Readings of Table 1: candidates, targets and averages by hand, and the closest."""

from __future__ import annotations

import numpy as np
import pytest
from tacit_study_privrec.contenders import Bench
from tacit_study_privrec.readings import (
    ADAPTED,
    AVERAGES,
    LABELS,
    POPULARITY,
    Among,
    reading,
    shown,
)
from tacit_study_privrec.readings import _mean as mean
from tacit_study_privrec.readings import _with_all_targets as with_all_targets

from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.ranking import rank
from tacit.keys import Key

N = 12


def shards(*rows):
    users = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    items = np.concatenate([np.asarray(row, int) for row in rows])
    return Shards.of(
        Interactions.of_columns(users, items, n_users=len(rows), n_items=N)
    )


@pytest.fixture
def heldout():
    return Heldout(
        np.arange(2), shards([0, 1], [2]), shards([3], [4, 5]), shards([6], [7, 8])
    )


@pytest.mark.parametrize("n", [None, 4])
def test_candidates_are_the_targets_and_items_never_touched(heldout, n):
    out = Among(n, Key.from_seed(3)).excluded(heldout)
    for user, (touched, targets) in enumerate([({0, 1, 6}, {3}), ({2, 7, 8}, {4, 5})]):
        candidates = {*range(N)} - {*out[user].tolist()}
        assert candidates >= targets
        assert not candidates & touched
        others = candidates - targets
        assert len(others) == (N - len(touched) - len(targets) if n is None else n)


def test_all_ratings_may_be_targets(heldout):
    every = with_all_targets(heldout)
    targets, history = every.targets.histories, every.history.histories
    assert [sorted(row.tolist()) for row in targets] == [[3, 6], [4, 5, 7, 8]]
    assert [row.tolist() for row in history] == [[0, 1], [2]]


def test_the_mean_is_over_users_or_over_targets(heldout):
    scores = np.zeros((2, N), np.float32)
    scores[0, 3] = scores[1, 4] = 1.0  # the first of each is found, the second is not
    ranks = rank(lambda _: scores, heldout, candidates=Among(None, Key.from_seed(0)))
    assert mean(ranks, 1, "users") == pytest.approx((1 + (1 + 0) / 2) / 2, abs=0.1)
    assert mean(ranks, 1, "targets") == pytest.approx((1 + 1 + 0) / 3, abs=0.1)
    assert mean(ranks, 1, "users") > mean(ranks, 1, "targets")


def test_the_closest_reading_is_named():
    printed = {"5": 0.123, "10": 0.160, "20": 0.205, "30": 0.249}
    far = {k: v / 10 for k, v in printed.items()}
    names = [reading(ADAPTED, "liked", n, AVERAGES[0]) for n in (None, 99)]
    found = {labels: [dict.fromkeys(names, far)] for labels in LABELS}
    second = [*LABELS][1]
    found[second] = [{names[0]: far, names[1]: printed}]
    for hits in found.values():
        hits[0][reading(POPULARITY, "liked", None, "users")] = printed
    made = shown(Bench("ml1m", "full"), found)
    [claim] = made.claims
    assert claim.ok
    assert f"closest: {second}; {names[1]}" in claim.evidence
    assert sum(row.ok for row in made.tables[0].rows) == 2  # and popularity, once
    assert made.unexplained == ()
