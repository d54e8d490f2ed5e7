"""DP-PrivRec (Wang et al. 2021): the adaptive clipping bound, as printed."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from tacit import check
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT
from tacit.mechanisms.clipping import clip_by_norm, joint_norms
from tacit.mechanisms.gaussian import standard_normal
from tacit.mechanisms.sum_mechanism import add_noise
from tacit.release import Adjacency
from tacit.tree import Array, Arrays, Dense, Tree
from tacit.wire_names import register

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@register("published_clipping")
@dataclass(frozen=True)
class PublishedClipping:
    """DP-PrivRec's adaptive clipping bound S, and its two noises.

    Noises are those of sums over a cohort of M: the paper's, of means, times M.

    Guarantee: `event` for a round.
    Assumes: a trusted aggregator; under replace_one a report from every member of the
        cohort. The bit is taken after clipping, so it is 1 for everyone; the bound
        falls by rate · (1 - quantile) per round, below zero in the end.
    Source: Wang et al. 2021, Algorithm 2, lines 8 to 11, 22 and 23; section 2.3.4.
    """

    noise_multiplier: float  # z
    _: KW_ONLY
    balance: float  # h, the share of the budget that the bit gets
    rate: float  # alpha4
    quantile: float  # gamma

    def __post_init__(self) -> None:
        check.positive(noise_multiplier=self.noise_multiplier, rate=self.rate)
        check.fraction(balance=self.balance, quantile=self.quantile)

    def bits(
        self, norms: Float[np.ndarray, "clients"], *, bound: float
    ) -> Bool[np.ndarray, "clients"]:
        """Lines 22 and 23: clip, then ask whether the norm is within the bound.

        It is for everyone. An update that is not finite is clipped to zero, which is
        within the bound as well.
        """
        return np.fmin(norms, bound) <= bound

    def update_sigma(self, bound: float) -> float:
        """The noise on the sum of updates, line 8."""
        return 2 * bound * self.noise_multiplier * math.sqrt(1 / (1 - self.balance))

    @property
    def bit_sigma(self) -> float:
        """The noise on the sum of bits, line 10."""
        return 2 * self.noise_multiplier * math.sqrt(1 / self.balance)

    def next_bound(self, bound: float, *, noisy_mean: float) -> float:
        """S - alpha4 (beta - gamma), line 11."""
        return bound - self.rate * (noisy_mean - self.quantile)

    def event(self, step: float, *, adjacency: Adjacency) -> DpEvent:
        """What a round costs a member of its cohort, at the server's `step` (alpha3).

        Line 9 scales the update by `step` and not the noise, so a larger step gets
        relatively less of it. The bit is 1 whatever a user holds: an exchange of users
        leaves the sum of bits as it was, and only a report that is missing moves it.
        """
        from tacit.accounting.dp_events import GaussianDpEvent

        check.positive(step=step)
        update = step / self.update_sigma(1.0)  # one clip over its noise
        bit = 1.0 / self.bit_sigma if adjacency is Adjacency.ZERO_OUT else 0.0
        # The paper's noise is over 2 S / M, the distance of an exchange; the accountant
        # doubles by itself.
        return GaussianDpEvent(1.0 / math.hypot(update, bit))


@register("published_sum")
@dataclass(frozen=True)
class PublishedSum:
    """One round of Algorithm 2 as a mechanism of sums.

    The server takes alpha3 times the noisy mean, so the noise that line 9 adds outside
    that product is divided by alpha3 here: the same model comes out.

    Guarantee: `event` for a round, under zero_out; under replace_one the cost is less,
        see `PublishedClipping.event`.
    Assumes: a trusted sum, divided by the planned size of the cohort.
    Source: Wang et al. 2021, Algorithm 2, lines 8 to 11, 22 and 23.
    """

    clipping: PublishedClipping
    clip: float  # S
    _: KW_ONLY
    step: float  # alpha3

    def __post_init__(self) -> None:
        check.positive(clip=self.clip, step=self.step)

    def bound(self, tree: Tree) -> Tree:
        """Lines 22 and 23: clipped, and a bit that is 1 for every update."""
        bits = self.clipping.bits(joint_norms(tree), bound=self.clip)
        clipped = clip_by_norm(tree, self.clip)
        return Tree({**clipped.leaves, BIT: Dense(bits.astype(np.float64))})

    def enforce(self, tree: Tree) -> Tree:
        """Reports that arrive: updates clipped again, bits kept between 0 and 1."""
        bits = np.clip(np.nan_to_num(tree[BIT], posinf=0.0, neginf=0.0), 0.0, 1.0)
        update = Tree({n: leaf for n, leaf in tree.leaves.items() if n != BIT})
        return Tree({**clip_by_norm(update, self.clip).leaves, BIT: Dense(bits)})

    def add(self, total: Arrays, key: Key) -> dict[str, Array]:
        """The noisy totals of updates and bits, in float64."""
        return add_noise(total, key, draw=standard_normal, scale=self.scale)

    def scale(self, leaf: str) -> float:
        """The standard deviation of the noise on each number of a leaf's total."""
        if leaf == BIT:
            return self.clipping.bit_sigma
        return self.clipping.update_sigma(self.clip) / self.step

    def next_clip(self, total: Arrays, *, planned: float) -> float:
        """Line 11, from the noisy bits of M = `planned` clients; may be below zero."""
        mean = float(total[BIT]) / planned
        return self.clipping.next_bound(self.clip, noisy_mean=mean)

    @property
    def sensitivity(self) -> float:
        """The joint norm of update and bit; their noises differ, see `scale`."""
        return math.hypot(self.clip, 1.0)

    @property
    def event(self) -> DpEvent:
        """The event of both totals of a round, as one, for a report that is missing."""
        return self.clipping.event(self.step, adjacency=Adjacency.ZERO_OUT)
