from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.user_knn import UserKnn
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(0)
TABLE = [[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]


def test_scores_by_hand(shards):
    fitted = UserKnn(2, 1.0).fit(shards(TABLE), key=KEY)
    scores = fitted.score(Shards.of_history([0, 1], n_items=4))[0]
    first, second = 2 / (6**0.5 + 1), 1 / (2**0.5 + 1)
    np.testing.assert_allclose(scores, [first + second, first, first, 0], rtol=1e-6)


def test_only_the_nearest_vote(shards):
    fitted = UserKnn(1).fit(shards(TABLE), key=KEY)
    scores = fitted.score(Shards.of_history([0, 1], n_items=4))[0]
    np.testing.assert_allclose(scores, [2 / 6**0.5] * 3 + [0], rtol=1e-6)


@pytest.mark.parametrize("wrong", [{"neighbors": 0}, {"shrinkage": -1.0}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(BadValue, match="must be >="):
        UserKnn(**wrong)
