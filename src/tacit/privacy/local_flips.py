"""Every client sends its whole history with every bit flipped with a known chance.

The paper (Gao et al. 2020) states the epsilon of one bit. A user is protected by that
times the number of items, and that is the field here, so that nobody reads one for the
other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tacit.errors import Refused
from tacit.keys import Keys
from tacit.mechanisms.flipped_bits import FlippedBits
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.budgets import given
from tacit.privacy.guarantees import local
from tacit.privacy.local_report import LocalReport
from tacit.privacy.privacy import Codes, release
from tacit.release import Release
from tacit.tree import Arrays, Tree
from tacit.wire_names import register


@register("local_flips")
@dataclass(frozen=True)
class LocalFlips(LocalReport):
    """Randomised response on every bit of a row; `epsilon` is that of the whole row."""

    is_releasable: ClassVar[bool] = True

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """One release: a flipped row per participation."""
        reason = "randomised response on every bit, composed over the catalog"
        # Whatever the number of bits: all of them together cost `epsilon`.
        event = FlippedBits(given(self.epsilon, "epsilon"), 1).event
        cells = local(plan, event, reason=reason)
        what = " and ".join(phase.what for phase in phases)
        what = f"{what}, with some bits flipped at random"
        return (release(plan, what, cells),)

    def bits(self, n_items: int) -> FlippedBits:
        """The mechanism for rows of so many bits, all of them within `epsilon`."""
        # Rounded down, so that n_items of them never add up to more than `epsilon`.
        each = math.nextafter(given(self.epsilon, "epsilon") / n_items, 0.0)
        return FlippedBits(each, n_items)

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """Refused: a packed row does not say how many items it has; see `bits`."""
        raise Refused("flipped bits are for methods that read whole rows; see DPLCF")
