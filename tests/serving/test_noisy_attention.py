"""Tests of noisy attention over public interests."""

import numpy as np
import pytest

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.padding import Padding
from tacit.release import Unit
from tacit.serving.noisy_attention import NoisyAttention, attention_of

from .worlds import USERS, interests, population

KEYS = Key.from_seed(3).each(np.arange(USERS))


def mechanism(budget: float = 1.0, **settings) -> NoisyAttention:
    return NoisyAttention.fitted(budget, interests(), population(), **settings)


def test_attention_is_a_distribution_and_its_peak_the_nearest_interest():
    own = attention_of(interests(), population(), temperature=0.5)
    np.testing.assert_allclose(own.sum(axis=1), 1.0)
    assert own.argmax(axis=1).tolist() == interests().nearest(population()).tolist()


def test_attention_survives_a_tiny_temperature():
    own = attention_of(interests(), 1e6 * population(), temperature=1e-9)
    assert np.isfinite(own).all()
    np.testing.assert_allclose(own.max(axis=1), 1.0)


def test_nearly_without_noise_users_are_told_apart():
    """Each decoded vector is nearest to the user's own interest."""
    quiet = mechanism(1e6)
    decoded = quiet.decode(quiet.release(population(), KEYS))
    truth = interests().nearest(population())
    assert (interests().nearest(decoded) == truth).mean() > 0.95


def test_softplus_flattens_attention_even_without_noise():
    """All attention on one of four: softplus(1) against softplus(0)."""
    quiet = mechanism(1e9, reading="softplus")
    said = np.eye(4, dtype=np.float32)[:1]
    weights = np.log1p(np.exp([1.0, 0.0, 0.0, 0.0]))
    expected = weights / weights.sum() @ interests().means
    np.testing.assert_allclose(quiet.decode(said)[0], expected)
    assert (weights / weights.sum())[0] < 0.4


def test_nearly_without_budget_regression_says_the_mean():
    loud = mechanism(1e-6)
    decoded = loud.decode(loud.release(population(), KEYS))
    np.testing.assert_allclose(decoded, np.tile(loud.nobody, (USERS, 1)), atol=1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_user_pays_the_stated_epsilon(delta):
    event = mechanism(2.0, delta=delta).event(Unit.USER)
    found = epsilon(event, delta=delta, adjacency="replace_one").value
    assert found == pytest.approx(2.0, abs=5e-3)


def test_padding_helps_an_interaction_and_no_user():
    """log(1 + (1 - p)(e^2 - 1)) at p = 1/2."""
    padded = mechanism(2.0, padding=Padding(0.5))
    assert padded.event(Unit.USER).epsilon == 2.0
    expected = np.log(1 + 0.5 * np.expm1(2.0))
    assert padded.event(Unit.ITEM).epsilon == pytest.approx(expected)


def test_settings_are_told_apart():
    some = [mechanism(), mechanism(2.0), mechanism(delta=1e-6), mechanism(padding=None)]
    texts = [str(one.facts()) for one in some]
    assert len({*texts}) == 3
    assert mechanism().width == 4


def test_interests_and_noise_must_agree():
    found = mechanism()
    with pytest.raises(BadValue, match="interests"):
        NoisyAttention(found.attention, interests(3), 1.0, found.decoder)
