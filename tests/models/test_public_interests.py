"""Public interests: centres of a catalog, attention, and what a report lets expect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.features import Vectors
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.models.public_interests import (
    attention,
    centres,
    expected_after_noise,
    expected_after_response,
    marked,
    public_interests,
)


def two_kinds(n: int = 20) -> np.ndarray:
    """Unit vectors around two directions that are at right angles."""
    draws = Key.from_seed(1).generator().normal(size=(n, 4)) * 0.1
    draws[np.arange(n), np.arange(n) % 2] += 1.0
    return (draws / np.linalg.norm(draws, axis=1, keepdims=True)).astype(np.float32)


def test_centres_are_those_of_the_kinds():
    found = centres(two_kinds(), 2)
    assert found.shape == (2, 4)
    nearest = (two_kinds() @ found.T).argmax(axis=1)
    assert len({tuple(nearest[0::2]), tuple(nearest[1::2])}) == 2
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)


def test_interests_follow_from_the_catalog_alone():
    ids = Strings.of([f"N{i}" for i in range(20)])
    catalog = Catalog(ids, ids, {"own": Vectors(two_kinds())})
    names = ("own",)
    one = public_interests(catalog, names, None, 3)
    other = public_interests(replace(catalog), names, None, 3)
    np.testing.assert_array_equal(one, other)


def test_there_are_no_more_interests_than_different_items():
    assert len(centres(two_kinds()[[0, 1, 0, 1]], 5)) == 2
    with pytest.raises(BadValue, match="no public interests"):
        centres(np.zeros((3, 4), np.float32), 2)


def test_attention_is_a_distribution_whose_peak_is_the_nearest_interest():
    basis = np.eye(3)
    read = np.array([[0.2, 0.5, 0.1], [0.0, 0.0, 0.0], [1e15, 0.0, -1e15]])
    found = attention(read, basis, temperature=0.1)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert found[0].argmax() == 1
    np.testing.assert_allclose(found[1], 1 / 3)
    np.testing.assert_array_equal(found[2], [1, 0, 0])


def test_a_response_is_believed_as_bayes_says():
    """By hand: half have interest 0, and a report of it is true with chance .75."""
    said = marked(np.array([0, 0, 1, 1]), 2)
    found = expected_after_response(said, keep=0.75, other=0.25)
    np.testing.assert_allclose(found[0], [0.75, 0.25])
    np.testing.assert_allclose(found[2], [0.25, 0.75])


def test_expected_interests_are_right_on_average():
    """60,000 clients at epsilon 1: a frequency has deviation 0.005, allowed is 0.02."""
    truth = Key.from_seed(2).generator().choice(4, size=60_000, p=[0.1, 0.2, 0.3, 0.4])
    how = RandomizedResponse(1.0, 4)
    keys = Key.from_seed(3).each(np.arange(len(truth)))
    said = marked(how.privatize(truth, keys), 4)
    found = expected_after_response(said, keep=how.keep, other=how.other)
    for interest, frequency in enumerate([0.1, 0.2, 0.3, 0.4]):
        of_these = found[truth == interest]
        assert found[:, interest].mean() == pytest.approx(frequency, abs=0.02)
        assert of_these[:, interest].mean() > frequency + 0.05


def test_noise_that_outweighs_attention_leaves_the_mean():
    """Of little noise nearly all is kept, of much nearly nothing."""
    draws = Key.from_seed(4).generator()
    true = np.eye(3)[draws.integers(0, 3, 5_000)]
    for deviation, kept in ((0.01, 0.99), (30.0, 0.1)):
        noisy = true + draws.normal(size=true.shape) * deviation
        found = expected_after_noise(noisy, variance=deviation**2)
        spread = found.std(axis=0).mean() / true.std(axis=0).mean()
        assert (spread > kept) if kept > 0.5 else (spread < 3.0)
        np.testing.assert_allclose(found.mean(axis=0), noisy.mean(axis=0), atol=1e-9)


def test_nobody_said_anything():
    nothing = np.zeros((0, 3), np.float32)
    assert expected_after_response(nothing, keep=0.5, other=0.25).shape == (0, 3)
    assert expected_after_noise(nothing, variance=1.0).shape == (0, 3)
