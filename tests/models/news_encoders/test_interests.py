"""Noisy mixtures of a basis: the paper's lines, their gradient, and their ends."""

import numpy as np
import pytest

from tacit.data.ragged import Ragged
from tacit.models.news_encoders.interests import (
    Mixture,
    attention,
    ragged_softmax,
    softmax,
)
from tests.models.news_encoders.small import mixed

torch = pytest.importorskip("torch")
DRAWS = np.random.default_rng(3)
USERS, BASIS = DRAWS.standard_normal((4, 5)), DRAWS.standard_normal((3, 5))
NOISE = 0.2 * DRAWS.standard_normal((4, 3))
NOISE[3] = -1.0


@pytest.mark.parametrize("theta", [0.4, 0.8, 1.0])
def test_mixtures_and_their_gradients_are_those_of_torch(theta):
    slopes = DRAWS.standard_normal((4, 5))
    found = Mixture.of(USERS, BASIS, noise=NOISE, theta=theta)
    by_user, by_basis = found.backward(slopes)
    for client in range(4):
        user = torch.tensor(USERS[client], requires_grad=True)
        basis = torch.tensor(BASIS, requires_grad=True)
        noise = torch.tensor(NOISE[client])
        vector = mixed(user, basis, noise=noise, limit=theta)
        np.testing.assert_allclose(found.vectors[client], vector.detach(), atol=1e-12)
        value = vector @ torch.tensor(slopes[client])
        want = torch.autograd.grad(value, [user, basis], allow_unused=True)
        for mine, theirs in zip((by_user, by_basis), want, strict=True):
            other = np.zeros(mine[client].shape) if theirs is None else theirs.numpy()
            np.testing.assert_allclose(mine[client], other, atol=1e-12)


def test_where_noise_leaves_nothing_all_interests_count_alike():
    found = Mixture.of(USERS, BASIS, noise=NOISE, theta=1.0)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.vectors[3], BASIS.mean(axis=0))
    by_user, by_basis = found.backward(np.ones((4, 5)))
    assert not by_user[3].any()
    np.testing.assert_allclose(by_basis[3], 1 / 3)


def test_without_noise_and_clip_a_mixture_is_attention():
    found = Mixture.of(USERS, BASIS, noise=np.zeros((4, 3)), theta=1.0)
    np.testing.assert_allclose(found.shares, attention(USERS, BASIS))


def test_a_softmax_of_nothing_is_zero():
    rows = np.array([[0.0, 1.0], [-np.inf, -np.inf]])
    np.testing.assert_allclose(softmax(rows).sum(axis=1), [1.0, 0.0])
    read = Ragged.of_lengths([0, 2, 0, 1, 0], np.arange(3))
    found = ragged_softmax(np.array([0.0, np.log(3.0), 900.0]), read)
    np.testing.assert_allclose(found, [0.25, 0.75, 1.0])
    nobody = Ragged.of_lengths([0], np.arange(0))
    assert not len(ragged_softmax(np.zeros(0), nobody))
