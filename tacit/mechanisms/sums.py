"""What a mechanism of sums is.

device    bound(update)       -> a contribution that moves the sum by a known amount
channel   enforce(reports)    -> the same bound for devices that lie
          add(total, key)     -> the noisy sum; all that the server sees
account   sensitivity, event  -> what one round's noisy sum costs one person

Sums are divided by the *planned* size of the cohort, after the noise, and that is free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tacit.keys import Key
from tacit.tree import Array, Arrays, Tree

if TYPE_CHECKING:
    from dp_accounting import DpEvent


class SumMechanism(Protocol):
    """Bounds contributions, adds noise to their sum, and knows what that costs."""

    def bound(self, tree: Tree) -> Tree:
        """Each client's contribution; axis 0 is the client."""
        ...

    def enforce(self, tree: Tree) -> Tree:
        """Contributions as they arrived, bounded once more; honest ones stay."""
        ...

    def add(self, total: Arrays, key: Key) -> dict[str, Array]:
        """The noisy total; the noise depends on the key and on nothing else."""
        ...

    def scale(self, leaf: str) -> float:
        """The scale of the noise on each coordinate of a leaf."""
        ...

    @property
    def sensitivity(self) -> float:
        """The largest norm of a contribution: the sum's change if it is zeroed out."""
        ...

    @property
    def event(self) -> DpEvent:
        """What one noisy total costs; rounds and sampling are composed by a sampler."""
        ...


Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


def add_noise(
    total: Arrays, key: Key, *, draw: Draw, scale: Callable[[str], float]
) -> dict[str, Array]:
    """Add scaled draws to every coordinate, in float64.

    Each leaf has a stream of its own, addressed by its name: no order of leaves and no
    value of the total changes the noise.
    """
    return {
        name: _noisy(value, key.at(name).generator(), draw, scale(name))
        for name, value in total.items()
    }


def _noisy(
    value: Array, generator: np.random.Generator, draw: Draw, scale: float
) -> Array:
    noise = np.asarray(draw(generator, value.shape), np.float64)
    return np.asarray(scale * noise + value)
