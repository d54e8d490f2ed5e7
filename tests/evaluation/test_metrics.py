"""Against brute force over all orders of the tied, and an independent library."""

from __future__ import annotations

import itertools
import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR, P, R, Success, nDCG

from tacit.errors import BadValue
from tacit.evaluation.candidate_sets import EachTargetAlone, FullRanking
from tacit.evaluation.metrics import alone, parse
from tacit.evaluation.ranking import rank

NAMES = (
    *("hr@1", "hr@3", "ndcg@2", "ndcg@4", "recall@1", "recall@3", "recall_all@2"),
    *("precision@3", "precision@9", "mrr", "mrr_all", "auc"),
)


def _brute(order: tuple[int, ...], targets: set[int]) -> dict[str, float]:
    """Every metric of one list without ties, straight from its definition."""
    hit = [item in targets for item in order]
    n = len(targets)

    def found(k: int) -> int:
        return sum(hit[:k])

    def dcg(gains: list[bool], k: int) -> float:
        return sum(g / math.log2(i + 2) for i, g in enumerate(gains[:k]))

    ideal = sorted(hit, reverse=True)
    others = len(order) - n
    pairs = sum(a and not b for a, b in itertools.combinations(hit, 2))
    return {
        **{f"hr@{k}": float(found(k) > 0) for k in (1, 3)},
        **{f"ndcg@{k}": dcg(hit, k) / dcg(ideal, k) for k in (2, 4)},
        **{f"recall@{k}": found(k) / min(k, n) for k in (1, 3)},
        "recall_all@2": found(2) / n,
        **{f"precision@{k}": found(k) / k for k in (3, 9)},
        "mrr": 1 / (hit.index(True) + 1),
        "mrr_all": sum(h / place for place, h in enumerate(hit, 1)) / sum(hit),
        "auc": pairs / (n * others) if others else 0.5,
    }


def _orders(scores: list[int]) -> list[tuple[int, ...]]:
    """All lists by falling score, one for each order of the tied."""
    items = range(len(scores))
    return [
        order
        for order in itertools.permutations(items)
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]


