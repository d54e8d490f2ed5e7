"""Training in one place: equal to torch by hand, and it learns."""

import numpy as np
import pytest
from models.feature_mlp.small import examples, network

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.feature_mlp import torch_twin
from tacit.models.feature_mlp.central import CentralTraining

torch = pytest.importorskip("torch")


def loss_of(net, weights, every):
    owners = np.repeat(np.arange(len(every)), every.lengths)
    inputs = {
        "person": every.users.take(owners),
        "situation": every.situations,
        "item": every.catalog.take(every.items),
    }
    stacked = torch_twin.tensors({n: v[None] for n, v in weights.items()})
    said = torch_twin.logits(net, stacked, inputs)[0]
    wanted = torch.tensor(every.labels)
    return torch.nn.functional.binary_cross_entropy_with_logits(said, wanted), stacked


def test_one_whole_batch_is_one_step_of_adam():
    """The first step of Adam has the size of the rate, against the slope."""
    net = network(activation="sigmoid")
    start, every = net.start(Key.from_seed(0)), examples(net)
    loss, stacked = loss_of(net, start, every)
    slopes = torch.autograd.grad(loss, [*stacked.values()])
    central = CentralTraining(epochs=1, batch=1000, rate=0.01)
    after = central.learnt(net, start, every, key=Key.from_seed(1))
    for (name, value), slope in zip(start.items(), slopes, strict=True):
        g = slope[0].numpy()
        expected = value - 0.01 * g / (np.abs(g) + 1e-8)
        np.testing.assert_allclose(after[name], expected, atol=1e-9)


def test_it_fits_what_it_is_given():
    net = network()
    start, every = net.start(Key.from_seed(0)), examples(net)
    central = CentralTraining(epochs=60, batch=16, rate=0.02)
    after = central.learnt(net, start, every, key=Key.from_seed(1))
    before, _ = loss_of(net, start, every)
    now, _ = loss_of(net, after, every)
    assert float(now.detach()) < 0.6 * float(before.detach())


def test_settings_that_cannot_be():
    with pytest.raises(BadValue, match="epochs"):
        CentralTraining(epochs=0)
