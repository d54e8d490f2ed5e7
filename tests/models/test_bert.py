"""The encoder is, number by number, what the paper's formulas say."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.models.bert import Bert

from .small_bert import HEADS, LONGEST, WIDTH, WORDS, literal, parameters


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("length", [1, 2, 5, LONGEST])
def test_every_vector_is_that_of_the_loops(seed, length):
    found = parameters(seed)
    tokens = np.random.default_rng(seed).integers(WORDS, size=(3, length))
    hidden = Bert.of(found, heads=HEADS).hidden(tokens)
    assert hidden.dtype == np.float32
    assert hidden.shape == (3, length, WIDTH)
    for row, text in zip(hidden, tokens.tolist(), strict=True):
        np.testing.assert_allclose(row, literal(found, text), rtol=1e-4, atol=2e-5)


def test_order_counts_and_tokens_see_each_other():
    bert = Bert.of(parameters(), heads=HEADS)
    one, other, turned = bert.hidden(np.array([[1, 2, 3], [1, 2, 4], [3, 2, 1]]))
    assert np.abs(one[0] - other[0]).max() > 0.01  # the third token was seen
    assert np.abs(one[1] - turned[1]).max() > 0.001


def test_parameters_stay_as_they_are():
    found = parameters()
    before = {name: value.copy() for name, value in found.items()}
    Bert.of(found, heads=HEADS).hidden(np.array([[1, 2, 3]]))
    assert all(np.array_equal(found[name], before[name]) for name in found)


def test_what_does_not_fit_is_refused():
    found = parameters()
    with pytest.raises(BadValue, match="heads=4 must divide the width of the model, 6"):
        Bert.of(found, heads=4)
    for length in (0, LONGEST + 1):
        with pytest.raises(BadValue, match=f"{length} tokens; from 1 to {LONGEST} fit"):
            Bert.of(found, heads=HEADS).hidden(np.zeros((1, length), int))
    del found["encoder.layer.1.output.dense.bias"]
    with pytest.raises(BadValue, match=r"layer\.1\.output\.dense\.bias is missing"):
        Bert.of(found, heads=HEADS)
