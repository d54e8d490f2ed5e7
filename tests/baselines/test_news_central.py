"""Central training of news models: slates, a world with a known answer, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.baselines.news_central import (
    NamlCentral,
    NrmsCentral,
    PlmNrCentral,
    _Clicks,
)
from tacit.baselines.ranker import CatalogRanker, FactorFitted
from tacit.data.catalog import Catalog
from tacit.data.features import Category, Text, Vectors
from tacit.data.impressions import Impressions, clicks
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.evaluation.impressions import evaluate_impressions
from tacit.evaluation.slate_scores import slate_scorer
from tacit.experiment.registry import baseline
from tacit.experiment.scorer import scorer
from tacit.keys import Key
from tacit.models.news_encoders import NO_NEWS

KEY, N_NEWS, TOPICS = Key.from_seed(0), 24, ("sea", "goal", "vote", "song")
RANKERS = [
    PlmNrCentral(starts_at="random", epochs=20, rate=0.03, batch=20, negatives=2),
    NrmsCentral(word_width=8, epochs=12, rate=0.05, batch=20, negatives=2),
    NamlCentral(word_width=8, epochs=10, rate=0.01, batch=20, negatives=2),
]


def catalog() -> Catalog:
    """News of four topics: words, labels and vectors tell which."""
    topics = [TOPICS[i % 4] for i in range(N_NEWS)]
    titles = [f"{topic} today {i}" for i, topic in enumerate(topics)]
    vectors = np.eye(4, dtype=np.float32)[np.arange(N_NEWS) % 4]
    noise = np.random.default_rng(0).normal(0, 0.3, (N_NEWS, 4)).astype(np.float32)
    return Catalog(
        Strings.of([f"N{i}" for i in range(N_NEWS)]),
        Strings.of(titles),
        {
            "title_vector": Vectors(vectors + noise),
            "abstract": Text(Strings.of(titles)),
            "category": Category.of(topics),
            "subcategory": Category.of(topics),
        },
    )


def impressions(n_users: int = 60, seed: int = 1) -> Impressions:
    """Who has read of one topic clicks what is of its partner: sea and goal, or others.

    The other two candidates are of the other two topics.
    """
    draws = np.random.default_rng(seed)
    own = draws.integers(0, 4, n_users)
    read = own[:, None] + 4 * draws.integers(0, 6, (n_users, 3))
    shown = own[:, None] ^ np.array([1, 2, 3])
    shown = shown + 4 * draws.integers(0, 6, shown.shape)
    order = draws.permuted(np.tile(np.arange(3), (n_users, 1)), axis=1)
    return Impressions.of_columns(
        np.arange(n_users),
        Ragged.of_lengths(
            [3] * n_users,
            np.take_along_axis(shown, order, 1).ravel().astype(np.int32),
        ),
        clicked=(order == 0).ravel(),
        histories=Ragged.of_lengths([3] * n_users, read.ravel().astype(np.int32)),
        history_of=np.arange(n_users),
        n_users=n_users,
        n_items=N_NEWS,
    )


def shards(own: Impressions) -> Shards:
    return Shards.of(clicks(own), own)


def auc(fitted) -> float:
    score = slate_scorer(scorer(fitted))
    found = evaluate_impressions(score, impressions(seed=2), metrics=("auc",))
    return found.metrics()["auc"].mean


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
def test_it_learns_what_content_cannot_know(ranker):
    """The clicked topic is never the one that was read; chance is .5."""
    pytest.importorskip("torch")
    assert isinstance(ranker, CatalogRanker)
    read, train = ranker.reading(catalog()), shards(impressions())
    first, *_, last = read.course(train, key=KEY)
    assert auc(last) > 0.95
    assert auc(first) < 0.8
    assert isinstance(last, FactorFitted)
    history = train.take([0, 1])
    product = last.represent(history) @ last.items.T
    np.testing.assert_allclose(product, last.score(history), rtol=1e-5)
    assert last.items.shape[0] == N_NEWS


def test_the_same_key_gives_the_same_model_and_no_epoch_is_content_similarity():
    ranker, train = PlmNrCentral(epochs=2), shards(impressions(12))
    one, two = (ranker.reading(catalog()).fit(train, key=KEY) for _ in range(2))
    np.testing.assert_array_equal(one.news, two.news)
    untrained = replace(ranker, epochs=0).reading(catalog()).fit(train, key=KEY)
    vectors = untrained.news[:-1] / np.sqrt(ranker.scale)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    read = Shards.of_history([0], n_items=N_NEWS)
    content = vectors[0] @ vectors.T
    np.testing.assert_allclose(
        untrained.score(read)[0], ranker.scale * content, atol=1e-5
    )


def test_slates_have_the_click_and_unclicked_candidates_of_its_impression():
    own = impressions(12)
    found = _Clicks.of(own)
    slates = found.slates(5, KEY)
    assert slates.shape == (12, 6)
    for owner, slate in zip(found.owners, slates, strict=True):
        shown = own.slates.shown[owner].tolist()
        assert sorted(n for n in slate.tolist() if n != NO_NEWS) == sorted(shown)
        assert own.clicked[own.slates.shown.places([owner])][shown.index(slate[0])]
    fewer = found.slates(2, KEY)
    assert (fewer != NO_NEWS).all()
    assert (fewer != found.slates(2, Key.from_seed(1))).any()


def test_clicks_without_a_choice_teach_nothing():
    whole = impressions(3)
    every = Impressions(whole.slates, np.ones_like(whole.clicked))
    assert not len(_Clicks.of(every).owners)


@pytest.mark.parametrize("name", ["plm_nr", "nrms", "naml"])
def test_what_cannot_be_is_refused(name):
    ranker = baseline(name, {"epochs": 1})
    with pytest.raises(BadValue, match="reads the catalog"):
        ranker.fit(shards(impressions(3)), key=KEY)
    nothing = replace(shards(impressions(3)), impressions=None)
    with pytest.raises(BadValue, match="learn from impressions"):
        ranker.reading(catalog()).fit(nothing, key=KEY)
    for wrong in ({"rate": 0.0}, {"batch": 0}, {"negatives": 0}, {"most_read": 0}):
        with pytest.raises(BadValue, match=next(iter(wrong))):
            baseline(name, wrong)
