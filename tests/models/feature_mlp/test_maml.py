"""Meta-gradients against finite differences of the loss after training."""

import numpy as np
import pytest
from models.feature_mlp.small import LENGTHS, examples, keys, network

from tacit.keys import Key
from tacit.models.feature_mlp import maml, torch_twin
from tacit.models.feature_mlp.maml import InnerLoop, meta_gradients

torch = pytest.importorskip("torch")
INNER = InnerLoop(steps=3, batch=4, rate=0.2)


def after_the_steps(net, start, own, client):
    """One client's loss on its query after its steps on its support, and weights there.

    Step by step; no derivative goes through them.
    """
    support, query = maml._halves(own, 12, keys()[[client]])
    theta = torch_twin.tensors({n: v[None] for n, v in start.items()})

    def loss(places):
        inputs = {
            "person": own.users,
            "situation": own.situations.take(places),
            "item": own.catalog.take(own.items[places]),
        }
        said = torch_twin.logits(net, theta, inputs)[0]
        wanted = torch.tensor(own.labels[places])
        return torch.nn.functional.binary_cross_entropy_with_logits(said, wanted)

    for batch in np.split(support[0], 3):
        slopes = torch.autograd.grad(loss(batch), [*theta.values()])
        moved = zip(theta.items(), slopes, strict=True)
        theta = {
            n: (value - 0.2 * slope).detach().requires_grad_()
            for (n, value), slope in moved
        }
    return loss(query[0]), theta


@pytest.mark.parametrize("client", [0, 3, 7])
def test_it_is_the_slope_of_the_loss_after_the_steps(client):
    """Along a random direction; sigmoid, so that no kink is crossed."""
    net = network(activation="sigmoid")
    start, every = net.start(Key.from_seed(0)), examples(net)
    found = meta_gradients(net, start, every, inner=INNER, keys=keys())
    draws = np.random.default_rng(1)
    ways = {n: draws.normal(size=v.shape) for n, v in start.items()}
    own, h = every.take([client]), 1e-5
    ahead, behind = (
        after_the_steps(
            net, {n: v + by * ways[n] for n, v in start.items()}, own, client
        )
        for by in (h, -h)
    )
    ahead, behind = (float(loss.detach()) for loss, _ in (ahead, behind))
    slope = sum(float((found[n][client] * ways[n]).sum()) for n in start)
    assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-6, abs=1e-9)


def test_it_is_not_the_first_order_one():
    """Without second derivatives the gradient would be that at θ' itself."""
    net = network(activation="sigmoid")
    start, every = net.start(Key.from_seed(0)), examples(net)
    found = meta_gradients(net, start, every, inner=INNER, keys=keys())
    loss, theta = after_the_steps(net, start, every.take([3]), 3)
    there = torch.autograd.grad(loss, [*theta.values()])
    apart = [
        np.linalg.norm(found[name][3] - slope.numpy()[0])
        for name, slope in zip(theta, there, strict=True)
    ]
    size = [np.linalg.norm(found[name][3]) for name in theta]
    assert np.linalg.norm(apart) > 0.01 * np.linalg.norm(size)


def test_who_cannot_be_halved_gives_nothing():
    net = network()
    found = meta_gradients(
        net, net.start(Key.from_seed(0)), examples(net), inner=INNER, keys=keys()
    )
    norms = sum((v.reshape(8, -1) ** 2).sum(axis=1) for v in found.values())
    assert (norms > 0).tolist() == [n > 1 for n in LENGTHS]


def test_nobody_with_examples():
    net = network()
    found = meta_gradients(
        net,
        net.start(Key.from_seed(0)),
        examples(net, (0, 0)),
        inner=INNER,
        keys=keys(2),
    )
    assert not any(v.any() for v in found.values())


def test_halves_are_disjoint_and_whole():
    net = network()
    every = examples(net)
    support, query = maml._halves(every, 40, keys())
    for client in (0, 3, 5):
        some = slice(every.offsets[client], every.offsets[client + 1])
        one, other = set(support[client].tolist()), set(query[client].tolist())
        assert not one & other
        assert one | other == set(range(some.start, some.stop))
