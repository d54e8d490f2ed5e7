"""Heads and slates: what a client learns from; the gradient is tested by its method."""

import numpy as np
import pytest

from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.keys import Key
from tacit.models.news_similarity import (
    Bilinear,
    Projection,
    Slated,
    gradient,
    mean_rows,
    reasons,
)

VECTORS = np.random.default_rng(0).normal(size=(6, 3))
CLICKS = [
    [1, 0, 0],
    [0, 0],
    [1, 1],
    [1, 0, 1, 0],
    [0, 1],
]  # of user 0, and user 2's two


def impressions() -> Impressions:
    rows = [[0, 1, 2], [3, 4], [1, 5], [0, 2, 3, 5], [4, 1]]
    items = np.array([item for row in rows for item in row], np.int32)
    return Impressions.of_columns(
        [0, 0, 0, 2, 2],
        Ragged.of_lengths([len(row) for row in rows], items),
        clicked=np.array([c for row in CLICKS for c in row], bool),
        histories=Ragged.of_lengths([2, 0], np.array([3, 5], np.int32)),
        history_of=[0, 0, 0, 1, 0],
        n_users=3,
        n_items=6,
    )


def keys_of(n: int):
    return Key.from_seed(0).each(np.arange(n))


def test_slates_without_a_choice_teach_nothing():
    """Nothing clicked, or everything: two of the five are left out."""
    found = Slated.of(impressions(), VECTORS, most=4, keys=keys_of(3))
    assert found.clients.tolist() == [0, 2, 2]
    assert sorted(found.places[1:].tolist()) == [0, 1]
    sums = np.add.reduceat(found.wanted, found.shown.offsets[:-1])
    np.testing.assert_allclose(sums, 1.0)


def test_at_most_so_many_slates_stay_and_each_may():
    kept = {
        len(Slated.of(impressions(), VECTORS, most=1, keys=own).shown[1])
        for own in (Key.from_seed(s).each(np.arange(3)) for s in range(12))
    }
    assert kept == {2, 4}  # the lengths of the two slates of user 2


@pytest.mark.parametrize("head", [Projection(), Bilinear()])
def test_a_gradient_has_its_declared_shape_and_the_start_is_content(head):
    slated = Slated.of(impressions(), VECTORS, most=2, keys=keys_of(3))
    start = head.start(3)
    own = {"effects": np.zeros(6), "n_clients": 3, "most": 2}
    found = gradient(head, start, slated, VECTORS, scale=2.0, **own)
    assert found.left.shape == (3, 2 * head.rank, len(start))
    assert found.right.shape == (3, 2 * head.rank, 3)
    assert not found.left[1].any()
    read = mean_rows(Ragged.of_lengths([2, 0], np.array([3, 5], np.int32)), VECTORS)
    scores = head.users(start, read) @ head.news(start, VECTORS).T
    np.testing.assert_allclose(scores, read @ VECTORS.T)
    np.testing.assert_array_equal(read[1], 0.0)


@pytest.mark.parametrize("head", [Projection(), Bilinear()])
def test_what_was_read_adds_up_to_the_score(head):
    """Shares of four events, one item twice, and what everyone has are the score."""
    draws = np.random.default_rng(1)
    weights = head.start(3) + 0.2 * draws.normal(size=head.start(3).shape)
    read = np.array([4, 1, 4, 0], np.int32)
    own = {"read": read, "item": 5, "scale": 2.0}
    found = reasons(head, weights, VECTORS, **own)
    assert found.shape == (4,)
    assert found[0] == found[2]
    news = head.news(weights, VECTORS)[5]
    for_all = 2.0 * head.users(weights, np.zeros((1, 3)))[0] @ news
    mean = mean_rows(Ragged.of_lengths([4], read), VECTORS)
    score = 2.0 * head.users(weights, mean)[0] @ news
    assert found.sum() + for_all == pytest.approx(score)
    nothing = reasons(head, weights, VECTORS, **{**own, "read": read[:0]})
    assert nothing.shape == (0,)
