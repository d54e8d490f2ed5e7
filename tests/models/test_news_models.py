"""Models that rank news: what is served ranks as the training model does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.features import Vectors
from tacit.data.ragged import Ragged
from tacit.data.strings import Strings
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


def test_slots_have_room_for_everything_a_client_reads():
    model = Encoded(PLM, DRAWS, 2)
    slots = model.slots({n: v for n, v in begun(model).items() if "input" not in n})
    assert slots["basis"].shape == (2, 4)
    assert slots["news.head"].rank == 4
