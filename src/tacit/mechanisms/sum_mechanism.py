"""What a mechanism of sums is.

client    bound(update)       -> a contribution that moves the sum by a known amount
channel   enforce(reports)    -> the same bound for clients that lie
          add(total, key)     -> the noisy sum; all that the server sees
account   sensitivity, event  -> what one round's noisy sum costs one user

Sums are divided by the *planned* size of the cohort, after the noise, and that is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from tacit.buffers import empty
from tacit.keys import Key
from tacit.side_by_side import side_by_side
from tacit.tree import Array, Arrays, Tree

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True)
class Bounded:
    """Leaves of a report that share one bound, and the noise on their sum."""

    leaves: tuple[str, ...]
    bound: float  # the largest joint norm of a report
    deviation: float  # of the noise on each number of the sum
    has_smaller: bool = False  # some clients agreed to a smaller bound of their own


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


@runtime_checkable
class GaussianMechanism(Protocol):
    """A mechanism with Gaussian noise, which a release draws in whole numbers."""

    def bounded(self, leaves: Sequence[str]) -> tuple[Bounded, ...]:
        """The bounds of a report with these leaves, and the noise on each sum."""
        ...


STREAM = 2**20  # numbers that one stream gives; longer leaves have several
_AT_ONCE = 2**15  # a quarter of a megabyte of them, which stays in a cache

Fill = Callable[[Array], Any]  # writes the next draws into an array
AddTo = Callable[[float, Array, Array], Any]  # scale; values; where the sum goes
Draw = Callable[[Key, int], AddTo]  # of a stream, and how many it will be asked for


def add_noise(
    total: Arrays, key: Key, *, draw: Draw, scale: Callable[[str], float]
) -> dict[str, Array]:
    """Add scaled draws to every coordinate, in float64; a float32 total stays one.

    Each leaf has a stream of its own, addressed by its name: no order of leaves and no
    value of the total changes the noise. Long leaves have several, drawn side by side.
    """
    noisy = {name: empty(np.shape(v), _kept(v)) for name, v in total.items()}
    blocks = [
        _Block(key.at(name), number, draw, scale(name), np.asarray(value), noisy[name])
        for name, value in total.items()
        for number in range(-(-np.size(value) // STREAM))
    ]
    if len(blocks) <= len(total):
        for block in blocks:
            block.fill()
    else:  # numpy draws without the interpreter's lock
        side_by_side(_Block.fill, blocks)
    return noisy


@dataclass(frozen=True, eq=False)
class _Block:
    """The run of a leaf's numbers that one stream of noise covers."""

    key: Key
    number: int
    draw: Draw
    scale: float
    value: Array
    out: Array

    def fill(self) -> None:
        rows = slice(self.number * STREAM, (self.number + 1) * STREAM)
        key = self.key.at("stream", self.number) if self.number else self.key
        value, out = self.value.reshape(-1)[rows], self.out.reshape(-1)[rows]
        self.draw(key, len(out))(self.scale, value, out)


def filled(fill: Fill) -> AddTo:
    """A function that adds what `fill` draws, some numbers at a time."""

    def add(scale: float, values: Array, out: Array) -> None:
        noise = np.empty(min(_AT_ONCE, len(out)))
        for start in range(0, len(out), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            part = noise[: len(out[some])]
            fill(part)
            part *= scale
            part += values[some]
            out[some] = part

    return add


def _kept(total: Array) -> type[np.generic]:
    """The type of a noisy total; it follows from the layout, so it says nothing.

    Rounding what noise has protected is free. That the total was rounded to this type
    before is not: it is one of the things a simulation does not cover.
    """
    return np.float32 if np.asarray(total).dtype == np.float32 else np.float64
