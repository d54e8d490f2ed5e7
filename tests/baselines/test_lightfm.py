"""LightFM: the fold-in by hand; the library itself where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.lightfm import FittedLightFm, LightFm
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(0)
WHY = "lightfm is not installed; pip install 'tacit-recommender[lightfm]' compiles it"


@pytest.fixture
def library():
    return pytest.importorskip("lightfm", reason=WHY)


def test_a_user_is_the_mapped_mean_of_what_they_hold():
    items = np.array([[1, 0, 0.5], [3, 2, 0.1], [0, 1, 0.2]], np.float32)
    fitted = FittedLightFm(items, np.array([[0.0, 1.0], [2.0, 0.0]]))
    history = Shards.of_history([0, 1, 1], n_items=3)
    assert fitted.represent(history).tolist() == [[2, 2, 1]]  # mean 2, 1, then mapped
    np.testing.assert_allclose(fitted.score(history), [[2.5, 10.1, 2.2]], rtol=1e-6)


def test_two_groups_with_nothing_in_common_are_kept_apart(library, shards):
    x = np.indices((40, 10)).sum(axis=0) % 2 == 0
    fitted = LightFm(4, epochs=60).fit(shards(x), key=KEY)
    scores = fitted.score(shards(x))
    assert (scores[x].reshape(40, 5).min(1) > scores[~x].reshape(40, 5).max(1)).all()


def test_the_same_key_gives_the_same_scores(library, shards, table):
    train, users = shards(table[:50]), shards(table[50:])
    one, two = (LightFm(4).fit(train, key=KEY).score(users) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_somebody_without_a_history_gets_the_biases(library, shards, table):
    fitted = LightFm(4, epochs=5).fit(shards(table), key=KEY)
    scores = fitted.score(Shards.of_history([], n_items=12))[0]
    np.testing.assert_array_equal(scores, fitted.items[:, -1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"factors": 0},
        {"learning_rate": 0.0},
        {"regularization": -1.0},
        {"epochs": 0},
        {"max_sampled": 0},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    [(name, value)] = wrong.items()
    with pytest.raises(BadValue, match=f"{name}={value}"):
        LightFm(**wrong)
