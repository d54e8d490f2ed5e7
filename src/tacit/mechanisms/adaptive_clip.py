"""A clip that follows a quantile of the clients' norms, privately.

S     the clip of a round; public        γ        the share of updates left unclipped
b     1 if a norm is <= S, else 0        σ_b      the noise on the sum of the bits
z     what the accountant is told        z_D      the noise multiplier of the update

client  1  send the clipped update and b - 1/2, with b from before the clip
sum     2  add N(0, (z_D S)²) to the updates and N(0, σ_b²) to the bits
server  3  S ← S exp(-η (b̄ + 1/2 - γ)),  b̄ = noisy sum of bits / planned cohort size

A bit moves its sum by 1/2, so the two releases together are one Gaussian of
z⁻² = z_D⁻² + (2 σ_b)⁻².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.accounting.calibration import clipped_noise
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm, joint_norms
from tacit.mechanisms.gaussian import gaussian_event, standard_normal
from tacit.mechanisms.sum_mechanism import Bounded, add_noise
from tacit.tree import Array, Arrays, Dense, Tree
from tacit.wire_names import register

if TYPE_CHECKING:
    from tacit.accounting.dp_events import GaussianDpEvent

BIT = "is_within_clip"  # the leaf of the bits, in reports and totals


@register("clipped_sum_with_bits")
@dataclass(frozen=True)
class ClippedSumWithBits:
    """One round: the sum of clipped updates, and of bits that say who was within.

    Guarantee: both sums together are one Gaussian release of `noise_multiplier` for a
        whole user under zero_out; replace_one moves both by twice as much.
    Assumes: a trusted sum; `clip` is public (it came from noisy bits); sums are divided
        by the planned size.
    Source: Andrew, Thakkar, McMahan and Ramaswamy 2021, Algorithm 1 and Theorem 1.
    """

    clip: float
    noise_multiplier: float
    bit_noise: float

    def __post_init__(self) -> None:
        check.positive(clip=self.clip, bit_noise=self.bit_noise)
        check.positive(noise_multiplier=self.noise_multiplier)
        check.positive(update_multiplier=self.update_multiplier)  # is there one left?

    @property
    def update_multiplier(self) -> float:
        """z_D: a little above z, because the bits spend a part of the budget."""
        return clipped_noise(self.noise_multiplier, bits=self.bit_noise)

    def bound(self, tree: Tree) -> Tree:
        """Each client's clipped tree and its bit; zeros from a broken update."""
        return with_bits(tree, self.clip)

    def enforce(self, tree: Tree) -> Tree:
        """Reports that arrive: updates clipped again, bits kept between -1/2 and 1/2.

        A bit that is not finite counts as none.
        """
        return within_bits(tree, self.clip)

    def add(self, total: Arrays, key: Key) -> dict[str, Array]:
        """The noisy totals of updates and bits, in float64."""
        return add_noise(total, key, draw=standard_normal, scale=self.scale)

    def scale(self, leaf: str) -> float:
        """The standard deviation of the noise on a leaf."""
        return self.bit_noise if leaf == BIT else self.update_multiplier * self.clip

    def bounded(self, leaves: Sequence[str]) -> tuple[Bounded, ...]:
        """Two bounds: the clip for all leaves of the update, 1/2 for the bit."""
        update = tuple(name for name in leaves if name != BIT)
        moved = Bounded(update, self.clip, self.update_multiplier * self.clip)
        return moved, Bounded((BIT,), 0.5, self.bit_noise)

    @property
    def sensitivity(self) -> float:
        """The joint norm of update and bit; their noises differ, see `scale`."""
        return math.hypot(self.clip, 0.5)

    @property
    def event(self) -> GaussianDpEvent:
        """The event of both totals of a round, as one Gaussian."""
        return gaussian_event(self.noise_multiplier)


@register("adaptive_clip")
@dataclass(frozen=True)
class AdaptiveClip:
    """The rule by which the clip moves, and the limits that clients agreed to.

    Guarantee: that of `ClippedSumWithBits` in every round; moving the clip is
        post-processing of its noisy bits.
    Assumes: as `ClippedSumWithBits`; clients refuse a clip outside [least, most].
    Source: Andrew, Thakkar, McMahan and Ramaswamy 2021, Algorithm 1.
    """

    start: float
    least: float
    most: float
    noise_multiplier: float
    bit_noise: float  # 0.05 of the planned cohort size is usual
    quantile: float = 0.5
    rate: float = 0.2  # η of Andrew et al. 2021, whose experiments use it throughout

    def __post_init__(self) -> None:
        check.positive(least=self.least, rate=self.rate)
        check.at_least(self.least, most=self.most)
        check.fraction(quantile=self.quantile)
        self.at(self.start)  # refuses a start outside of the limits

    def at(self, clip: float) -> ClippedSumWithBits:
        """The mechanism of a round whose Broadcast says `clip`; refuses other clips."""
        if not self.least <= clip <= self.most:
            raise Refused(
                f"clip={clip} is not in [{self.least}, {self.most}], which clients "
                "agreed to at enrolment"
            )
        return ClippedSumWithBits(clip, self.noise_multiplier, self.bit_noise)

    def following(self, clip: float, total: Arrays, *, planned: float) -> float:
        """The next round's clip, from this round's noisy total."""
        check.positive(planned=planned)
        within = float(total[BIT]) / planned + 0.5  # below 0, above 1: noise, refusals
        step = -self.rate * (within - self.quantile)
        moved = clip * math.exp(min(step, 700.0))  # larger ones overflow
        return min(max(moved, self.least), self.most)


def with_bits(
    tree: Tree, clip: float, *, scales: Float64[np.ndarray, "clients"] | None = None
) -> Tree:
    """Line 1: trees clipped to `clip`, and a bit each that says who was within.

    With `scales`, one per client, clip and bit are both smaller by that factor; what
    the bit says is still whether the norm is within the whole clip.
    """
    if BIT in tree.leaves:
        raise BadValue(f"leaf '{BIT}' is the mechanism's own; rename the update's")
    share = np.ones(len(tree)) if scales is None else scales
    norms = joint_norms(tree)
    # From the norms before the clip: after it, every bit would be 1.
    bits = np.where(np.isfinite(norms), (norms <= clip) - 0.5, 0.0) * share
    return Tree({**clip_by_norm(tree, clip * share).leaves, BIT: Dense(bits)})


def within_bits(tree: Tree, clip: float, *, scale: float = 1.0) -> Tree:
    """Reports that arrive, bounded once more; a bit that is not finite counts as 0."""
    finite = np.nan_to_num(tree[BIT], posinf=0.0, neginf=0.0)
    bits = np.clip(finite, -0.5 * scale, 0.5 * scale)
    update = Tree({n: leaf for n, leaf in tree.leaves.items() if n != BIT})
    return Tree({**clip_by_norm(update, clip * scale).leaves, BIT: Dense(bits)})
