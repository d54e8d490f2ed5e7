"""The papers' own protections, as printed; reachable from `mode = "paper"` alone.

    PublishedVotes      FMF-LDP: votes with replacement, each scaled by d
    PublishedClippedSum DP-PrivRec: Algorithm 2, its bit taken after the clip

What their noise is worth is computed like any other; what the paper says it is worth
stands beside it as `published_epsilon`, and is never called epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tacit import check
from tacit.accounting.published import wbk_epsilon
from tacit.errors import Refused
from tacit.keys import Keys
from tacit.mechanisms import published
from tacit.mechanisms.adaptive_clip import BIT
from tacit.mechanisms.published.privrec import PublishedSum
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.budgets import given
from tacit.privacy.central_gaussian import CLIP, told_clip
from tacit.privacy.guarantees import sum_adjacency, summed
from tacit.privacy.local_bits import LocalBits
from tacit.privacy.privacy import Codes, Privacy, Slots, release
from tacit.release import Adjacency, Release, Unit, View
from tacit.sampling import Everyone, FixedSize
from tacit.transport.messages import Layout, PublicSlot, Slot
from tacit.tree import Arrays, Tree
from tacit.wire_names import register

_REASONS = {  # of Algorithm 2, by what a neighbouring data set is
    Adjacency.REPLACE_ONE: "Gaussian noise on sums of clipped reports, as in Algorithm "
    "2; every client's bit is 1 (docs/errata/privrec.md)",
    Adjacency.ZERO_OUT: "Gaussian noise on sums of clipped reports and bits, as in "
    "Algorithm 2; the bits reveal the number of reports (docs/errata/privrec.md)",
}


@register("published_votes")
@dataclass(frozen=True)
class PublishedVotes(LocalBits):
    """FMF-LDP's votes: with replacement, so that their sum is k times the mean.

    Their bits fall by whole numbers as those of `LocalBits` do, so that what is proven
    of them holds for the bytes that a relay, the paper's proxy, mixes.
    Source: Minto et al. 2021, Algorithms 1 and 2, Equation 9.
    """

    votes: int | None = 100  # the k of the paper's experiments
    kind = published.PublishedBits

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """The votes, with the paper's own figure for one epoch beside ours."""
        # The paper's figure is that of one epoch: k votes of epsilon each.
        figure = given(self.votes, "votes") * given(self.epsilon, "epsilon")
        [one] = super().releases(plan, phases)
        cells = {
            name: replace(cell, published_epsilon=figure)
            for name, cell in one.cells.items()
        }
        return (replace(one, cells=cells),)


@register("published_clipped_sum")
@dataclass(frozen=True)
class PublishedClippedSum(Privacy):
    """DP-PrivRec's Algorithm 2 as printed, except that its bound stops at `least_clip`.

    Source: Wang et al. 2021, Algorithm 2, lines 8 to 11, 22 and 23; Section 4.4.
    """

    noise_multiplier: float = 1.0  # z
    clip: float | None = None  # the first S; None: the method's own
    quantile: float = 0.5  # gamma
    clip_rate: float = 0.2  # alpha4
    balance: float = 0.7  # h: the share of the budget that the bit gets
    least_clip: float = 1e-3  # our floor: the paper has none

    def __post_init__(self) -> None:
        check.positive(least_clip=self.least_clip)
        if self.clip is not None:
            check.positive(clip=self.clip)
        self._clipping  # noqa: B018 - refuses what cannot be

    # account

    def calibrated(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> Self:
        """The same value: its noise is given. Refuses cohorts of varying size."""
        self._check_cohorts(plan)
        return self

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """What its noise is worth, and beside it what the paper says it is."""
        self._check_cohorts(plan)
        [phase] = phases
        adjacency = sum_adjacency(plan)
        event = self._clipping.event(phase.step, adjacency=adjacency)
        cells = dict(summed(plan, event, reason=_REASONS[adjacency]))
        name = Unit.USER, View.RELEASE
        figure = self._published_epsilon(plan)
        cells[name] = replace(cells[name], published_epsilon=figure)
        return (release(plan, f"noisy {phase.what}, summed over clients", cells),)

    # client, channel and server

    def layout(self, phase: Phase, slots: Slots) -> Layout:
        """The leaves of the update, and its bit."""
        return Layout({**slots, BIT: Slot("float64", ())})

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """Lines 22 and 23: the update and its bit, clipped together."""
        return self.mechanism(phase, told).bound(tree)

    def mechanism(self, phase: Phase, told: Arrays) -> PublishedSum:
        """Lines 8 to 10, 22 and 23, at the bound that everyone was sent."""
        clip = told_clip(told)
        if clip < self.least_clip:
            raise Refused(f"clip={clip} must be at least {self.least_clip}, as agreed")
        return PublishedSum(self._clipping, clip, step=phase.step)

    def told(self, phase: Phase, memory: Arrays) -> Arrays:
        """The clipping bound S of the next round."""
        start = phase.bound if self.clip is None else self.clip
        return {CLIP: memory.get(CLIP, np.array(start))}

    def told_shape(self, phase: Phase) -> Mapping[str, PublicSlot]:
        """One number for the bound S, at the floor or above."""
        return {CLIP: PublicSlot("float64", (), least=self.least_clip)}

    def after(
        self, phase: Phase, told: Arrays, total: Arrays, *, planned: float
    ) -> Arrays:
        """Line 11: the next bound S, with the floor that the paper lacks."""
        moved = self.mechanism(phase, told).next_clip(total, planned=planned)
        return {CLIP: np.array(max(self.least_clip, moved))}

    # details

    @property
    def _clipping(self) -> published.PublishedClipping:
        return published.PublishedClipping(
            self.noise_multiplier,
            balance=self.balance,
            rate=self.clip_rate,
            quantile=self.quantile,
        )

    def _published_epsilon(self, plan: Plan) -> float | None:
        """The paper's bound with its count of rounds · M; none for whole cohorts."""
        size, users = int(plan.cohort_size), plan.population
        if plan.delta is None or size >= users:
            return None
        return wbk_epsilon(
            size / users,
            noise_multiplier=self.noise_multiplier,
            count=plan.rounds * size,
            delta=plan.delta,
        )

    def _check_cohorts(self, plan: Plan) -> None:
        if not isinstance(plan.sampler, FixedSize | Everyone):
            raise Refused(
                "mechanism = 'published' needs cohorts of a fixed size and the plan "
                f"has {type(plan.sampler).__name__}; use fixed_size, or mode = 'sound'"
            )
