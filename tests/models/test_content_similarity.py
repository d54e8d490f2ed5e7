"""How alike items are, by hand."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category, Numeric, Text, Vectors
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.models.content_similarity import Content


@pytest.fixture
def catalog():
    ids = Strings.of("abcd")
    features = {
        "genres": Categories.of([["x"], ["x", "y"], ["z"], []]),
        "kind": Category.of(["k", "k", "", "l"]),
        "year": Numeric(np.array([2000, 2007, np.nan, 2000], np.float32)),
        "plot": Text(ids),
    }
    return Catalog(ids, ids, features)


def test_the_cosine_of_labels(catalog):
    found = Content.of(catalog, ["genres"], scale=1.0)
    every = np.arange(4)
    half = 0.5**0.5
    expected = [[1, half, 0, 0], [half, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(found.between(every, every), expected, rtol=1e-6)


def test_numbers_fade_with_their_distance(catalog):
    found = Content.of(catalog, ["year"], scale=7.0).between(
        np.array([0]), np.arange(4)
    )
    # The unknown year is taken as the median of the known: 2000.
    np.testing.assert_allclose(found, [[1, np.exp(-1), 1, 1]], rtol=1e-6)


def test_all_features_together_and_an_item_is_most_alike_to_itself(catalog):
    content = Content.of(catalog, ["genres", "kind", "year"], scale=7.0)
    matrix = content.between(np.arange(4), np.arange(4))
    np.testing.assert_allclose(matrix, matrix.T)
    np.testing.assert_allclose(np.diag(matrix), 1, rtol=1e-6)
    assert (matrix >= 0).all()
    assert (matrix <= 1 + 1e-6).all()


def test_spreading_equals_the_whole_matrix(catalog, monkeypatch):
    monkeypatch.setattr(
        "tacit.models.content_similarity._AT_ONCE", 2
    )  # a block an item
    content = Content.of(catalog, ["genres", "year"], scale=7.0)
    matrix = content.between(np.arange(4), np.arange(4))
    x = np.array([[1.0, 0, 0, 2], [0, 0, 0, 0]])
    np.testing.assert_allclose(content.spread(x), x @ matrix, rtol=1e-6)


def test_smoothing_is_the_identity_without_a_share(catalog):
    content = Content.of(catalog, ["genres"], scale=1.0)
    some = np.array([0, 1])
    np.testing.assert_allclose(content.smoothing(some, 0.0), np.eye(2))
    half = 0.5**0.5
    degree = 1 + half
    expected = 0.6 * np.eye(2) + 0.4 * np.array([[1, half], [half, 1]]) / degree
    np.testing.assert_allclose(content.smoothing(some, 0.4), expected, rtol=1e-6)


def alike(feature):
    ids = Strings.of([str(n) for n in range(len(feature))])
    catalog = Catalog(ids, ids, {"about": feature})
    every = np.arange(len(feature))
    return Content.of(catalog, ["about"], scale=1.0).between(every, every)


def test_vectors_are_alike_by_their_cosine_and_opposites_not_at_all():
    rows = np.array([[2, 0], [1, 1], [-3, 0], [0, 0]], np.float32)
    half = 0.5**0.5
    expected = [[1, half, 0, 0], [half, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(alike(Vectors(rows)), expected, atol=1e-6)


def test_any_similarity_can_be_given_as_vectors():
    wanted = np.array([[1, 0.3, 0.5], [0.3, 1, 0], [0.5, 0, 1]])
    rows = np.linalg.cholesky(wanted).astype(np.float32)
    np.testing.assert_allclose(alike(Vectors(rows)), wanted, atol=1e-6)


def test_texts_are_alike_by_the_words_that_few_have():
    texts = ["The Alien returns", "Alien: the beginning", "the The return of love", ""]
    found = alike(Text(Strings.of(texts)))
    assert found[0, 1] > 0.2  # an alien, which two have
    assert found[0, 2] < found[0, 1]  # "the", which three have
    assert found[0, 0] == pytest.approx(1)
    assert not found[3].any()


def test_a_vector_that_is_not_finite_is_refused():
    with pytest.raises(BadValue, match="zeros where it is unknown"):
        Vectors(np.array([[np.nan, 1]], np.float32))


def test_what_cannot_be_compared_is_refused(catalog):
    with pytest.raises(BadValue, match="genres"):
        Content.of(catalog, ["genre"], scale=1.0)


def test_a_correlation_has_ones_and_no_common_part():
    """Centred: an item that is as alike to everyone as to itself lends nothing."""
    labels = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2]]
    content = Content(labels, np.zeros((5, 0), np.float32))
    found = content.correlation(np.arange(5), 0.5)
    assert np.diag(found).tolist() == [1.0] * 5
    assert found[0, 1] == pytest.approx(0.5)
    assert found[0, 2] < 0
    assert np.linalg.eigvalsh(found)[0] > 0


def test_words_have_the_same_weights_in_every_process():
    """Python orders a set of words by a hash of its own in each process."""
    program = (
        "from tacit.data.features import Text\n"
        "from tacit.data.strings import Strings\n"
        "from tacit.models.content_similarity import bag_of_words\n"
        "texts = [' '.join(f'w{i * k % 997}' for i in range(300)) for k in (3, 5, 7)]\n"
        "print(bag_of_words(Text(Strings.of(texts))).tobytes().hex())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
