"""How a client trains: passes, mini-batches, learning rate, pull to the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tacit import check

Head = Literal["sigmoid", "linear"]


@dataclass(frozen=True)
class Schedule:
    """Stochastic gradient descent from weights that a client is pulled back to.

    The loss of a mini-batch is its mean cross-entropy ("sigmoid"), or half its mean
    squared error ("linear"), plus μ/2 |θ - θ₀|² or, not squared, μ/2 |θ - θ₀|.
    """

    epochs: int = 1
    batch: int = 32
    rate: float = 0.1
    pull: float = 0.0  # μ
    is_squared: bool = True  # whether the distance to the start is squared
    head: Head = "sigmoid"

    def __post_init__(self) -> None:
        check.not_negative(epochs=self.epochs)
        check.count(batch=self.batch)
        check.positive(rate=self.rate)
        check.not_negative(pull=self.pull)
        check.one_of(("sigmoid", "linear"), head=self.head)
