from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.bpr import Bpr, FittedBpr
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(0)


def test_a_user_is_the_mapped_mean_of_what_they_hold():
    items = np.array([[1, 0, 0.5], [3, 2, 0.1], [0, 1, 0.2]], np.float32)
    fitted = FittedBpr(items, np.array([[0.0, 1.0], [2.0, 0.0]]))
    history = Shards.of_history([0, 1, 1], n_items=3)
    assert fitted.represent(history).tolist() == [[2, 2, 1]]  # mean 2, 1, then mapped
    np.testing.assert_allclose(fitted.score(history), [[2.5, 10.1, 2.2]], rtol=1e-6)


def test_somebody_without_a_history_gets_the_biases(shards, table):
    fitted = Bpr(4, iterations=5).fit(shards(table), key=KEY)
    scores = fitted.score(Shards.of_history([], n_items=12))[0]
    np.testing.assert_array_equal(scores, fitted.items[:, -1])


def test_popularity_is_given_back_as_a_logarithm(shards, table):
    """The factors are the same; only the bias differs, by the logarithm of counts."""
    table = table.copy()
    table[:, 3] = 0
    without, with_ = (
        Bpr(4, iterations=5, popularity=p).fit(shards(table), key=KEY) for p in (0, 1)
    )
    np.testing.assert_array_equal(without.items[:, :-1], with_.items[:, :-1])
    added = with_.items[:, -1] - without.items[:, -1]
    expected = np.log(np.maximum(table.sum(axis=0), 0.5))  # nobody has item 3
    np.testing.assert_allclose(added, expected, atol=1e-5)


def test_trained_users_fold_in_near_where_they_were_trained(shards):
    """Two groups with nothing in common: the map must keep them apart."""
    x = np.indices((40, 10)).sum(axis=0) % 2 == 0
    fitted = Bpr(4, iterations=100, popularity=0.0).fit(shards(x), key=KEY)
    scores = fitted.score(shards(x))
    assert scores[x].min() > 0
    assert scores[~x].max() < 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"factors": 0},
        {"learning_rate": 0.0},
        {"regularization": -1.0},
        {"iterations": 0},
        {"popularity": -0.1},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(BadValue, match=r"must be >"):
        Bpr(**wrong)
