from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.evaluation.candidate_sets import EachTargetAlone, SampledCandidates
from tacit.evaluation.evaluate import evaluate
from tacit.keys import Key
from tacit.results import Groups


def test_a_perfect_ranker_is_perfect(crowd):
    heldout = crowd(30, 40, 0)
    perfect = np.zeros((30, 40))
    targets = heldout.targets.histories
    perfect[targets.owners, targets.values] = 1.0
    found = evaluate(lambda _: perfect, heldout, metrics=("ndcg@10", "recall@6", "mrr"))
    assert {name: metric.mean for name, metric in found.metrics().items()} == {
        "ndcg@10": pytest.approx(1.0),
        "recall@6": pytest.approx(1.0),
        "mrr": pytest.approx(1.0),
    }
    assert found.protocol == "full ranking"
    np.testing.assert_array_equal(found.users, heldout.users)
    assert sum(g["mrr"].n for g in found.by_group().values()) == 30


def test_catalog_figures_stand_beside_the_metrics(heldout_of):
    heldout = heldout_of([[0]], [[1]], 4)
    found = evaluate(
        lambda _: np.arange(4.0)[None], heldout, metrics=("coverage@2", "hr@1")
    )
    assert found.metrics()["coverage@2"].mean == 0.5
    assert found.metrics()["coverage@2"].se is None
    assert "coverage@2" not in found.values


def test_groups_can_be_given(heldout_of):
    heldout = heldout_of([[0], [0]], [[1], [1]], 4)
    groups = Groups(("a", "b"), np.array([1, 0]))
    found = evaluate(lambda _: np.eye(2, 4), heldout, metrics=("mrr",), groups=groups)
    assert found.by_group()["a"]["mrr"].mean == 1.0


def test_sampled_numbers_say_so_and_have_no_coverage(heldout_of):
    heldout = heldout_of([[0]], [[1]], 9)
    sampled = SampledCandidates(3, Key.from_seed(0))
    row = np.arange(9.0)[None]
    found = evaluate(lambda _: row, heldout, metrics=("hr@1",), protocol=sampled)
    assert found.protocol == "sampled 3 candidates"
    with pytest.raises(BadValue, match="'coverage@2' needs a full ranking"):
        evaluate(lambda _: row, heldout, metrics=("coverage@2",), protocol=sampled)


def test_targets_alone_and_together_are_not_mixed(heldout_of):
    heldout, alone = heldout_of([[0]], [[1, 2]], 9), EachTargetAlone()
    row = np.arange(9.0)[None]
    found = evaluate(lambda _: row, heldout, metrics=("hr_each@7",), protocol=alone)
    assert found.protocol == "each target alone"
    assert found.metrics()["hr_each@7"].mean == 1.0
    with pytest.raises(BadValue, match="'hr@7' does not go with 'each target alone'"):
        evaluate(lambda _: row, heldout, metrics=("hr@7",), protocol=alone)
    with pytest.raises(BadValue, match="protocol EachTargetAlone"):
        evaluate(lambda _: row, heldout, metrics=("ndcg_each@7",))
    with pytest.raises(BadValue, match="'coverage@2' needs a full ranking"):
        evaluate(lambda _: row, heldout, metrics=("coverage@2",), protocol=alone)


def test_unknown_metrics_are_refused_before_anything_is_scored(heldout_of):
    def score(history):
        raise AssertionError("scored")

    with pytest.raises(BadValue, match="'hits' is not known"):
        evaluate(score, heldout_of([[0]], [[1]], 4), metrics=("hits@10",))
