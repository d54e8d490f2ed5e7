"""A run in two parts on one budget: its first rounds count, the others do the work.

Both parts release Gaussian sums. They share the budget as if it were one release of
multiplier z: `share` of 1 / z² for the counting, the rest for the others, each part
divided among its rounds. A device that speaks once is in one of the two parts only, and
spends everything there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from tacit.errors import BadValue, Refused
from tacit.plan import Plan
from tacit.release import Cells, Release, Unit, View, noise_for_target
from tacit.sampling import Once

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Noises = tuple[float | None, float]  # of counting, None if nothing is; of the others


@dataclass(frozen=True)
class CountFirst:
    """So many rounds count, for so much of the budget."""

    rounds: int
    share: float

    def others(self, plan: Plan, *, what: str) -> Plan:
        """The part of the plan that does not count."""
        rounds = plan.rounds - self.rounds
        if rounds < 1:
            raise Refused(
                f"rounds={plan.rounds} must be more than count_rounds={self.rounds}: "
                f"{what}; use rounds = {self.rounds + 1} or more"
            )
        return replace(plan, rounds=rounds)

    def check_noises(
        self, count_noise: float | None, noise_multiplier: float | None
    ) -> None:
        """Refuse settings of which one noise would not be used, or not be known."""
        if count_noise is not None and not self.rounds:
            raise BadValue(
                f"count_noise={count_noise} with count_rounds=0: no round counts; set "
                "count_rounds to 1 or more, or leave count_noise out"
            )
        if self.rounds and (count_noise is None) != (noise_multiplier is None):
            raise BadValue(
                f"count_noise={count_noise} and noise_multiplier={noise_multiplier} "
                "share one budget: set both, or leave both out and they follow from "
                "the plan's target"
            )

    def calibrated(
        self, plan: Plan, releases: Callable[[Noises], tuple[Release, ...]]
    ) -> Noises:
        """The least noises with which the releases meet the plan's target."""

        def whole(z: float) -> DpEvent:
            from dp_accounting import ComposedDpEvent

            made = releases(self._noises(plan, z))
            cells = [release.cells[Unit.USER, View.RELEASE] for release in made]
            return ComposedDpEvent([cell.event for cell in cells])

        once = isinstance(plan.sampler, Once)
        return self._noises(plan, noise_for_target(plan, None if once else whole))

    def releases(
        self,
        plan: Plan,
        *,
        counted: Callable[[Plan], Cells],
        others: Cells,
        of: str,
        noises: Noises | None,
    ) -> tuple[Release, ...]:
        """The sums of histories, if any, and those `of` what the others send.

        `noises` are None if nothing is protected.
        """
        if not self.rounds:
            return (released(f"sum of {of}", others),)
        first = counted(replace(plan, rounds=self.rounds))
        if isinstance(plan.sampler, Once) and noises is not None:
            # Everyone is in one of the two, so what it costs is the dearer of them.
            count, other = noises
            dearer = first if count is not None and count < other else others
            return (released(f"sums of histories and of {of}", dearer),)
        later = range(self.rounds, plan.rounds)
        return (
            released("sum of histories", first, rounds=range(self.rounds)),
            released(f"sum of {of}", others, rounds=later),
        )

    def logarithms(
        self, counts: Float64[np.ndarray, "items"], *, noise: float | None
    ) -> Float64[np.ndarray, "items"]:
        """Of counts; what noise may have made counts as no more than the noise."""
        least = (noise or 0.0) * math.sqrt(self.rounds)
        logs: Float64[np.ndarray, "items"] = np.log(np.maximum(counts, max(1.0, least)))
        return logs

    def _noises(self, plan: Plan, z: float) -> Noises:
        others = plan.rounds - self.rounds
        if isinstance(plan.sampler, Once):
            return z if self.rounds else None, z
        often = plan.cohort_size / plan.population  # a device's rounds, on average
        if not self.rounds:
            return None, z * math.sqrt(others * often)
        counting = z * math.sqrt(self.rounds * often / self.share)
        return counting, z * math.sqrt(others * often / (1 - self.share))


def released(what: str, cells: Cells, *, rounds: range | None = None) -> Release:
    """A sum that the server sees, and everyone in the model made of it."""
    seen_by = "server, and everyone through the model"
    return Release(what, seen_by, _when(rounds), cells, rounds=rounds)


def _when(rounds: range | None) -> str:
    if rounds is None:
        return "each round"
    if rounds.start == 0:
        return f"each of the first {rounds.stop} rounds"
    return f"each round after the first {rounds.start}"
