"""The server's step of Reptile: a share of the way to where clients went.

    θ₀ ← θ₀ + α (mean of θ_τ - θ₀)

Source: Nichol, Achiam and Schulman 2018, "On First-Order Meta-Learning Algorithms".
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit import check
from tacit.aggregation.server_optimizers import Stepped
from tacit.tree import Array, Arrays


@dataclass(frozen=True)
class Reptile:
    """A `ServerOptimizer` that remembers nothing and needs no torch.

    As with all of them the gradient is subtracted: it is θ₀ minus the clients' mean.
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        check.positive(rate=self.rate)

    def start(self, weights: Arrays) -> dict[str, Array]:
        """Nothing to remember."""
        return {}

    def step(
        self, weights: Arrays, memory: Arrays, gradient: Arrays, *, epoch: int = 0
    ) -> Stepped:
        """One step."""
        moved = {
            name: (value - self.rate * gradient[name]).astype(value.dtype)
            for name, value in weights.items()
        }
        return moved, {}