@given(
    scores=st.lists(st.integers(0, 2), min_size=1, max_size=6),
    is_target=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_ties_count_as_the_mean_over_all_orders(heldout_of, scores, is_target):
    targets = {i for i in range(len(scores)) if is_target[i]} or {0}
    heldout = heldout_of([[]], [sorted(targets)], len(scores))
    row = np.array([scores], float)
    ranks = rank(lambda _: row, heldout, candidates=FullRanking())
    every = [_brute(order, targets) for order in _orders(scores)]
    for name in NAMES:
        mean = np.mean([values[name] for values in every])
        assert parse(name)(ranks)[0] == pytest.approx(mean, abs=1e-12), name


def _alone(scores: list[int], target: int, others: set[int]) -> dict[str, float]:
    """PrivRec, Section 3.3, word by word: one target and what was never touched.

    The mean over all orders of the tied.
    """
    items = [target, *sorted(others)]
    lists = _orders([scores[item] for item in items])
    places = [order.index(0) + 1 for order in lists]
    return {
        **{f"hr_each@{k}": np.mean([p <= k for p in places]) for k in (1, 3)},
        **{
            f"ndcg_each@{k}": np.mean([(p <= k) / math.log2(p + 1) for p in places])
            for k in (2, 4)
        },
    }


@given(
    scores=st.lists(st.integers(0, 2), min_size=2, max_size=7),
    kinds=st.lists(st.sampled_from("htdn"), min_size=7, max_size=7),
)
def test_each_target_alone_is_what_the_paper_says(heldout_of, scores, kinds):
    """Items are history, target, disliked or never touched; the first is a target."""
    kinds = ["t", *kinds[1 : len(scores)]]
    rows = {kind: [i for i, k in enumerate(kinds) if k == kind] for kind in "htdn"}
    heldout = heldout_of([rows["h"]], [rows["t"]], len(scores), [rows["d"]])
    row = np.array([scores], float)
    ranks = rank(lambda _: row, heldout, candidates=EachTargetAlone())
    every = [_alone(scores, target, set(rows["n"])) for target in rows["t"]]
    for name in every[0]:
        mean = np.mean([values[name] for values in every])
        assert parse(name)(ranks)[0] == pytest.approx(mean, abs=1e-12), name


def test_targets_alone_equal_one_ranking_a_target(heldout_of, crowd):
    """Many users at once, against ranking each target by itself."""
    heldout = crowd(40, 60, 6)
    scores = np.random.default_rng(7).integers(0, 9, (40, 60)).astype(float)
    together = alone(rank(lambda _: scores, heldout, candidates=EachTargetAlone()))
    targets, history = heldout.targets.histories, heldout.history.histories
    touched = [
        [*history[owner], *(set(targets[owner].tolist()) - {item})]
        for owner, item in zip(targets.owners, targets.values.tolist(), strict=True)
    ]
    single = heldout_of(touched, targets.values[:, None].tolist(), 60)
    rows = scores[targets.owners]
    ranks = rank(lambda _: rows, single, candidates=FullRanking())
    # Ranks come in the order of items, the crowd's targets do not.
    order = np.lexsort((targets.values, targets.owners))
    np.testing.assert_array_equal(together.above, ranks.above[order])
    np.testing.assert_array_equal(together.tied, ranks.tied[order])
    spread = together.n_candidates[targets.owners]
    np.testing.assert_array_equal(spread, ranks.n_candidates)


def test_alone_and_together_differ(heldout_of):
    heldout = heldout_of([[]], [[0, 1, 2]], 8)
    row = -np.arange(8.0)[None]
    ranks = rank(lambda _: row, heldout, candidates=EachTargetAlone())
    assert parse("recall_all@1")(ranks).tolist() == [1 / 3]
    assert parse("hr_each@1")(ranks).tolist() == [1.0]
    assert parse("ndcg_each@1")(ranks).tolist() == [1.0]


def test_agrees_with_ir_measures_where_nothing_is_tied(crowd):
    heldout = crowd(40, 60, 6)
    scores = np.random.default_rng(7).normal(size=(40, 60))
    ranks = rank(lambda _: scores, heldout, candidates=FullRanking())
    theirs = {
        "ndcg@10": nDCG @ 10,
        "ndcg@50": nDCG @ 50,
        "recall_all@10": R @ 10,
        "precision@5": P @ 5,
        "hr@5": Success @ 5,
        "mrr": RR,
    }
    for name, measure in theirs.items():
        expected = _their_values(measure, heldout, scores)
        np.testing.assert_allclose(parse(name)(ranks), expected, atol=1e-12)


def _their_values(measure, heldout, scores):
    wanted = {
        str(i): {str(item): 1 for item in row.tolist()}
        for i, row in enumerate(heldout.targets.histories)
    }
    seen = [set(row.tolist()) for row in heldout.history.histories]
    run = {
        str(i): {str(j): float(s) for j, s in enumerate(row) if j not in seen[i]}
        for i, row in enumerate(scores)
    }
    values = ir_measures.iter_calc([measure], wanted, run)
    by_user = {int(value.query_id): value.value for value in values}
    return [by_user[i] for i in range(len(scores))]


def test_the_two_recalls_differ_in_the_denominator(heldout_of):
    heldout = heldout_of([[]], [[0, 1, 2, 3]], 8)
    row = -np.arange(8.0)[None]
    ranks = rank(lambda _: row, heldout, candidates=FullRanking())
    assert parse("recall@2")(ranks).tolist() == [1.0]
    assert parse("recall_all@2")(ranks).tolist() == [0.5]


def test_a_constant_scorer_gets_what_chance_gets(heldout_of):
    heldout = heldout_of([[0]], [[1]], 101)
    ranks = rank(lambda _: np.zeros((1, 101)), heldout, candidates=FullRanking())
    assert parse("hr@10")(ranks)[0] == pytest.approx(0.1)
    assert parse("auc")(ranks)[0] == pytest.approx(0.5)
    harmonic = sum(1 / place for place in range(1, 101))
    assert parse("mrr")(ranks)[0] == pytest.approx(harmonic / 100)


def test_a_large_tie_with_several_targets_stays_exact(heldout_of):
    n, t, k = 5000, 40, 100
    heldout = heldout_of([[]], [list(range(t))], n)
    ranks = rank(lambda _: np.zeros((1, n)), heldout, candidates=FullRanking())
    missed = math.comb(n - t, k) / math.comb(n, k)
    assert parse("hr@100")(ranks)[0] == pytest.approx(1 - missed, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", r"'ndgc' is not known; did you mean 'ndcg@k'\?"),
        ("ndcg", "needs a cut-off; write for example 'ndcg@10'"),
        ("ndcg@", "must be a whole number >= 1"),
        ("ndcg@0", "must be a whole number >= 1"),
        ("recall@ten", "must be a whole number >= 1"),
        ("hr_each", "needs a cut-off; write for example 'hr_each@10'"),
        ("auc@10", "has no cut-off; write 'auc'"),
    ],
)
def test_unclear_names_are_refused(name, message):
    with pytest.raises(BadValue, match=message):
        parse(name)
