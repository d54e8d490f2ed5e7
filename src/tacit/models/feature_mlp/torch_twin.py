"""The same network in torch, for those who differentiate through it.

It is for second derivatives and other optimizers, which `training` does not do, and it
needs the extra `train`. Clients stand on axis 0 here too; one client is a stack of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tacit.models.deterministic_torch import load_torch
from tacit.models.feature_mlp.inputs import Encoded
from tacit.models.feature_mlp.network import (
    EMBEDDINGS,
    Network,
    Side,
    bias,
    block,
    weights,
)
from tacit.tree import Array, Arrays

if TYPE_CHECKING:
    from torch import Tensor


def tensors(stacked: Arrays, *, requires_grad: bool = True) -> dict[str, Tensor]:
    """The weights as torch tensors, from which gradients are taken."""
    torch = load_torch()
    return {
        name: torch.tensor(np.array(value), requires_grad=requires_grad)
        for name, value in stacked.items()
    }


def logits(
    network: Network, stacked: Mapping[str, Tensor], inputs: Mapping[Side, Encoded]
) -> Tensor:
    """Logits of shape (clients, examples).

    Every side has the same number of things per client, or one; they stand client by
    client.
    """
    torch = load_torch()
    activation = torch.relu if network.activation == "relu" else torch.sigmoid
    clients = len(stacked[EMBEDDINGS])
    z = stacked[bias(1)][:, None]
    for side in network.sides:
        x = _inputs(stacked[EMBEDDINGS], inputs[side], clients)
        z = z + x @ stacked[block(side)]
    h = activation(z)
    for layer in range(2, network.n_layers + 1):
        h = activation(h @ stacked[weights(layer)] + stacked[bias(layer)][:, None])
    last = network.n_layers + 1
    return (h @ stacked[weights(last)] + stacked[bias(last)][:, None])[..., 0]


def cross_entropy(said: Tensor, labels: Array, weights: Array) -> Tensor:
    """The weighted sum of cross-entropies of logits."""
    torch = load_torch()
    wanted, share = (
        torch.from_numpy(np.array(a)).to(said.dtype) for a in (labels, weights)
    )
    each = torch.nn.functional.binary_cross_entropy_with_logits(
        said, wanted, reduction="none"
    )
    return (share * each).sum()


def slopes(
    loss: Tensor, theta: Mapping[str, Tensor], *, keeps_graph: bool
) -> dict[str, Tensor]:
    """The derivative at every weight; `keeps_graph` lets it be differentiated again."""
    torch = load_torch()
    found = torch.autograd.grad(loss, [*theta.values()], create_graph=keeps_graph)
    return dict(zip(theta, found, strict=True))


def _inputs(embeddings: Tensor, of: Encoded, clients: int) -> Tensor:
    """The inputs of a side, of shape (clients, things, width)."""
    torch = load_torch()
    each = len(of) // clients
    held, size = of.shares.tocoo(), embeddings.shape[-1]
    owner = torch.from_numpy(held.row // max(1, each * of.n_fields))
    rows = embeddings[owner, torch.from_numpy(held.col)]
    share = torch.from_numpy(held.data).to(embeddings.dtype)[:, None]
    empty = torch.zeros(of.shares.shape[0], size, dtype=embeddings.dtype)
    # Gather, weigh and add: each of the three can be differentiated twice.
    summed = empty.index_add(0, torch.from_numpy(held.row), share * rows)
    numbers = torch.from_numpy(of.numbers).to(embeddings.dtype)
    x = torch.cat([summed.reshape(len(of), -1), numbers], dim=1)
    return x.reshape(clients, each, -1)
