"""Layers in numpy and in torch: the same numbers, and nothing from empty places."""

import numpy as np
import pytest

from tacit.models.news_encoders.layers import (
    NUMPY,
    Ops,
    additive_attention,
    convolution,
    self_attention,
)

DRAWS = np.random.default_rng(2)
ROWS = DRAWS.standard_normal((3, 4, 6))
IS_THERE = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]], bool)
WEIGHTS = {
    "x.attention": DRAWS.standard_normal((6, 5)),
    "x.offset": DRAWS.standard_normal(5),
    "x.query": DRAWS.standard_normal(5),
    "x.queries": DRAWS.standard_normal((6, 4)),
    "x.keys": DRAWS.standard_normal((6, 4)),
    "x.values": DRAWS.standard_normal((6, 4)),
    "x.filters": DRAWS.standard_normal((18, 7)),
    "x.bias": DRAWS.standard_normal(7),
}


def all_layers(ops: Ops, weights, rows, is_there):
    return [
        additive_attention(ops, weights, "x", rows, is_there),
        self_attention(ops, weights, "x", rows, is_there, heads=2),
        convolution(ops, weights, "x", rows),
    ]


def test_torch_and_numpy_agree():
    torch = pytest.importorskip("torch")
    from tacit.models.news_encoders.torch_gradients import _ops

    theta = {name: torch.tensor(value) for name, value in WEIGHTS.items()}
    tensors = (torch.tensor(ROWS), torch.tensor(IS_THERE))
    pairs = zip(
        all_layers(NUMPY, WEIGHTS, ROWS, IS_THERE),
        all_layers(_ops(), theta, *tensors),
        strict=True,
    )
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine, theirs, atol=1e-13)


def test_what_stands_in_an_empty_place_does_not_matter():
    other = np.where(IS_THERE[..., None], ROWS, 1e3)
    first, second = (
        additive_attention(NUMPY, WEIGHTS, "x", rows, IS_THERE)
        for rows in (ROWS, other)
    )
    np.testing.assert_allclose(first, second)
    assert not first[2].any()  # nobody is there
    mixed, again = (
        self_attention(NUMPY, WEIGHTS, "x", rows, IS_THERE, heads=2)
        for rows in (ROWS, other)
    )
    np.testing.assert_allclose(mixed[IS_THERE], again[IS_THERE])
