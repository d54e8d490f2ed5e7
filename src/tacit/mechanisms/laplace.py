"""Laplace noise on a trusted sum, bounded in L1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit import check
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_l1_norm
from tacit.mechanisms.sum_mechanism import AddTo, add_noise, filled
from tacit.tree import Array, Arrays, Tree
from tacit.wire_names import register

if TYPE_CHECKING:
    from tacit.accounting.dp_events import LaplaceDpEvent


@register("laplace_sum")
@dataclass(frozen=True)
class LaplaceSum:
    """The sum of updates clipped in L1, with Laplace noise on every coordinate.

    For a few counts, where pure DP matters; over many coordinates the Gaussian wins.

    Guarantee: one round is pure `epsilon` for a whole user under zero_out, twice that
        under replace_one.
    Assumes: a trusted sum; `clip` is public; the sum is divided by the planned size.
        Noise is float64, so its low bits are not covered (Mironov 2012).
    Source: Dwork, McSherry, Nissim and Smith 2006, Proposition 1.
    """

    clip: float
    epsilon: float

    def __post_init__(self) -> None:
        check.positive(clip=self.clip)
        check.positive(
            epsilon=self.epsilon,
            remedy="use mechanism = 'none' to train without protection",
        )

    def bound(self, tree: Tree) -> Tree:
        """Each client's whole tree, clipped jointly in L1; dense."""
        return clip_by_l1_norm(tree, self.clip)

    def enforce(self, tree: Tree) -> Tree:
        """Reports clipped once more as they arrive: a client may lie."""
        return self.bound(tree)

    def add(self, total: Arrays, key: Key) -> dict[str, Array]:
        """The noisy total, in float64."""
        return add_noise(total, key, draw=_standard_laplace, scale=self.scale)

    def scale(self, leaf: str) -> float:
        """The scale of the noise on every leaf; √2 times that is its deviation."""
        return self.clip / self.epsilon

    @property
    def sensitivity(self) -> float:
        """The largest L1 norm of a contribution, which is the clip."""
        return self.clip

    @property
    def event(self) -> LaplaceDpEvent:
        """The event of one noisy total, for a whole user."""
        from tacit.accounting.dp_events import LaplaceDpEvent

        # Its multiplier: scale over sensitivity.
        return LaplaceDpEvent(1 / self.epsilon)


def _standard_laplace(key: Key, _n: int) -> AddTo:
    generator = key.generator()

    def fill(out: Array) -> None:
        out[:] = generator.laplace(size=len(out))

    return filled(fill)
