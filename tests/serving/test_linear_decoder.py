"""Tests of the best linear estimate of a user vector."""

import numpy as np

from tacit.serving.linear_decoder import LinearDecoder

DRAW = np.random.default_rng(0)
USERS = DRAW.normal(size=(500, 3)) @ np.diag([3.0, 1.0, 0.3]) + 1.0


def test_without_noise_a_linear_map_is_undone():
    numbers = USERS @ DRAW.normal(size=(3, 3))
    decoder = LinearDecoder.fitted(numbers, USERS, variance=0.0)
    np.testing.assert_allclose(decoder.decode(numbers), USERS, atol=1e-4)


def test_with_endless_noise_everybody_is_the_mean():
    decoder = LinearDecoder.fitted(USERS, USERS, variance=1e12)
    decoded = decoder.decode(USERS)
    np.testing.assert_allclose(decoded, np.tile(USERS.mean(0), (500, 1)), atol=1e-6)


def test_one_number_by_hand():
    """Variances of 4 and noise of 12: a quarter of the distance is believed."""
    users = np.array([[-2.0], [2.0]])
    decoder = LinearDecoder.fitted(users, users, variance=12.0)
    np.testing.assert_allclose(decoder.decode(np.array([[4.0]])), [[1.0]])


def test_it_errs_less_than_reading_the_numbers_as_they_are():
    noisy = USERS + DRAW.normal(size=USERS.shape)
    decoder = LinearDecoder.fitted(USERS, USERS, variance=1.0)
    error = ((decoder.decode(noisy) - USERS) ** 2).mean()
    assert error < 0.7 * ((noisy - USERS) ** 2).mean()
