"""Models that rank news: what is served ranks as the training model does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.features import Vectors
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.news_encoders.drawn_batch import Draws, TrueLabels
from tacit.models.news_encoders.plm_nr import PlmNr
from tacit.models.news_models import NEWS, Encoded, Similarity
from tacit.models.news_similarity import Bilinear, Projection

CONTENT = ("title_vector",)
READ = Ragged.of_lengths([3, 0, 1], np.array([0, 4, 2, 5], np.int32))
PLM = PlmNr(CONTENT, attention=2)
DRAWS = Draws(TrueLabels(2), 1, 50)


def catalog() -> Catalog:
    values = Key.from_seed(2).generator().normal(size=(7, 4)).astype(np.float32)
    ids = Strings.of([str(i) for i in range(7)])
    return Catalog(ids, ids, {"title_vector": Vectors(values)})


def impressions() -> Impressions:
    """Three users, each shown four news, of which the first was clicked."""
    return Impressions.of_columns(
        np.arange(3),
        Ragged.of_lengths([4] * 3, np.arange(12, dtype=np.int32) % 7),
        clicked=np.arange(12) % 4 == 0,
        histories=READ,
        history_of=np.arange(3),
        times=np.arange(3),
        n_users=3,
        n_items=7,
    )


def begun(model):
    inputs = model.inputs(catalog())
    return {**inputs, **model.start(Key.from_seed(1), inputs)}


def scores(model, served):
    return model.users(served, READ) @ model.news(served, np.arange(7)).T


@pytest.mark.parametrize(
    "model",
    [
        Similarity(Projection(), CONTENT, None, 3.0, 2),
        Similarity(Bilinear(), CONTENT, None, 3.0, 2),
        Encoded(replace(PLM, scale=3.0), DRAWS),
    ],
)
def test_at_the_start_all_score_by_content_similarity(model):
    known = begun(model)
    vectors = Similarity(Projection(), CONTENT, None, 1.0, 1).inputs(catalog())
    rows = vectors["vectors"].astype(float)
    mean = np.stack([rows[[0, 4, 2]].mean(axis=0), np.zeros(4), rows[5]])
    found = scores(model, model.served(known))
    np.testing.assert_allclose(found, 3.0 * mean @ rows.T, atol=1e-5)


def test_what_is_served_twice_is_served_once():
    model = Encoded(PLM, DRAWS, 2)
    served = model.served(begun(model))
    assert {*served} == {NEWS, "basis", "user.attention", "user.offset", "user.query"}
    assert served[NEWS].shape == (8, 4)  # and the padding news
    again = model.served(served)
    assert all(again[name] is served[name] for name in served)


def test_a_mixture_is_served_without_noise():
    """ReLU leaves a softmax as it is; SoftPlus brings all weights near each other."""
    known = begun(Encoded(PLM, DRAWS, 2))
    known["basis"] = 20.0 * known["basis"]
    users = {}
    for serving in ("relu", "softplus"):
        model = Encoded(PLM, DRAWS, 2, serving=serving)
        users[serving] = model.users(model.served(known), READ)
    plain = Encoded(PLM, DRAWS)
    own = plain.users(plain.served(known), READ)
    logits = own @ known["basis"].T / 2.0
    alpha = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(users["relu"], alpha @ known["basis"], atol=1e-9)
    soft = np.log1p(np.exp(alpha))
    soft /= soft.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(users["softplus"], soft @ known["basis"], atol=1e-9)
    assert np.abs(soft - 0.5).max() < 0.2 < np.abs(alpha - 0.5).max()


def test_a_basis_starts_at_clusters_of_the_news():
    """Three groups of news: each is a direction of the basis, at the asked length."""
    directions = np.eye(4, dtype=np.float32)[[0, 0, 0, 1, 1, 2, 2]]
    ids = Strings.of([str(i) for i in range(7)])
    grouped = Catalog(ids, ids, {"title_vector": Vectors(directions)})
    model = Encoded(PLM, DRAWS, 3, basis_length=8.0)
    inputs = model.inputs(grouped)
    weights = model.start(Key.from_seed(1), inputs)
    np.testing.assert_allclose(np.linalg.norm(weights["basis"], axis=1), 8.0)
    near = inputs["input.vectors"] @ weights["basis"].T / 8.0
    np.testing.assert_allclose(near.max(axis=1), 1.0, atol=1e-6)
    shapes = model.shapes(inputs)
    assert {n: (v.shape, v.dtype) for n, v in shapes.items()} == {
        n: (v.shape, v.dtype) for n, v in weights.items()
    }


def test_more_interests_than_different_news_are_refused():
    model = Encoded(PLM, DRAWS, 8)
    with pytest.raises(BadValue, match="only 7 different"):
        model.start(Key.from_seed(1), model.inputs(catalog()))


def test_at_length_one_attention_is_even_and_at_the_default_it_is_not():
    """As published all users had one list: its logits were too small (64 axes)."""
    rows = Key.from_seed(3).generator().normal(size=(60, 64)).astype(np.float32)
    rows[:, 0] += np.where(np.arange(60) % 2, 9.0, -9.0)
    ids = Strings.of([str(i) for i in range(60)])
    known = Catalog(ids, ids, {"title_vector": Vectors(rows)})
    apart = {}
    for length in (1.0, 8.0):
        model = Encoded(PLM, DRAWS, 2, basis_length=length, serving="relu")
        inputs = model.inputs(known)
        served = model.served({**inputs, **model.start(Key.from_seed(1), inputs)})
        read = Ragged.of_lengths([2, 2], np.array([0, 2, 1, 3], np.int32))
        first, second = model.users(served, read) @ served["basis"].T / length**2
        apart[length] = abs(first[0] - second[0])
    assert apart[1.0] < 0.3 < 0.7 < apart[8.0]


def test_a_sum_of_gradients_is_the_gradient_of_the_sum():
    model = Encoded(PLM, Draws(TrueLabels(2), 1, 50), 2)
    known, shown = begun(model), impressions()
    keys = Key.from_seed(4).each(np.arange(3))
    each = model.gradients(known, shown, keys, effects=np.zeros(7)).sum()
    found = model.total(known, shown, keys)
    assert np.abs(found["basis"]).max() > 0
    for name, value in each.items():
        np.testing.assert_allclose(found[name], value, atol=1e-12)


def test_slots_have_room_for_everything_a_client_reads():
    model = Encoded(PLM, DRAWS, 2)
    slots = model.slots({n: v for n, v in begun(model).items() if "input" not in n})
    assert slots["basis"].shape == (2, 4)
    assert slots["news.head"].rank == 4
