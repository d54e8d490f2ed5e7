from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.item_knn import ItemKnn
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(0)
#          items held by 3, 2, 1, 1 users; together 0-1: 2, 0-2: 1, 0-3: 0, 1-2: 1
TABLE = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]


def test_scores_by_hand(shards):
    fitted = ItemKnn(4).fit(shards(TABLE), key=KEY)
    scores = fitted.score(Shards.of_history([0, 1], n_items=4))[0]
    near = 2 / 6**0.5
    expected = [near, near, 1 / 3**0.5 + 1 / 2**0.5, 0]  # no item is its own neighbor
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_the_neighbors_kept_are_those_of_the_item_that_is_scored(shards):
    """Item 2 is nearest to 1, not to 0; item 0 has 1 as nearest."""
    fitted = ItemKnn(1).fit(shards(TABLE), key=KEY)
    scores = fitted.score(Shards.of_history([0], n_items=4))[0]
    np.testing.assert_allclose(scores, [0, 2 / 6**0.5, 0, 0], rtol=1e-6)
    scores = fitted.score(Shards.of_history([1], n_items=4))[0]
    np.testing.assert_allclose(scores, [2 / 6**0.5, 0, 1 / 2**0.5, 0], rtol=1e-6)


@pytest.mark.parametrize("wrong", [{"neighbors": 0}, {"shrinkage": -1.0}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(BadValue, match="must be >="):
        ItemKnn(**wrong)
