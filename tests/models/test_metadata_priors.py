"""Priors from metadata: the map to [0, 1], and Equation 11 by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.data.catalog import Profiles
from tacit.data.features import Vectors
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.metadata_priors import Metadata, in_unit_interval, metadata_of

KEYS = Key.from_seed(0).each(np.arange(2))


@given(arrays(np.float64, (3, 5), elements=st.floats(-1, 1)), st.integers(1, 9))
def test_unit_vectors_become_numbers_between_zero_and_one(vectors, latent):
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    found = in_unit_interval(vectors, latent)
    assert found.shape == (3, latent)
    assert ((found >= 0) & (found <= 1)).all()


def test_nothing_known_is_a_half_and_the_map_is_affine():
    vectors = Key.from_seed(1).generator().normal(size=(4, 50))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = in_unit_interval(vectors, 20)
    np.testing.assert_array_equal(in_unit_interval(np.zeros((1, 50)), 20), 0.5)
    of_mean = in_unit_interval(vectors.mean(axis=0, keepdims=True), 20)
    np.testing.assert_allclose(of_mean[0], found.mean(axis=0))
    assert 0.03 < found.std() < 0.15  # 50 axes: about 1 / (2 sqrt 50)


def test_a_prior_by_hand():
    """Two kinds, one number: 0.5 · 0.4 + 1 · 0.2; (0.5 - 0.4)² + (1 - 0.4)²."""
    values = np.array([[[0.5], [1.0]], [[0.0], [0.0]]])
    means = np.array([[[0.4], [0.2]]] * 2)
    prior = Metadata(values, means).prior()
    np.testing.assert_allclose(prior.mean, [[0.4], [0.0]])
    np.testing.assert_allclose(prior.variance, [[0.37], [1e-4]])  # the floor


def test_noise_is_each_users_own_and_variances_stay_positive():
    values = np.full((2, 3, 400), 0.5)
    told = Metadata(values, values)
    loud = told.noisy_prior(KEYS, sigma=np.array([1e-9, 50.0]))
    np.testing.assert_allclose(loud.mean[0], told.prior().mean[0], atol=1e-6)
    assert loud.mean[1].std() == pytest.approx(50.0, rel=0.2)
    assert loud.variance.min() == 1e-4


def profiles() -> Profiles:
    draws = Key.from_seed(2).generator().normal(size=(2, 3, 4))
    unit = (draws / np.linalg.norm(draws, axis=2, keepdims=True)).astype(np.float32)
    features = {"gender_vector": Vectors(unit[0]), "gender_mean": Vectors(unit[1])}
    return Profiles(Strings.of("abc"), features)


def test_metadata_are_those_of_the_profiles():
    found = metadata_of(profiles(), ["gender"], latent=2)
    features = profiles().features
    for made, name in ((found.values, "vector"), (found.means, "mean")):
        vectors = features[f"gender_{name}"].values
        np.testing.assert_allclose(made[:, 0], in_unit_interval(vectors, 2))


def test_metadata_without_vectors_are_refused():
    with pytest.raises(BadValue, match=r"age_vector.*metadata_vectors"):
        metadata_of(profiles(), ["age"], latent=2)
