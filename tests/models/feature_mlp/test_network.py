"""Shapes, starting weights, and the forward pass in numpy and in torch."""

import numpy as np
import pytest
from models.feature_mlp.small import encoded, network

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.feature_mlp import Encoded, Fields, Network, torch_twin


def in_torch(net, stacked, users, situations, items):
    """The logits of each user for all items, by the twin."""
    n = len(items)
    each = np.repeat(np.arange(len(users)), n)
    inputs = {
        "person": users,
        "situation": situations.take(each),
        "item": items.take(np.tile(np.arange(n), len(users))),
    }
    weights = torch_twin.tensors(stacked, requires_grad=False)
    return torch_twin.logits(net, weights, inputs).numpy()


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
@pytest.mark.parametrize(("dtype", "apart"), [("float64", 1e-12), ("float32", 1e-5)])
def test_numpy_ranks_as_torch_does(activation, dtype, apart):
    """Folded first layer, looked up, against the whole network."""
    net = network(activation=activation, dtype=dtype)
    starts = [net.start(Key.from_seed(seed)) for seed in range(4)]
    stacked = {n: np.stack([s[n] for s in starts]) for n in starts[0]}
    users, situations = encoded(net, "person", 4, 1), encoded(net, "situation", 4, 2)
    items = encoded(net, "item", 30, 3)
    folded = net.fold(stacked, users, situations)
    found = net.logits(folded, net.lookup(items))
    assert found.dtype == dtype
    expected = in_torch(net, stacked, users, situations, items)
    np.testing.assert_allclose(found, expected, rtol=0, atol=apart)


def test_blocks_of_users_change_nothing(monkeypatch):
    from tacit.models.feature_mlp import network as module

    net = network()
    stacked = {n: np.stack([v] * 5) for n, v in net.start(Key.from_seed(0)).items()}
    users, situations = encoded(net, "person", 5, 1), encoded(net, "situation", 5, 2)
    folded = net.fold(stacked, users, situations)
    items = net.lookup(encoded(net, "item", 30, 3))
    whole = net.logits(folded, items)
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    np.testing.assert_allclose(net.logits(folded, items), whole, atol=1e-12)


def test_one_hidden_layer_by_hand():
    """Two genres, mean of their embeddings: relu([1.5, 2] W + b) · v."""
    net = Network(
        Fields({}), Fields({}), Fields({"genres": 2}), 2, (2,), dtype="float64"
    )
    weights = {
        "embeddings": np.array([[1.0, 0.0], [2.0, 4.0]]),
        "first.item": np.array([[1.0, -1.0], [1.0, 0.0]]),
        "bias.1": np.array([0.5, 0.0]),
        "weights.2": np.array([[2.0], [3.0]]),
        "bias.2": np.array([-1.0]),
    }
    both = net.item.encode(
        {"genres": np.array([[1, 1], [0, 0]], np.uint8)}, 2, rows=2, dtype="float64"
    )
    nobody = Encoded(both.shares[:0], np.zeros((1, 0)), 0)
    stacked = {name: value[None] for name, value in weights.items()}
    found = net.logits(net.fold(stacked, nobody, nobody), net.lookup(both))
    # h = relu(1.5 + 2 + .5, -1.5) = (4, 0) -> 7; without genres h = (.5, 0) -> 0
    np.testing.assert_allclose(found, [[7.0, 0.0]])


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_what_passes_through_keeps_its_scale(activation):
    """At the papers' size the logits differ between items, and do not explode."""
    net = network(activation=activation, embedding=64, widths=(64, 32, 16, 8))
    stacked = {n: v[None] for n, v in net.start(Key.from_seed(0)).items()}
    users, situations = encoded(net, "person", 1, 1), encoded(net, "situation", 1, 2)
    items = net.lookup(encoded(net, "item", 30, 3))
    found = net.logits(net.fold(stacked, users, situations), items)
    assert 0.02 < found.std() < 10


def test_networks_that_cannot_be():
    with pytest.raises(BadValue, match="no feature of items: all items would be alike"):
        Network(Fields({"age": 0}), Fields({}), Fields({}))
    with pytest.raises(BadValue, match="at least one hidden layer"):
        network(widths=())
    with pytest.raises(BadValue, match="width=0"):
        network(widths=(3, 0))
    with pytest.raises(BadValue, match="activation='tanh'"):
        network(activation="tanh")
