"""The protections that PrivateRec's paper compares, as printed.

    PublishedAttentionNoise  PrivateRec: noise inside the model and on the labels; the
                             gradient leaves as it is, and nothing is promised
    PublishedGradientNoise   DP-FedRec: every client clips its gradient and adds noise
                             of the size that is claimed to be enough

Both claim (epsilon, delta) for one click of one user and one round. What is proven, if
anything, stands beside the claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool
from numpy.typing import ArrayLike

from tacit.aggregation.mean import Aggregator, Mean
from tacit.codes import Code
from tacit.errors import Refused
from tacit.keys import Keys
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.published.privaterec import (
    PublishedAttention,
    PublishedGradient,
    PublishedLabels,
)
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.guarantees import local, unprotected
from tacit.privacy.privacy import Codes, Privacy, Slots, parts_of, release
from tacit.privacy.unprotected import Unprotected
from tacit.release import Cells, Release, Unit
from tacit.transport.channels import Each, Sum, Unlinked
from tacit.transport.messages import Layout, Slot
from tacit.tree import Arrays, Dense, Tree
from tacit.wire_names import register

_AS_PRINTED = 1.0  # to which line 8 of Algorithm 2 clips: a softmax is never longer


@register("published_attention_noise")
@dataclass(frozen=True)
class PublishedAttentionNoise(Unprotected):
    """PrivateRec's noise: on the attention over interests, and on the label.

    A method draws it with `attention` and `labels` while it computes its update, which
    then leaves unchanged.

    Source: Liu et al. 2022, Algorithm 2, lines 4, 8 and 9; Algorithm 3, lines 16 to 18.
    """

    epsilon: float = 10.0  # ε_t, claimed for one click and one round
    theta: float = 1.0  # θ: the sensitivity that the noise is made for
    padding: float = 0.5  # p
    gaussian_delta: float = 0.0  # δ_t of Gaussian noise; 0: Laplace, as in its tables

    def __post_init__(self) -> None:
        _ = self.attention(2), self.labels(1)  # refuse what cannot be

    def attention(self, interests: int) -> PublishedAttention:
        """The noise on weights of so many interests, B."""
        return PublishedAttention(
            self.epsilon,
            interests,
            theta=self.theta,
            delta=self.gaussian_delta,
            padding=self.padding,
            clip=_AS_PRINTED,
        )

    def labels(self, negatives: int) -> PublishedLabels:
        """The permutation of labels among a click and so many negatives, k."""
        return PublishedLabels(self.epsilon, negatives)

    def padded(self, lengths: ArrayLike, keys: Keys) -> Bool[np.ndarray, "total"]:
        """Which interactions are replaced by the anonymous news, end to end."""
        if not self.padding:
            return np.zeros(int(np.sum(lengths)), bool)
        return Padding(self.padding).pad(lengths, keys)

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """The gradients, for which nothing holds; beside it what the paper claims."""
        [phase] = phases
        reason = (
            f"{phase.what} are computed from the history itself, the click is always "
            f"a candidate, and rounds add up; {self._alone} (docs/errata/privaterec.md)"
        )
        cells = _with_claim(unprotected("raw_history", reason), self.epsilon)
        return (release(plan, f"{phase.what}, one of each client", cells),)

    @property
    def _alone(self) -> str:
        """What the noise on the attention would be worth if nothing else left."""
        from tacit.accounting.epsilon import epsilon

        # Any number of interests: vectors of length 1 are 2 apart in L1, √2 in L2.
        event, delta = self.attention(2).event, self.gaussian_delta
        found = epsilon(event, delta=delta, adjacency="replace_one").value
        return (
            f"the noise on the attention alone would be worth epsilon {found:.4g} for "
            f"the user and one round (replace_one, delta {delta:g})"
        )


@register("published_gradient_noise")
@dataclass(frozen=True)
class PublishedGradientNoise(Privacy):
    """DP-FedRec's noise: each client clips its gradient to theta and adds noise.

    Source: Liu et al. 2022, Section 4: "gradient clipping norm θ = 0.005", Laplace.
    """

    epsilon: float = 10.0  # ε_t, claimed for one click and one round
    theta: float = 0.005
    gaussian_delta: float = 0.0  # of Gaussian noise; 0: Laplace, as in its tables

    def __post_init__(self) -> None:
        _ = self._mechanism  # refuses what cannot be

    # account

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """What the noise is worth for a whole user, and beside it the claim."""
        reason = (
            "Laplace noise on clipped gradients, accounted number by number in zCDP "
            "(Bun and Steinke 2016, docs/errata/privaterec.md)"
        )
        if self.gaussian_delta:
            reason = "Gaussian noise on clipped gradients"
        cells = local(plan, self._mechanism.event, reason=reason)
        cells = {name: c.assuming(Code("float_noise")) for name, c in cells.items()}
        cells = _with_claim(cells, self.epsilon)
        parts = parts_of(plan, phases, "noisy {}")
        what = " and ".join(phase.what for phase in phases)
        return (release(plan, f"noisy {what}", cells, parts=parts),)

    # client

    def layout(self, phase: Phase, slots: Slots) -> Layout:
        """The same leaves, written out: noise has no factors."""
        return Layout({n: Slot(slot.dtype, slot.shape) for n, slot in slots.items()})

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """The clipped gradient with its noise."""
        noisy = self._mechanism.privatize(tree, keys).leaves
        own = {name: leaf.dense().values.dtype for name, leaf in tree.leaves.items()}
        # Rounding comes after the noise and costs nothing.
        return Tree(
            {n: Dense(leaf.dense().values.astype(own[n])) for n, leaf in noisy.items()}
        )

    # server

    def aggregator(self, wanted: Aggregator) -> Aggregator:
        """A sum, over whichever channel it is delivered."""
        if not isinstance(wanted, Mean):
            raise Refused(
                f"{type(wanted).__name__} compares reports, and these are nearly all "
                "noise; use mechanism = 'central' or 'none'"
            )
        return Mean((Each, Unlinked, Sum))

    def variance(self, phase: Phase, *, users: float, size: int) -> float:
        """The variance of the noise on each number in a sum of `users` reports."""
        one = self._mechanism.noise**2
        return users * (one if self.gaussian_delta else 2 * one)

    @property
    def _mechanism(self) -> PublishedGradient:
        return PublishedGradient(
            self.epsilon, theta=self.theta, delta=self.gaussian_delta
        )


def _with_claim(cells: Cells, epsilon: float) -> Cells:
    """The same cells; those of one interaction carry the paper's own figure."""
    return {
        (unit, view): replace(cell, published_epsilon=epsilon)
        if unit is Unit.ITEM
        else cell
        for (unit, view), cell in cells.items()
    }
