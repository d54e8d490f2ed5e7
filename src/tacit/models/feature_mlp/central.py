"""The same network trained on everybody's examples at once; by torch, with Adam.

A federated method is compared with it. It needs the extra `train`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.keys import Key
from tacit.models.deterministic_torch import deterministic, load_torch
from tacit.models.feature_mlp import torch_twin
from tacit.models.feature_mlp.examples import Examples
from tacit.models.feature_mlp.network import Network
from tacit.tree import Array, Arrays

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class CentralTraining:
    """How a network is trained on pooled examples: passes, batches and Adam's rate."""

    epochs: int = 5
    batch: int = 1024  # examples of many users; no limit of a device applies here
    rate: float = 2e-3

    def __post_init__(self) -> None:
        check.count(epochs=self.epochs, batch=self.batch)
        check.positive(rate=self.rate)

    @deterministic()
    def learnt(
        self, network: Network, start: Arrays, examples: Examples, *, key: Key
    ) -> dict[str, Array]:
        """The weights after the last pass."""
        torch = load_torch()
        # The twin wants a client axis: the pooled examples are one client's.
        theta = torch_twin.tensors({n: value[None] for n, value in start.items()})
        adam = torch.optim.Adam(theta.values(), lr=self.rate)
        for some in self._batches(len(examples.items), key):
            slopes = _slopes(network, theta, examples, some)
            for name, value in theta.items():
                value.grad = slopes[name]
            adam.step()
        return {name: value.detach().numpy()[0] for name, value in theta.items()}

    def _batches(self, n: int, key: Key) -> Iterator[Int64[np.ndarray, "some"]]:
        for epoch in range(self.epochs):
            order = key.at("order", epoch).generator().permutation(n)
            for first in range(0, n, self.batch):
                yield order[first : first + self.batch]


def _slopes(
    network: Network,
    theta: Mapping[str, Tensor],
    examples: Examples,
    some: Int64[np.ndarray, "some"],
) -> dict[str, Tensor]:
    """The slopes of the mean loss over some examples, whoever they belong to."""
    owners = np.searchsorted(examples.offsets, some, side="right") - 1
    said = torch_twin.logits(network, theta, examples.sides(owners, some))
    each = np.full((1, len(some)), 1 / len(some))  # weights that make the sum a mean
    loss = torch_twin.cross_entropy(said, examples.labels[None, some], each)
    return torch_twin.slopes(loss, theta, keeps_graph=False)
