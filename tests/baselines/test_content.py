"""Content similarity against a few vectors worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.content import Content, centred
from tacit.baselines.ranker import CatalogRanker, FactorFitted
from tacit.data.catalog import Catalog
from tacit.data.features import Numeric, Vectors
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.experiment.registry import baseline
from tacit.keys import Key

VALUES = np.array([[3, 0], [1, 0], [0, 4], [0, 0]], np.float32)  # the last: no text
KEY = Key.from_seed(0)


def catalog(**features):
    ids = [str(i) for i in range(len(VALUES))]
    made = Catalog.of_ids(ids)
    return Catalog(made.ids, made.titles, features)


def shards(users, items, n_users):
    return Shards.of(
        Interactions.of_columns(users, items, n_users=n_users, n_items=len(VALUES))
    )


def test_scores_are_inner_products_with_the_mean_of_the_history():
    history = shards([0, 0, 0, 2], [0, 0, 2, 3], 3)  # twice the first; nothing; no text
    ranker = Content()
    assert isinstance(ranker, CatalogRanker)
    fitted = ranker.reading(catalog(title_vector=Vectors(VALUES))).fit(history, key=KEY)
    own = VALUES[:3] - VALUES[:3].mean(axis=0)
    items = np.concatenate([own, [[0, 0]]])
    user = (2 * own[0] + own[2]) / 3
    expected = np.stack([items @ user, np.zeros(4), np.zeros(4)])
    np.testing.assert_allclose(fitted.score(history), expected, atol=1e-6)
    assert isinstance(fitted, FactorFitted)
    np.testing.assert_allclose(
        fitted.represent(history) @ fitted.items.T, fitted.score(history)
    )


def test_what_all_texts_have_in_common_does_not_count():
    shifted = VALUES + np.float32(5) * (VALUES.any(axis=1))[:, None]
    np.testing.assert_allclose(centred(VALUES), centred(shifted), atol=1e-6)
    zeros = np.zeros((2, 3), np.float32)
    np.testing.assert_array_equal(centred(zeros), zeros)


def test_it_reads_the_text_that_is_asked_for():
    known = catalog(body_vector=Vectors(VALUES), year=Numeric(np.ones(4, np.float32)))
    assert baseline("content", {"text": "body"}) == Content("body")
    Content("body").reading(known)
    with pytest.raises(
        BadValue, match=r"'title_vector'.*body_vector, year.*\['title'\]"
    ):
        Content().reading(known)
    with pytest.raises(BadValue, match="catalog has no features"):
        Content().reading(catalog())
    with pytest.raises(BadValue, match="'year_vector'"):
        Content("year").reading(known)


def test_shards_alone_are_not_enough():
    with pytest.raises(BadValue, match="reads the catalog"):
        Content().fit(shards([0], [0], 1), key=KEY)
