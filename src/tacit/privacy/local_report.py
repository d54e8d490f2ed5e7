"""What all pure local mechanisms share whose epsilon is that of a whole report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from tacit import check
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.budgets import LocalBudget
from tacit.privacy.privacy import Privacy


@dataclass(frozen=True)
class LocalReport(Privacy):
    """Randomises whole reports; without `epsilon` it follows from the plan's target."""

    epsilon: float | None = None  # of one report

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            check.positive(epsilon=self.epsilon)

    def calibrated(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> Self:
        """A copy with the largest epsilon per report that meets the plan's target."""
        if self.epsilon is not None:
            return self
        return replace(self, epsilon=LocalBudget(plan).epsilon())
