"""Public vectors of news: centred, of length one, of words, labels and vectors."""

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.features import Category, Numeric, Text, Vectors
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.models.news_vectors import centred, described_by, news_vectors, reduced

IDS = Strings.of(["a", "b", "c", "d"])
VALUES = np.array([[3, 1, 0], [1, 3, 0], [2, 2, 4], [0, 0, 0]], np.float32)
CATALOG = Catalog(
    IDS,
    Strings.of(["red fox", "red hen", "blue sea", "blue sky"]),
    {
        "title_vector": Vectors(VALUES),
        "topic": Category.of(["animals", "animals", "nature", "nature"]),
        "abstract": Text(Strings.of(["fur", "egg", "salt", "air"])),
        "year": Numeric(np.zeros(4, np.float32)),
    },
)


def test_vectors_are_centred_over_known_items_and_of_length_one():
    found = news_vectors(CATALOG, ["title_vector"])
    expected = VALUES[:3] - VALUES[:3].mean(axis=0)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found[:3], expected, atol=1e-6)
    np.testing.assert_array_equal(found[3], 0.0)  # nothing is known of it
    np.testing.assert_allclose(centred(VALUES)[:3].mean(axis=0), 0.0, atol=1e-6)


@pytest.mark.parametrize("names", [["title"], ["title", "abstract"], ["topic"]])
def test_words_and_labels_tell_who_is_alike(names):
    found = news_vectors(CATALOG, names)
    alike = found @ found.T
    np.testing.assert_allclose(np.diag(alike), 1.0, atol=1e-6)
    assert min(alike[0, 1], alike[2, 3]) > alike[:2, 2:].max()


def test_all_axes_keep_all_inner_products_and_few_keep_the_largest_ones():
    wide = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    np.testing.assert_array_equal(reduced(wide, 6), wide)
    wide[:, 2:] *= 1e-3
    few = reduced(wide, 2)
    assert few.shape == (30, 2)
    np.testing.assert_allclose(few @ few.T, wide @ wide.T, atol=1e-4)


def test_features_that_say_no_direction_are_left_out_or_refused():
    assert described_by(CATALOG) == ("title", "title_vector", "topic", "abstract")
    assert described_by(Catalog.of_ids(["a", "b"])) == ("title",)
    with pytest.raises(BadValue, match="'year' is a number"):
        news_vectors(CATALOG, ["year"])
    with pytest.raises(BadValue, match=r"data.text_vectors = \['body'\]"):
        news_vectors(CATALOG, ["body_vector"])
    with pytest.raises(BadValue, match="content"):
        news_vectors(CATALOG, ["topics"])
