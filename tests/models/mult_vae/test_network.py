"""The network: shapes, first weights, and numpy, torch and formula alike."""

import numpy as np
import pytest
import torch
from models.mult_vae import literal
from onnx_device import run

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.mult_vae import Network
from tacit.models.onnx_graph import HISTORIES
from tacit.serving.onnx_file import to_onnx


def test_the_papers_network():
    assert Network(3520).shapes == {
        "encoder/0": (3521, 600),
        "encoder/1": (601, 400),
        "decoder/0": (201, 600),
        "decoder/1": (601, 3520),
    }


def test_other_widths():
    assert [*Network(9, (), 2).shapes.values()] == [(10, 4), (3, 9)]
    assert [*Network(9, (), 2, is_variational=False).shapes.values()] == [
        (10, 2),
        (3, 9),
    ]
    assert [*Network(9, (5, 4), 2).shapes.values()] == [
        *((10, 5), (6, 4), (5, 4), (3, 4), (5, 5), (6, 9))
    ]
    tied = Network(9, (5,), 2, is_tied=True)
    assert tied.shapes["decoder/1"] == (1, 9)
    assert tied.ranks == {
        "encoder/0": 2,
        "encoder/1": 1,
        "decoder/0": 1,
        "decoder/1": 1,
    }


@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.parametrize("is_variational", [False, True])
@pytest.mark.parametrize("hidden", [(5,), (6, 4)])
def test_numpy_torch_and_the_formula_say_the_same(hidden, is_variational, is_tied):
    network = Network(11, hidden, 3, is_variational, is_tied)
    weights = network.start(Key.from_seed(0), init="normal", dtype="float64")
    x = np.random.default_rng(0).random((4, 11))
    found = network.decode(weights, network.encode(weights, x))
    tensors = {name: torch.tensor(value) for name, value in weights.items()}
    expected, _ = literal.scores_of(network, tensors, torch.tensor(x))
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12)
    written = network.formula(weights, HISTORIES)
    content = to_onnx(written, n_items=11, precision="float64")
    np.testing.assert_allclose(run(content, x), found, rtol=1e-9)


def test_first_weights():
    """40,000 numbers: a standard error of 0.4 %, so 2 % are five of them."""
    network = Network(200, (200,), 10)
    literal_ = network.start(Key.from_seed(0), init="normal", dtype="float32")
    usual = network.start(Key.from_seed(0), init="xavier", dtype="float64")
    assert literal_["encoder/0"].dtype == np.float32
    assert literal_["encoder/0"].std() == pytest.approx(1.0, rel=0.02)
    assert usual["encoder/0"][:-1].std() == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert (usual["encoder/0"][-1] == 0).all()
    assert (literal_["encoder/0"][-1] != 0).all()
    again = network.start(Key.from_seed(0), init="xavier", dtype="float64")
    assert all((again[name] == value).all() for name, value in usual.items())


def test_what_cannot_be():
    with pytest.raises(BadValue, match="hidden=0"):
        Network(9, (0,))
    with pytest.raises(BadValue, match="is_tied without a hidden layer"):
        Network(9, (), 2, is_tied=True)
    with pytest.raises(BadValue, match="init='zeros'"):
        Network(9).start(Key.from_seed(0), init="zeros", dtype="float64")
