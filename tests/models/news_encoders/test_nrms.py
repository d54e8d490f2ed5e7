"""NRMS against torch's own attention, news by news.

Also tests `tacit.models.news_encoders.word_encoder` and
`tacit.models.news_encoders.torch_gradients`, which it shares with NAML.

The contract of `tacit.models.news_encoders.word_model` runs here.
"""

import numpy as np
import pytest

from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.news_encoders import Nrms, Vocabulary
from tests.models.news_encoders.small import attended, catalog
from tests.models.news_encoders.word_models import WordModelContract


def heads_by_hand(theta, name, rows, heads):
    """Self-attention as torch has it."""
    from torch.nn.functional import scaled_dot_product_attention

    kinds = ("queries", "keys", "values")
    three = (
        (rows @ theta[f"{name}.{kind}"]).reshape(len(rows), heads, -1).transpose(0, 1)
        for kind in kinds
    )
    return scaled_dot_product_attention(*three).transpose(0, 1).reshape(len(rows), -1)


def attended_by_hand(theta, name, rows):
    names = (f"{name}.attention", f"{name}.offset", f"{name}.query")
    return attended(rows, *(theta[own] for own in names))


class TestNrms(WordModelContract):
    def model(self, file=None):
        vocabulary = Vocabulary(file, width=5, is_trained=file is None)
        return Nrms(vocabulary, title=6, heads=2, width=4, attention=3)

    def news_by_hand(self, theta, words, row):
        import torch

        rows = words[torch.tensor(row["title"]).long()]
        return attended_by_hand(theta, "news", heads_by_hand(theta, "news", rows, 2))

    def user_by_hand(self, theta, read):
        return attended_by_hand(theta, "user", heads_by_hand(theta, "user", read, 2))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"width": 9}, "multiple of heads=8"),
        ({"heads": 0}, "heads"),
        ({"title": 0}, "t"),
        ({"starts_at": "clusters"}, "starts_at"),
    ],
)
def test_sizes_that_cannot_be_are_refused(wrong, said):
    with pytest.raises(BadValue, match=said):
        Nrms(**wrong)


def test_at_content_a_user_is_a_mean_of_what_was_read():
    model = Nrms(starts_at="content")
    inputs = model.inputs(catalog())
    weights = model.start(Key.from_seed(0), inputs)
    news = model.news(weights, inputs)
    once = Ragged.of_lengths([1, 2], np.array([3, 5, 5]))
    users = model.users(weights, news, once)
    np.testing.assert_allclose(users, news[[3, 5]])
    # Of several news it is a mixture of their vectors, with shares that sum to one.
    [mixed] = model.users(weights, news, Ragged.of_lengths([2], np.array([3, 5])))
    by_head = (mixed.reshape(8, -1), *news[[3, 5]].reshape(2, 8, -1))
    for own, first, second in zip(*by_head, strict=True):
        along = (own - second) @ (first - second) / ((first - second) ** 2).sum()
        assert 0 < along < 1
        np.testing.assert_allclose(own, along * first + (1 - along) * second)


def test_the_other_weights_start_as_at_random():
    inputs = Nrms().inputs(catalog())
    random, content = (
        Nrms(starts_at=start).start(Key.from_seed(0), inputs)
        for start in ("random", "content")
    )
    different = {n for n in random if not np.array_equal(random[n], content[n])}
    assert different == {"user.values"}
