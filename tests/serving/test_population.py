"""Tests of invented users: they come from public numbers, and look like a model's."""

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.keys import Key
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.gram import Gram
from tacit.serving.interests import find_interests
from tacit.serving.population import invented_histories, invented_users, popularity
from tacit.serving.queryable import space_of
from tacit.serving.recommender import Recommender
from tacit.transport.messages import Broadcast

# Items of two kinds that no user mixes.
FACTORS = np.repeat(np.eye(2), 150, axis=0)
CATALOG = Catalog.of_ids([f"i{n}" for n in range(300)])
TWO_KINDS = Recommender(FmfLdp(), Broadcast(1, bytes(16), {"items": FACTORS}), CATALOG)


def test_histories_have_the_size_that_is_said_and_items_of_the_catalog():
    found = invented_histories(TWO_KINDS, Key.from_seed(0), users=30)
    assert found.lengths.tolist() == [29] * 30
    assert found.n_items == 300


def test_the_same_key_invents_the_same_users():
    one, two = (invented_users(TWO_KINDS, Key.from_seed(4), users=20) for _ in "ab")
    np.testing.assert_array_equal(one, two)


def test_users_of_two_kinds_are_invented_for_items_of_two_kinds():
    users = invented_users(TWO_KINDS, Key.from_seed(1), users=200)
    found = find_interests(space_of(TWO_KINDS), users, count=2, key=Key.from_seed(0))
    assert found.shares.min() > 0.3
    assert {*found.means.argmax(axis=1).tolist()} == {0, 1}


def test_items_that_tie_are_as_popular_as_each_other():
    np.testing.assert_allclose(popularity(TWO_KINDS), 1 / 300)


def test_what_a_model_ranks_first_for_nobody_is_popular():
    counts = np.array([5.0, 9.0, 1.0])
    weights = {"n_items": np.array([3]), "counts": counts}
    counted = Recommender(
        Gram(), Broadcast(1, bytes(16), weights), Catalog.of_ids(["a", "b", "c"])
    )
    found = popularity(counted)
    assert found.argsort().tolist() == [2, 0, 1]
    assert found.sum() == pytest.approx(1.0)
