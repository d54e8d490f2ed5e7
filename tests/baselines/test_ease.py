from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines import matrix
from tacit.baselines.ease import Ease
from tacit.baselines.popularity import Popularity
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.evaluation.evaluate import evaluate
from tacit.keys import Key

KEY = Key.from_seed(0)


@pytest.mark.parametrize(
    ("precision", "close"), [("float64", 1e-10), ("float32", 1e-4)]
)
def test_each_column_solves_its_own_ridge_regression(shards, table, precision, close):
    """EASE's column j is the ridge regression of item j on all other items."""
    fitted = Ease(5.0, precision).fit(shards(table), key=KEY)
    for j in range(12):
        others = np.delete(np.arange(12), j)
        a = table[:, others]
        ridge = np.linalg.solve(a.T @ a + 5.0 * np.eye(11), a.T @ table[:, j])
        np.testing.assert_allclose(fitted.weights[others, j], ridge, atol=close)
        assert fitted.weights[j, j] == 0


def test_scores_are_the_sum_of_the_rows_held(shards, table):
    fitted = Ease(5.0).fit(shards(table), key=KEY)
    scores = fitted.score(shards(table[:7]))
    np.testing.assert_allclose(scores, table[:7] @ fitted.weights, atol=1e-5)
    twice = Shards.of_history([4, 4, 2], n_items=12)
    once = Shards.of_history([2, 4], n_items=12)
    np.testing.assert_array_equal(fitted.score(twice), fitted.score(once))


def test_it_finds_the_other_half_of_a_checkerboard(shards):
    """Even users have even items: whoever holds two of them wants the others."""
    x = np.indices((40, 10)).sum(axis=0) % 2 == 0
    x = x & (np.random.default_rng(0).random(x.shape) < 0.7)
    fitted = Ease(1.0).fit(shards(x), key=KEY)
    scores = fitted.score(Shards.of_history([0, 4], n_items=10))[0]
    assert scores[[2, 6, 8]].min() > scores[[1, 3, 5, 7, 9]].max()


def test_blocks_change_nothing(shards, table, monkeypatch):
    whole = Ease(5.0, "float64").fit(shards(table), key=KEY).weights
    monkeypatch.setattr(matrix, "_NUMBERS_AT_ONCE", 5 * 12)  # five items a block
    blocked = Ease(5.0, "float64").fit(shards(table), key=KEY).weights
    np.testing.assert_array_equal(blocked, whole)


@pytest.mark.parametrize("regularization", [0.0, -1.0])
def test_a_ridge_must_be_positive(regularization):
    with pytest.raises(BadValue, match="must be > 0"):
        Ease(regularization)


def test_precision_must_be_known():
    with pytest.raises(BadValue, match="'float16' is not known"):
        Ease(1.0, "float16")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.data
def test_movielens_1m_is_as_good_as_published_elsewhere(real_data):
    """One seed, 500 users: standard error about .008; .42 and .21 are means of eight
    seeds, so four standard errors off is a bug, not luck (false alarm below 1e-4)."""
    from tacit.data.sources import load
    from tacit.data.splits import new_users

    data = load("movielens-1m", where=real_data)
    data = data.filtered(min_value=4, min_interactions=5)
    split = new_users(data, n_validation=500, n_test=500, target_share=0.2, key=KEY)
    for ranker, expected in ((Popularity(), 0.214), (Ease(), 0.4235)):
        fitted = ranker.fit(split.train, key=KEY)
        found = evaluate(fitted.score, split.test).metrics()["ndcg@100"]
        assert found.mean == pytest.approx(expected, abs=0.032)


def test_a_catalog_that_would_not_fit_is_refused_before_it_is_tried():
    large = Shards.of_history([1], n_items=86_000)
    with pytest.raises(BadValue, match=r"55 GiB for 86,000 items.*item_knn"):
        Ease().fit(large, key=KEY)
