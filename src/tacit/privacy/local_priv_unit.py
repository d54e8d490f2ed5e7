"""Every client randomises its whole report: PrivUnitG, pure local privacy.

    client   1  lay the leaves of the report end to end: one vector of norm at most S
             2  send one PrivUnitG report of it, in single precision
    server   3  add the reports; the sum is right on average

Whoever looks sees what `epsilon` allows, the server and the relay included. Over a
relay that mixes enough clients, readers of the model and the server see less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tacit import check
from tacit.aggregation.mean import Aggregator, Mean
from tacit.errors import Refused
from tacit.keys import Keys
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.phase import Phase, check_clip
from tacit.plans import Plan
from tacit.privacy.budgets import given
from tacit.privacy.guarantees import shuffled
from tacit.privacy.local_report import LocalReport
from tacit.privacy.privacy import Codes, Legal, Slots, parts_of, release
from tacit.release import Cells, Release
from tacit.sampling import Once
from tacit.transport.channels import Delivery, Each, RoundContext, Sum, Unlinked
from tacit.transport.messages import Layout, Slot
from tacit.tree import Array, Arrays, Tree
from tacit.wire_names import register

_WHAT = "randomised {}"
_SEVERAL = "one randomised report per round"  # of different phases
_DTYPE = "float32"  # half the bytes; rounding comes after the noise and costs nothing


@register("local_priv_unit")
@dataclass(frozen=True)
class LocalPrivUnit(LocalReport):
    """Reports one PrivUnitG vector per participation.

    Leave `epsilon` out to have it follow from the plan's target. Let clients report
    once: several reports have to divide the target among them.
    """

    is_releasable: ClassVar[bool] = True

    clip: float | None = None  # S of clipped phases; None: the method's own

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip is not None:
            check.positive(clip=self.clip)

    # account

    def calibrated(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> Self:
        """A copy with the largest epsilon per report that meets the plan's target."""
        check_clip(phases, clip=self.clip)
        return super().calibrated(plan, phases, is_chosen=is_chosen)

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """One release per phase, or one of all where clients report once."""
        check_clip(phases, clip=self.clip)
        if len(phases) == 1 or is_chosen or isinstance(plan.sampler, Once):
            parts = parts_of(plan, phases, _WHAT, is_chosen=is_chosen)
            what = _SEVERAL if parts else _WHAT.format(phases[0].what)
            return (release(plan, what, self._cells(plan), parts=parts),)
        return tuple(
            release(
                plan,
                _WHAT.format(phase.what),
                self._cells(plan.over(len(phase.rounds))),
                phase=phase,
            )
            for phase in phases
        )

    def _cells(self, plan: Plan) -> Cells:
        epsilon = given(self.epsilon, "epsilon")
        reason = "PrivUnitG on every report, pure local privacy"
        return shuffled(plan, epsilon, messages=1, reason=reason)

    # client

    def layout(self, phase: Phase, slots: Slots) -> Layout:
        """Every leaf written out as one axis, in single precision."""
        return Layout({n: Slot(_DTYPE, (_size(slot),)) for n, slot in slots.items()})

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """Lines 1 and 2: the whole report as one vector, randomised once."""
        # One vector for all leaves: each leaf on its own would cost its own epsilon.
        dense = {name: leaf.dense().values for name, leaf in tree.leaves.items()}
        flat = {n: v.reshape(len(v), -1) for n, v in dense.items()}
        whole = np.concatenate([*flat.values()], axis=1)
        said = self.randomizer(phase, whole.shape[1]).privatize(whole, keys)
        ends = np.cumsum([v.shape[1] for v in flat.values()])[:-1]
        parts = np.split(np.asarray(said, _DTYPE), ends, axis=1)
        return Tree.dense(**dict(zip(flat, parts, strict=True)))

    # server

    def legal(self, messages: Tree, phase: Phase, *, slots: Slots) -> Legal:
        """Those whose vector is no longer than any that a client sends.

        The bound is exact: a client sends zeros in place of a longer one.
        """
        square = np.zeros(len(messages))
        for leaf in messages.leaves.values():
            values = leaf.dense().values.reshape(len(messages), -1).astype(np.float64)
            square += np.einsum("md,md->m", values, values)
        size = sum(_size(slot) for slot in slots.values())
        # Not "longer": of a number that is none, every comparison is false.
        return square <= self.randomizer(phase, size).most_norm ** 2

    def aggregator(self, wanted: Aggregator) -> Aggregator:
        """A sum, over whichever channel it is delivered."""
        if not isinstance(wanted, Mean):
            raise Refused(
                f"{type(wanted).__name__} compares reports, and these are nearly all "
                "noise; use mechanism = 'central' or 'none'"
            )
        return Mean((Each, Unlinked, Sum))

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
        found = self.aggregator(wanted).total(delivery, context)
        return {name: found[name].reshape(slot.shape) for name, slot in slots.items()}

    def variance(self, phase: Phase, *, users: float, size: int) -> float:
        """The variance of each number in the sum of `users` reports of `size`."""
        one = PrivUnit(given(self.epsilon, "epsilon"), size).variance(1.0)
        return users * phase.bounded_by(self.clip) ** 2 * one

    def randomizer(self, phase: Phase, size: int) -> PrivUnit:
        """The mechanism that makes a report of `size` numbers in this phase."""
        bound = phase.bounded_by(self.clip)
        return PrivUnit(given(self.epsilon, "epsilon"), size, bound)


def _size(slot: Slot) -> int:
    return math.prod(slot.shape)
