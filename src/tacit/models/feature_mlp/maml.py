"""Meta-gradients: how to move the start so that a few steps from it lower the loss.

    θ' = θ₀ - α ∇ loss(support; θ₀), `steps` times      g = ∇_θ₀ loss(query; θ')

All clients of a micro-cohort are computed at once, by torch's second derivatives. A
client's examples are divided at random into two halves; a half with fewer examples than
are asked for is repeated.

Source: Finn, Abbeel and Levine 2017, "Model-Agnostic Meta-Learning".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int64

from tacit import check
from tacit.keys import Keys
from tacit.models.deterministic_torch import deterministic
from tacit.models.feature_mlp import torch_twin
from tacit.models.feature_mlp.examples import Examples
from tacit.models.feature_mlp.network import Network
from tacit.tree import Array, Arrays

if TYPE_CHECKING:
    from torch import Tensor

MICRO_COHORT = 8  # clients at once; torch keeps a copy of the weights for every step
Places = Int64[np.ndarray, "clients each"]


@dataclass(frozen=True)
class InnerLoop:
    """The steps that a client takes on its support half."""

    steps: int = 5
    batch: int = 32
    rate: float = 0.1

    def __post_init__(self) -> None:
        check.count(steps=self.steps, batch=self.batch)
        check.positive(rate=self.rate)


@deterministic()
def meta_gradients(
    network: Network, start: Arrays, examples: Examples, *, inner: InnerLoop, keys: Keys
) -> dict[str, Array]:
    """The meta-gradient of every client; axis 0 is the client.

    It is zero for clients with fewer than two examples. The query has as many examples
    as all steps on the support together.
    """
    cuts = range(0, len(examples), MICRO_COHORT)
    rows = [np.arange(i, min(i + MICRO_COHORT, len(examples))) for i in cuts]
    found = [
        _of_some(network, start, examples.take(some), inner, keys[some])
        for some in rows
    ]
    return {name: np.concatenate([one[name] for one in found]) for name in start}


def _of_some(
    network: Network, start: Arrays, examples: Examples, inner: InnerLoop, keys: Keys
) -> dict[str, Array]:
    n = len(examples)
    stacked = {k: np.repeat(value[None], n, axis=0) for k, value in start.items()}
    if not len(examples.items):  # nobody has anything to learn from
        return {name: np.zeros_like(value) for name, value in stacked.items()}
    support, query = _halves(examples, inner.steps * inner.batch, keys)
    is_fit = examples.lengths > 1  # both halves have an example
    home = torch_twin.tensors(stacked)
    theta = home
    for batch in np.split(support, inner.steps, axis=1):
        loss = _loss(network, theta, examples, batch, is_fit)
        slopes = torch_twin.slopes(loss, theta, keeps_graph=True)
        theta = {
            name: value - inner.rate * slopes[name] for name, value in theta.items()
        }
    loss = _loss(network, theta, examples, query, is_fit)
    found = torch_twin.slopes(loss, home, keeps_graph=False)
    return {name: slope.detach().numpy() for name, slope in found.items()}


def _halves(examples: Examples, size: int, keys: Keys) -> tuple[Places, Places]:
    """Indices of `size` examples from each half of every client's examples."""
    lengths, offsets = examples.lengths, examples.offsets
    order = examples.shuffled(np.arange(len(examples)), keys)
    n_support = (lengths + 1) // 2
    sizes = np.stack([n_support, lengths - n_support])
    within = np.arange(size) % np.maximum(1, sizes)[:, :, None]  # (2, clients, size)
    firsts = offsets[:-1] + np.stack([np.zeros_like(n_support), n_support])
    # A client that lacks a half is given any index: its weight in the loss is zero.
    places = np.minimum(firsts[:, :, None] + within, len(order) - 1)
    return order[places[0]], order[places[1]]


def _loss(
    network: Network,
    theta: dict[str, Tensor],
    examples: Examples,
    places: Places,
    is_fit: Bool[np.ndarray, "clients"],
) -> Tensor:
    """The sum over clients of each client's mean loss; their slopes stay separate."""
    inputs = examples.sides(np.arange(len(examples)), places.ravel())
    said = torch_twin.logits(network, theta, inputs)
    weights = np.broadcast_to(is_fit[:, None] / places.shape[1], places.shape)
    return torch_twin.cross_entropy(said, examples.labels[places], weights)
