"""A fitted baseline is ranked by its factors where it has some."""

import numpy as np

from tacit.baselines.ranker import FactorFitted
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.evaluation.ranking import Factors
from tacit.experiment.scorer import scorer

HISTORY = Shards.of(
    Interactions.of_columns(
        np.array([0, 0, 1]), np.array([0, 2, 1]), n_users=2, n_items=3
    )
)


class Plain:
    def score(self, history):
        return np.ones((len(history), 3))


class Products(Plain):
    items = np.eye(3)

    def represent(self, history):
        return np.arange(3 * len(history)).reshape(-1, 3).astype(float)


def test_scores_are_taken_as_they_are():
    found = scorer(Plain())
    assert not isinstance(found, Factors)
    np.testing.assert_array_equal(found(HISTORY), np.ones((2, 3)))


def test_inner_products_are_taken_apart():
    fitted = Products()
    assert isinstance(fitted, FactorFitted)
    found = scorer(fitted)
    assert isinstance(found, Factors)
    np.testing.assert_array_equal(found.items, fitted.items)
    own = found.represent(np.arange(2), HISTORY)
    np.testing.assert_array_equal(own, fitted.represent(HISTORY))
