"""Tests of the noisy user vector, whole and projected."""

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.release import Unit
from tacit.serving.interests import score_axes
from tacit.serving.noisy_vector import NoisyVector

from .worlds import USERS, item_space, population

KEYS = Key.from_seed(3).each(np.arange(USERS))
METRIC = score_axes(item_space())


def projected(budget: float, axes: int) -> NoisyVector:
    return NoisyVector.projected(budget, population(), axes=axes, metric=METRIC)


def test_whole_and_without_noise_it_is_the_vector_cut_to_its_length():
    quiet = NoisyVector.whole(1e9, population())
    theta = quiet.vector.theta
    norms = np.linalg.norm(population(), axis=1, keepdims=True)
    expected = population() / np.maximum(1.0, norms / theta)
    said = quiet.release(population(), KEYS)
    np.testing.assert_allclose(quiet.decode(said), expected, atol=1e-5)


def test_the_server_reads_noise_as_it_is_if_whole():
    loud = NoisyVector.whole(0.1, population())
    said = loud.release(population(), KEYS)
    np.testing.assert_array_equal(loud.decode(said), said.astype(np.float64))


def test_projected_and_without_noise_scores_are_nearly_those_of_the_user():
    """Vectors longer than the median are cut, so they keep their direction only."""
    quiet = projected(1e9, 3)
    decoded = quiet.decode(quiet.release(population(), KEYS))
    for one, two in zip(decoded, population(), strict=True):
        found = np.corrcoef(item_space().vectors @ one, item_space().vectors @ two)
        assert found[0, 1] > 0.98


def test_projected_and_without_budget_it_is_the_mean():
    loud = projected(1e-9, 2)
    decoded = loud.decode(loud.release(population(), KEYS))
    np.testing.assert_allclose(decoded, np.tile(loud.nobody, (USERS, 1)), atol=1e-3)


def test_fewer_axes_are_said_with_less_noise():
    assert projected(1.0, 1).vector.scale < projected(1.0, 3).vector.scale
    assert (projected(1.0, 2).width, projected(1.0, 3).width) == (2, 3)


def test_an_interaction_costs_as_much_as_a_user():
    assert projected(2.0, 2).event(Unit.ITEM) == projected(2.0, 2).event(Unit.USER)


@pytest.mark.parametrize("axes", [0, 4])
def test_axes_that_are_not_there_are_refused(axes):
    with pytest.raises(BadValue, match="axes"):
        projected(1.0, axes)
