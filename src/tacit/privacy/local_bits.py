"""Every client votes about a few coordinates of its report, one randomised bit each.

    k, eps   votes per report, and what each may say
    d        numbers of a report, all of one leaf

    client   1  draw k coordinates without looking at anything      `coordinates`
             2  send a randomised bit for each: ±(coordinate + 1)    `report`
    server   3  count votes in whole numbers, then scale: the sum, estimated

A relay may cut a report between its votes and mix them. The method computes only the
coordinates that were drawn: its update has `coordinates` and the `values` there.

Source: Minto, Haller, Haddadi and Livshits 2021, Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from tacit import check
from tacit.aggregation.mean import Aggregator
from tacit.aggregation.votes import VOTES, Votes
from tacit.errors import Refused
from tacit.keys import Keys
from tacit.mechanisms.one_bit import Coordinates, randomized_bits
from tacit.mechanisms.published.fmf_ldp import PublishedBits
from tacit.mechanisms.spread_bits import SpreadBits
from tacit.phase import Phase, check_clip
from tacit.plans import Plan
from tacit.privacy.budgets import LocalBudget, given
from tacit.privacy.guarantees import shuffled
from tacit.privacy.privacy import Codes, Legal, Privacy, Slots, release
from tacit.release import Release
from tacit.transport.channels import Delivery, RoundContext
from tacit.transport.messages import Layout, Slot
from tacit.tree import Array, Arrays, Tree
from tacit.wire_names import register

COORDINATES, VALUES = "coordinates", "values"  # the leaves of an update


@register("local_bits")
@dataclass(frozen=True)
class LocalBits(Privacy):
    """Reports k randomised bits per participation, each about one coordinate.

    Leave `epsilon` (and `votes`) out to have them follow from the plan's target.
    """

    is_releasable: ClassVar[bool] = True

    epsilon: float | None = None  # of one vote
    votes: int | None = None  # k
    clip: float | None = None  # of one coordinate; None: the method's own
    kind: ClassVar[type[SpreadBits] | type[PublishedBits]] = SpreadBits

    def __post_init__(self) -> None:
        for name in ("epsilon", "clip"):
            if getattr(self, name) is not None:
                check.positive(**{name: getattr(self, name)})
        if self.votes is not None:
            check.count(votes=self.votes)

    # account

    def calibrated(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> Self:
        """A copy with the votes of least noise and the largest epsilon per vote."""
        check_clip(phases, clip=self.clip)
        if self.epsilon is not None:
            return self
        budget = LocalBudget(plan)
        votes = budget.votes() if self.votes is None else self.votes
        return replace(self, votes=votes, epsilon=budget.epsilon(messages=votes))

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """One release of all votes; each vote is amplified where a relay mixes."""
        check_clip(phases, clip=self.clip)
        [phase] = phases
        cells = shuffled(
            plan,
            given(self.epsilon, "epsilon"),
            messages=given(self.votes, "votes"),
            reason="randomised bits (Minto et al. 2021, Theorem 3), composed over bits "
            "and rounds",
        )
        return (release(plan, f"randomised bits of {phase.what}", cells),)

    # client

    def coordinates(self, size: int, keys: Keys) -> Coordinates:
        """Line 1: which of `size` coordinates clients are going to look at."""
        return self._bits(size).coordinates(keys)

    def layout(self, phase: Phase, slots: Slots) -> Layout:
        """One number per vote; a relay may cut between them."""
        [report] = slots.values()
        count = self._bits(math.prod(report.shape)).count  # refuses too many votes
        return Layout({VOTES: Slot("int32", (count,))}, split_axis=0)

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """Line 2: Algorithm 1, lines 3 and 5 to 10."""
        said = randomized_bits(
            tree[VALUES],
            keys,
            epsilon=given(self.epsilon, "epsilon"),
            bound=phase.bounded_by(self.clip),
        )
        signs = said.view(np.int8) * np.int8(2) - np.int8(1)
        # Plus one, because coordinate 0 could not carry a sign.
        return Tree.dense(votes=signs * (tree[COORDINATES] + np.int32(1)))

    def empty(self, slots: Slots, n: int, keys: Keys) -> Tree:
        """Zeros at coordinates that are drawn as in any report."""
        [report] = slots.values()
        at = self.coordinates(math.prod(report.shape), keys)
        return Tree.dense(coordinates=at, values=np.zeros(at.shape))

    # server

    def legal(self, messages: Tree, phase: Phase, *, slots: Slots) -> Legal:
        """Those that vote about a coordinate: a bit for one of them, and no more."""
        [report] = slots.values()
        most, votes = math.prod(report.shape), messages[VOTES]
        fine = (votes != 0) & (votes >= -most) & (votes <= most)
        return np.asarray(fine.reshape(len(messages), -1).all(axis=1))

    def aggregator(self, wanted: Aggregator) -> Aggregator:
        """An aggregator that counts votes, whatever the method wants."""
        return Votes(1)  # asked for its channels only; `total` knows the dimension

    def total(
        self,
        delivery: Delivery,
        context: RoundContext,
        phase: Phase,
        *,
        slots: Slots,
        wanted: Aggregator,
    ) -> dict[str, Array]:
        """Line 3: the estimated sum, in the shape of the method's report."""
        [(name, slot)] = slots.items()
        bits = self._bits(math.prod(slot.shape))
        counted = Votes(bits.dimension).total(delivery, context)[VOTES]
        found = phase.bounded_by(self.clip) * bits.scales * counted
        return {name: found.reshape(slot.shape)}

    def variance(self, phase: Phase, *, users: float, size: int) -> float:
        """Refused: the noise differs from coordinate to coordinate."""
        raise Refused("votes have no one variance; use mechanism = 'local'")

    # details

    def _bits(self, size: int) -> SpreadBits | PublishedBits:
        epsilon, votes = given(self.epsilon, "epsilon"), given(self.votes, "votes")
        return self.kind(epsilon, size, votes)
