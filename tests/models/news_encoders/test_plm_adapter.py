"""An adapter in a language model: first it changes nothing, then it is what is told.

The small model of `tests.models.small_bert` reads the titles of a small catalog.
"""

import numpy as np
import pytest

from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.bert import Bert
from tacit.models.news_encoders.plm_adapter import ADAPTER, BIAS, HEAD, PlmAdapter
from tacit.models.news_encoders.word_encoder import PADDING
from tacit.models.sentence_encoder import SentenceEncoder
from tacit.models.token_states import TokenStates
from tests.models.news_encoders.small import (
    INTERESTS,
    N_NEWS,
    TITLES,
    attended,
    batch,
    catalog,
    literal,
)
from tests.models.small_bert import HEADS, LONGEST, WIDTH, WORDS, parameters


def by_letter(texts):
    """The pieces of a text are its letters, between a first and a last piece."""
    return [
        [0, *(ord(c) % (WORDS - 2) + 2 for c in text), 1][:LONGEST] for text in texts
    ]


ENCODER = SentenceEncoder(Bert.of(parameters(), heads=HEADS), by_letter)
MODEL = PlmAdapter(
    TokenStates.of(TITLES, ENCODER, longest=LONGEST), units=2, width=4, attention=3
)
INPUTS = MODEL.inputs(catalog())
READ = Ragged.of_lengths([3, 0, 1], np.array([1, 1, 5, N_NEWS]))


def weights_of(*, is_moved: bool):
    start = MODEL.start(Key.from_seed(0), INPUTS, interests=INTERESTS)
    draws = np.random.default_rng(5)
    return {
        name: value + is_moved * 0.5 * draws.standard_normal(value.shape)
        for name, value in start.items()
    }


def news_by_hand(theta, number):
    """One news in torch, token by token."""
    import torch
    from torch.nn.functional import gelu, layer_norm

    numbers = [n for n in INPUTS["title"][number] if n]
    states = [torch.tensor(INPUTS["words"][n - 1]).double() for n in numbers]
    rows = []
    for row in states or [theta[PADDING]]:
        sums, inner = row[:WIDTH], row[WIDTH:]
        small = inner @ theta["adapter.down"] + theta["adapter.down_bias"]
        more = gelu(small) @ theta["adapter.up"] + theta["adapter.up_bias"]
        scale, shift = theta["adapter.scale"], theta["adapter.shift"]
        rows.append(layer_norm(sums + more, (WIDTH,), scale, shift, 1e-12))
    mean = torch.stack(rows).mean(0)
    return mean / torch.linalg.vector_norm(mean) @ theta[HEAD] + theta[BIAS]


def user_by_hand(theta, read):
    import torch

    if not read:
        return torch.zeros(MODEL.width, dtype=torch.double)
    names = ("user.attention", "user.offset", "user.query")
    return attended(torch.stack(read), *(theta[name] for name in names))


def test_untrained_it_is_the_frozen_model():
    weights = weights_of(is_moved=False)
    news = MODEL.news(weights, INPUTS)
    known = [n for n in range(N_NEWS) if TITLES[n]]
    vectors = ENCODER.encode([TITLES[n] for n in known])
    np.testing.assert_allclose(
        news[known] - weights[BIAS], vectors @ weights[HEAD], atol=1e-5
    )
    # Less the mean of all news; an empty title has a first and a last token.
    np.testing.assert_allclose(news[:N_NEWS].mean(axis=0), 0, atol=1e-5)


@pytest.mark.parametrize("has_noise", [True, False])
def test_gradients_are_those_of_a_literal_loop(has_noise):
    pytest.importorskip("torch")
    weights, own = weights_of(is_moved=True), batch(has_noise=has_noise)
    found = MODEL.gradients(weights, INPUTS, own).to_dense()
    wanted = literal(weights, own, news=news_by_hand, user=user_by_hand)
    assert {*found.leaves} == {*weights}
    for name in weights:
        slopes = np.array([client[name] for client in wanted])
        np.testing.assert_allclose(found[name], slopes, atol=1e-7, err_msg=name)


def test_the_total_is_the_sum_and_reaches_the_adapter():
    pytest.importorskip("torch")
    weights = weights_of(is_moved=True)
    each = MODEL.gradients(weights, INPUTS, batch()).sum()
    total = MODEL.total(weights, INPUTS, batch())
    for name in weights:
        np.testing.assert_allclose(total[name], each[name], atol=1e-7, err_msg=name)
    assert all(total[name].any() for name in weights if name.startswith(ADAPTER))


def test_vectors_of_numpy_are_those_by_hand():
    torch = pytest.importorskip("torch")
    weights = weights_of(is_moved=True)
    theta = {name: torch.tensor(value) for name, value in weights.items()}
    news = MODEL.news(weights, INPUTS)
    assert news.shape == (N_NEWS + 1, MODEL.width)
    for number in range(N_NEWS + 1):
        want = news_by_hand(theta, number)
        np.testing.assert_allclose(news[number], want, atol=1e-6)
    users = MODEL.users(weights, news, READ)
    for row, read in zip(users, READ, strict=True):
        want = user_by_hand(theta, list(torch.tensor(news[read])))
        np.testing.assert_allclose(row, want, atol=1e-12)


def test_tokens_of_another_catalog_are_refused():
    tokens = TokenStates.of(TITLES[:3], ENCODER, longest=LONGEST)
    with pytest.raises(BadValue, match="3 titles, and the catalog has 9"):
        PlmAdapter(tokens).inputs(catalog())
