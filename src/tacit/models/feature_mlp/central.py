"""The same network trained on everybody's examples in one place; by torch, with Adam.

What a federated method is held against. Needs the extra `train`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.keys import Key
from tacit.models.feature_mlp import torch_twin
from tacit.models.feature_mlp.examples import Examples
from tacit.models.feature_mlp.network import Network
from tacit.tree import Array, Arrays

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class CentralTraining:
    """Passes over pooled examples."""

    epochs: int = 5
    batch: int = 1024
    rate: float = 2e-3

    def __post_init__(self) -> None:
        check.count(epochs=self.epochs, batch=self.batch)
        check.positive(rate=self.rate)

    def learnt(
        self, network: Network, start: Arrays, examples: Examples, *, key: Key
    ) -> dict[str, Array]:
        """The weights after the last pass."""
        import torch

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
    """Of the mean loss of some examples, whosever they are."""
    owners = np.searchsorted(examples.offsets, some, side="right") - 1
    said = torch_twin.logits(network, theta, examples.sides(owners, some))
    share = np.full((1, len(some)), 1 / len(some))
    loss = torch_twin.cross_entropy(said, examples.labels[None, some], share)
    return torch_twin.slopes(loss, theta, keeps_graph=False)
