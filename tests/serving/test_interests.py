"""Tests of interests and of the k-means that finds them."""

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.method import ItemSpace
from tacit.serving.interests import Interests, find_interests, k_means, score_axes

from .worlds import interests, item_space, population


def test_groups_that_are_far_apart_are_found():
    found = interests(4)
    own = found.nearest(population())
    for corner in range(4):
        assert len({*own[corner::4].tolist()}) == 1
    np.testing.assert_allclose(found.shares, 0.25)
    for corner in range(4):
        mean = population()[corner::4].mean(axis=0)
        np.testing.assert_allclose(found.means[own[corner]], mean)


def test_the_mean_of_all_is_that_of_the_population():
    np.testing.assert_allclose(interests(7).mean, population().mean(axis=0))


def test_distances_are_those_of_scores():
    """The variance over items of the difference of two users' scores."""
    space, (one, two) = item_space(), population()[:2]
    z = (one - two) @ score_axes(space)
    np.testing.assert_allclose(z @ z, np.var(space.vectors @ (one - two)))


def test_closeness_is_a_cosine_that_does_not_know_how_strong_a_taste_is():
    found, users = interests(), population()[:5]
    close = found.closeness(users)
    assert np.abs(close).max() <= 1 + 1e-12
    stronger = found.mean + 7.0 * (users - found.mean)
    np.testing.assert_allclose(found.closeness(stronger), close)
    np.testing.assert_allclose(np.linalg.norm(found.directions, axis=1), 1.0)


def test_somebody_without_a_direction_is_close_to_nothing():
    found = interests()
    assert found.closeness(found.mean[None]).tolist() == [[0.0] * 4]


def test_as_many_groups_as_points_are_the_points():
    points = np.random.default_rng(0).normal(size=(6, 2))
    found = k_means(points, 6, Key.from_seed(1))
    order = np.lexsort(found.T), np.lexsort(points.T)
    np.testing.assert_allclose(found[order[0]], points[order[1]])


def test_equal_points_have_a_centre_each():
    assert k_means(np.ones((5, 2)), 3, Key.from_seed(0)).shape == (3, 2)


def test_the_same_key_finds_the_same_interests():
    np.testing.assert_array_equal(interests(5).directions, interests(5).directions)


def test_items_of_one_vector_tell_no_users_apart():
    with pytest.raises(BadValue, match="one vector"):
        score_axes(ItemSpace(np.ones((4, 2)), np.zeros(4)))


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_interests_that_cannot_be_found_are_refused(count):
    key = Key.from_seed(0)
    with pytest.raises(BadValue):
        find_interests(item_space(), population(), count=count, key=key)


def test_shares_are_a_distribution():
    two = np.zeros((2, 1))
    with pytest.raises(BadValue, match="sum to 1"):
        Interests(np.eye(1), np.zeros(1), two, two, np.array([0.5, 0.6]))
