"""Tests of users by interest, added up under noise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.codes import Code
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.ledger.budget import spent
from tacit.ledger.terms import Terms
from tacit.plans import Plan
from tacit.release import Standing, Unit, View
from tacit.serving.released_interests import InterestSums

from .worlds import FACTORS, interests, population

ANY = hnp.arrays(np.float64, (4, FACTORS), elements=st.floats(-1e6, 1e6))


@given(users=ANY, clip=st.floats(0.01, 100))
def test_nobody_adds_more_than_a_norm_of_one(users, clip):
    found = InterestSums(interests(), clip, 1.0).contributions(users)
    norms = np.sqrt((found**2).sum(axis=(1, 2)))
    assert norms.max() <= 1 + 1e-9
    assert ((found != 0).any(axis=2).sum(axis=1) == 1).all()  # one block each


def test_without_noise_the_means_and_shares_are_those_of_the_users():
    """Public means that are off are put right, as far as the clip reaches."""
    wrong = replace(interests(), means=interests().means + 0.3)
    sums = InterestSums(wrong, clip=100.0, noise_multiplier=1e-9)
    found = sums.learn(sums.noisy_sum(population(), Key.from_seed(0)))
    np.testing.assert_allclose(found.means, interests().means, atol=1e-6)
    np.testing.assert_allclose(found.shares, 0.25, atol=1e-6)
    np.testing.assert_allclose(found.mean, population().mean(axis=0), atol=1e-6)


def test_an_interest_has_the_direction_of_its_released_mean():
    """Public means of nobody in particular: users are told apart by those released."""
    public = replace(interests(), means=np.zeros((4, FACTORS)))
    sums = InterestSums(public, clip=100.0, noise_multiplier=1e-9)
    found = sums.learn(sums.noisy_sum(population(), Key.from_seed(0)))
    assert found.nearest(found.means).tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(
        found.nearest(population()), interests().nearest(population())
    )


def test_under_loud_noise_the_public_means_stay():
    """Shrinkage takes back nearly all that noise alone would move."""
    sums = InterestSums(interests(), clip=1.0, noise_multiplier=1e6)
    found = sums.learn(sums.noisy_sum(population(), Key.from_seed(0)))
    assert np.isfinite(found.means).all()
    assert np.isclose(found.shares.sum(), 1.0)
    moved = np.linalg.norm(found.means - interests().means, axis=1)
    assert np.median(moved) <= 2.0


def test_the_sum_is_that_of_the_contributions():
    sums = InterestSums(interests(), clip=0.5, noise_multiplier=1e-12)
    expected = sums.contributions(population()).sum(axis=0)
    found = sums.noisy_sum(population(), Key.from_seed(0))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_account_has_the_stated_epsilon():
    plan = Plan(5000, channel="secure_sum", delta=1e-6)
    sums = InterestSums.calibrated(interests(), population(), epsilon=1.0, delta=1e-6)
    terms = Terms((sums.release(plan),))
    found = spent([(terms, [0])], (Unit.USER, View.SERVER), delta=1e-6)
    assert found.value == pytest.approx(1.0, abs=5e-3)
    assert spent([(terms, [0])], (Unit.USER, View.COLLUSION), delta=1e-6).value is None


@pytest.mark.parametrize("channel", ["direct", "secure_sum", "two_servers"])
def test_noise_in_floats_is_assumed_to_tell_nothing(channel):
    """Whoever reads the account is told, as for queries; nothing of it is proven."""
    sums = InterestSums(interests(), clip=1.0, noise_multiplier=2.0)
    release = sums.release(Plan(5000, channel=channel, delta=1e-6))
    assert release.cells[Unit.USER, View.RELEASE].standing is Standing.ASSUMED
    for cell in release.cells.values():
        if cell.has_epsilon:
            assert Code("float_noise") in cell.assumes
            assert cell.standing is Standing.ASSUMED


def test_a_sum_of_another_shape_is_refused():
    sums = InterestSums(interests(), clip=1.0, noise_multiplier=1.0)
    with pytest.raises(BadValue, match="shape"):
        sums.learn(np.zeros((2, 2)))
