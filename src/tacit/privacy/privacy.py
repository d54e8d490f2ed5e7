"""What a protection is: one value that every method shares.

    client    report         what leaves, of what the client computed
    channel   mechanism      bounds and noise of a sum; None where clients do it all
    server    legal          which messages an honest client may have sent
              total          what the delivery says about the sum
              told, after    what a broadcast adds, and how it moves (an adaptive clip)
              planned, variance   how many reports a cohort adds up to, and its noise
    account   calibrated, releases

A protection is a frozen dataclass; its fields are the keys of `[privacy]` in an
experiment beside `mechanism`, which names its class. It learns of a method nothing but
its phases and the shape of its reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Bool, Int64

from tacit.aggregation.mean import Aggregator
from tacit.keys import Keys
from tacit.mechanisms.one_bit import Coordinates
from tacit.mechanisms.sum_mechanism import SumMechanism
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.release import EVERYONE, Cells, Part, Release
from tacit.transport.channels import Delivery, RoundContext
from tacit.transport.messages import Layout, PublicSlot, Slot, zeros
from tacit.tree import Array, Arrays, Tree

Slots = Mapping[str, Slot]  # the leaves of a method's reports, before any protection
Legal = Bool[np.ndarray, "messages"]  # which of them an honest client may have sent
Codes = Int64[np.ndarray, "clients"]  # index of each client's group in `plan.groups`

SEEN_BY = "the server's operator, and everyone who sees the model"


class Privacy(ABC):
    """What protects the reports of a run, whichever method makes them."""

    is_private: bool = True  # whether honest reports must keep their phase's bound
    # Whether the promise holds for the bytes that are sent, rounding included, so that
    # `tacit release` may use it.
    is_releasable: ClassVar[bool] = False

    # account

    def calibrated(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> Self:
        """The same protection with the noise that the plan's target needs.

        `is_chosen`: the method chooses among the phases as it goes.
        """
        return self

    @abstractmethod
    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """Who sees what, under which guarantee."""

    def total_multiplier(self, group: str) -> float | None:
        """Multiplier of the one Gaussian that a run of chosen phases amounts to."""
        return None

    def multiplier(self, phase: Phase, group: str) -> float | None:
        """Noise over sensitivity of one round of the phase, where phases are chosen."""
        return None

    # client

    def layout(self, phase: Phase, slots: Slots) -> Layout:
        """What a protected report looks like."""
        return Layout(slots)

    @abstractmethod
    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """What leaves, of what the clients computed; `told` is what was broadcast."""

    def coordinates(self, size: int, keys: Keys) -> Coordinates | None:
        """Which of a report's `size` numbers clients compute; None stands for all."""
        return None

    def empty(self, slots: Slots, n: int, keys: Keys) -> Tree:
        """What clients that contribute nothing hand to `report`: `n` rows of zeros."""
        return zeros(slots, n)

    # channel and server

    def mechanism(self, phase: Phase, told: Arrays) -> SumMechanism | None:
        """What bounds the reports of a sum and adds noise to it; by default nothing."""
        return None

    def legal(self, messages: Tree, phase: Phase, *, slots: Slots) -> Legal:
        """Which messages an honest client may have sent; axis 0 is the message.

        They have the layout of the phase already. A server that reads single messages
        leaves out the others, so that a liar weighs no more than an honest client can.
        """
        return np.ones(len(messages), bool)

    def aggregator(self, wanted: Aggregator) -> Aggregator:
        """What reads the delivery: the one that the method wants, if it can."""
        return wanted

    def total(
        self,
        delivery: Delivery,
        context: RoundContext,
        phase: Phase,
        *,
        slots: Slots,
        wanted: Aggregator,
    ) -> dict[str, Array]:
        """The sum of what the clients computed, estimated from the delivery."""
        return self.aggregator(wanted).total(delivery, context)

    def told(self, phase: Phase, memory: Arrays) -> Arrays:
        """What a broadcast of this phase says beside the method's own arrays."""
        return {}

    def told_shape(self, phase: Phase) -> Mapping[str, PublicSlot]:
        """What `told` looks like, with the range of its values."""
        return {}

    def after(
        self, phase: Phase, told: Arrays, total: Arrays, *, planned: float
    ) -> Arrays:
        """What the server remembers of the protection after a round."""
        return {}

    def planned(self, plan: Plan) -> float:
        """How many whole reports the planned cohort of a round adds up to."""
        return plan.cohort_size

    def variance(self, phase: Phase, *, users: float, size: int) -> float:
        """The variance of the noise on each number in a sum of `users` reports.

        `size` is how many numbers a report has.
        """
        return 0.0


def release(
    plan: Plan,
    what: str,
    cells: Cells,
    *,
    phase: Phase | None = None,
    parts: tuple[Part, ...] = (),
    group: str = EVERYONE,
) -> Release:
    """The release of one phase, or of all rounds of the plan if `phase` is None."""
    rounds = None if phase is None else phase.rounds
    when = in_rounds(rounds, plan.rounds)
    return Release(what, SEEN_BY, when, cells, group, rounds, plan.channel, parts)


def parts_of(
    plan: Plan, phases: Sequence[Phase], what: str, *, is_chosen: bool = False
) -> tuple[Part, ...]:
    """A line for each phase of a release of several; `what` has a place for its words.

    `is_chosen`: the method chooses among the phases as it goes, after the first one.
    """
    if len(phases) == 1:
        return ()
    starts = [phase.rounds.start for phase in phases]
    maybe = ", if the method chooses it"
    return tuple(
        Part(
            what.format(phase.what),
            in_rounds(phase.rounds, plan.rounds)
            + maybe * (is_chosen and (start > 0 or starts.count(0) > 1)),
            start,
        )
        for phase, start in zip(phases, starts, strict=True)
    )


def in_rounds(rounds: range | None, planned: int) -> str:
    """When something is released; rounds are counted from 1.

    >>> in_rounds(None, 3), in_rounds(range(0, 1), 3), in_rounds(range(1, 3), 3)
    ('in every round', 'in round 1', 'in rounds 2 to 3')
    """
    if rounds is None or rounds == range(planned):
        return "in every round"
    if len(rounds) == 1:
        return f"in round {rounds.start + 1}"
    return f"in rounds {rounds.start + 1} to {rounds.stop}"
