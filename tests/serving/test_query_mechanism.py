"""Tests of what a client says instead of its user vector."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BadMessage, BadValue
from tacit.keys import Key
from tacit.release import Unit
from tacit.serving.query_mechanism import InterestResponse

from .worlds import USERS, interests, population

KEYS = Key.from_seed(3).each(np.arange(USERS))


def test_without_doubt_the_server_knows_the_mean_of_an_interest():
    """At a huge epsilon the truth is said, and decoded as its own mean."""
    mechanism = InterestResponse(60.0, interests())
    said = mechanism.release(population(), KEYS)
    own = interests().nearest(population())
    assert said[:, 0].tolist() == own.tolist()
    np.testing.assert_allclose(mechanism.decode(said), interests().means[own])


def test_next_to_no_budget_decodes_to_the_mean_of_all():
    mechanism = InterestResponse(1e-9, interests())
    said = mechanism.release(population(), KEYS)
    np.testing.assert_allclose(
        mechanism.decode(said), np.tile(interests().mean, (USERS, 1)), atol=1e-6
    )


def test_the_posterior_by_hand():
    """Two interests with shares 3/4 and 1/4, and a truth that is kept with 2/3."""
    found = interests(2)
    shares = np.array([0.75, 0.25])
    mechanism = InterestResponse(np.log(2), replace(found, shares=shares))
    # P(0 | 1) = 3/4 * 1/3 over 3/4 * 1/3 + 1/4 * 2/3 = 3/5.
    expected = 0.6 * found.means[0] + 0.4 * found.means[1]
    decoded = mechanism.decode(np.array([[1]]))
    np.testing.assert_allclose(decoded[0], expected)


def test_decoding_is_right_on_average():
    """The mean over reports of what is decoded is the mean of the population."""
    mechanism = InterestResponse(1.0, interests())
    chances = mechanism.interests.shares @ mechanism.response.likelihoods()
    decoded = mechanism.decode(np.arange(4)[:, None])
    np.testing.assert_allclose(chances @ decoded, mechanism.nobody)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_no_report_is_likelier_by_more_than_epsilon(epsilon):
    """The likelihood ratio itself, for every two users and every report."""
    mechanism = InterestResponse(epsilon, interests(5))
    chances = mechanism.response.likelihoods()
    ratios = np.log(chances[:, None] / chances[None])
    assert ratios.max() == pytest.approx(epsilon)


def test_one_interaction_costs_as_much_as_all():
    mechanism = InterestResponse(2.0, interests())
    assert mechanism.event(Unit.ITEM) == mechanism.event(Unit.USER)
    assert mechanism.event(Unit.USER).epsilon == 2.0


def test_an_interest_that_is_not_there_is_refused():
    with pytest.raises(BadMessage, match="interest 4"):
        InterestResponse(1.0, interests(4)).check(np.array([[4]]))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan])
def test_a_budget_is_positive(epsilon):
    with pytest.raises(BadValue, match="epsilon"):
        InterestResponse(epsilon, interests())
