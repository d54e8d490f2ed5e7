"""Sparse rows of length 1, and draws that belong to their user."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.federated_data import FederatedData
from tacit.keys import Key
from tacit.models.mult_vae import Held, Pass
from tacit.testing.contract import mixed_world


def test_rows_have_length_one_and_every_item_once():
    shards = FederatedData.of_histories([[3, 1, 3], [], [0, 2, 1, 3]], n_items=4).shards
    held = Held.of(shards, np.array([3, 0, 1]))  # item 2 is not asked for
    expected = [[1, 0, 1], [0, 0, 0], [1, 1, 1]]
    np.testing.assert_array_equal(held.dense(np.ones(5)), expected)
    rows = held.dense(held.values)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 1])
    assert held.lengths.tolist() == [2, 0, 3]
    assert held.dense(held.values, "float32").dtype == np.float32


def test_no_item_is_asked_for():
    held = Held.of(mixed_world().shards, np.zeros(0, np.int64))
    assert held.dense(held.values).shape == (13, 0)


def test_draws_are_a_users_own():
    """Alone or among others, and whatever is asked for."""
    shards = mixed_world().shards
    keys = Key.from_seed(0).each(np.arange(13))
    held = Held.of(shards, np.arange(20))
    everyone = Pass.drawn(held, keys, dropout=0.5, latent=3)
    whole = held.dense(everyone.values)
    for user in (1, 2, 12):
        few = Held.of(shards.take([user]), np.arange(20))
        alone = Pass.drawn(few, keys[[user]], dropout=0.5, latent=3)
        np.testing.assert_array_equal(few.dense(alone.values)[0], whole[user])
        np.testing.assert_array_equal(alone.noise[0], everyone.noise[user])


def test_dropout_leaves_a_share_and_scales_it():
    """20,000 coins: the share has a standard error of 0.35 %."""
    history = list(range(20))
    shards = FederatedData.of_histories([history] * 1000, n_items=20).shards
    held = Held.of(shards, np.arange(20))
    keys = Key.from_seed(0).each(np.arange(1000))
    one = Pass.drawn(held, keys, dropout=0.3, latent=0)
    kept = one.values > 0
    assert kept.mean() == pytest.approx(0.7, abs=0.02)
    np.testing.assert_allclose(one.values[kept], 1 / np.sqrt(20) / 0.7)
    assert one.noise.shape == (1000, 0)
    same = Pass.drawn(held, keys, dropout=0.0, latent=0)
    np.testing.assert_array_equal(same.values, held.values)


def test_examples_are_drawn_without_repeats_until_all_are_used():
    held = Held.of(mixed_world().shards, np.arange(20))
    keys = Key.from_seed(5).each(np.arange(len(held)))
    found = held.drawn_examples(keys, 6)
    for user, columns in enumerate(np.split(held.columns, held.offsets[1:-1])):
        n = len(columns)
        if n == 0:
            assert not found[user].any()
            continue
        assert {*found[user]} <= {*columns}
        assert len({*found[user]}) == min(n, 6)
        if n < 6:  # then from the first again
            assert [*found[user]] == [found[user, j % n] for j in range(6)]
    alone = held.take(np.array([5])).drawn_examples(keys[[5]], 6)
    np.testing.assert_array_equal(alone[0], found[5])
    nobody = Held.of(mixed_world().shards.take([0]), np.arange(20))
    assert nobody.drawn_examples(keys[[0]], 2).tolist() == [[0, 0]]


# Ratings


def rated(ratings, items, offsets):
    """Users with these events, which stand in order of time."""
    shards = FederatedData.of_histories(
        [items[a:b] for a, b in pairwise(offsets)], n_items=6
    ).shards
    return replace(shards, values=np.array(ratings, np.float32))


def test_later_ratings_of_an_item_weigh_more():
    """R = Σ r 2t / (m (m + 1)), by hand: (1·1 + 2·4 + 3·5) / 6 = 4; and 2."""
    shards = rated([1, 2, 4, 5, 3], [3, 1, 3, 3, 2], [0, 4, 5])
    held = Held.of(shards, np.arange(4), is_weighted=True)
    np.testing.assert_allclose(held.dense(held.weights), [[0, 2, 0, 4], [0, 0, 3, 0]])
    expected = [[0, 2 / np.sqrt(20), 0, 4 / np.sqrt(20)], [0, 0, 1, 0]]
    np.testing.assert_allclose(held.dense(held.values), expected)
    second = held.take(np.array([1, 0]))
    np.testing.assert_allclose(second.dense(second.values), expected[::-1])


def test_equal_ratings_are_an_input_without_ratings():
    shards = rated([3] * 4, [3, 1, 2, 0], [0, 3, 4])
    plain, held = (
        Held.of(shards, np.arange(4), is_weighted=weighted) for weighted in (0, 1)
    )
    np.testing.assert_allclose(held.values, plain.values, rtol=1e-15)


@given(
    st.lists(
        st.floats(width=32, allow_nan=False, allow_infinity=False),
        min_size=5,
        max_size=5,
    )
)
def test_no_rating_makes_an_input_longer_than_one(ratings):
    """So the sensitivity of whatever is computed from an input is what it was."""
    shards = rated(ratings, [3, 1, 3, 5, 2], [0, 4, 5])
    held = Held.of(shards, np.arange(4), is_weighted=True)
    rows = held.dense(held.values)
    assert np.isfinite(rows).all()
    assert (np.linalg.norm(rows, axis=1) <= 1 + 1e-12).all()
