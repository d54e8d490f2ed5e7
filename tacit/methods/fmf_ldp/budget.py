"""A plan's target, shared among the messages that one person sends in a run.

Of a person's k votes about d coordinates the noise is (d / k) coth²(eps / 2). With a
total of k eps that is least at eps = 2.18 a vote. Where a relay mixes, the total grows
as sqrt(k e^eps) instead, and it is least at sinh(eps) = 2, eps = 1.44.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.accounting.calibration import calibrate
from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue
from tacit.mechanisms.one_bit import BEST_EPSILON
from tacit.plan import Plan
from tacit.release import Adjacency, is_mixed
from tacit.sampling import composed

if TYPE_CHECKING:
    from dp_accounting import DpEvent

BEST_MIXED_EPSILON = math.asinh(2.0)
MOST_VOTES = 100  # the paper's; a catalog must have as many coordinates
_ROUGH = 1e-3  # the grid that is good enough to choose a number of votes


@dataclass(frozen=True)
class Budget:
    """What a plan's target allows, in the release view."""

    plan: Plan

    def epsilon(self, *, messages: int) -> float:
        """The largest epsilon of a message, of which a round has so many."""
        times = messages * self._rounds
        if not is_mixed(self.plan):
            return self._target / times
        noise = calibrate(
            lambda z: self._mixed(1.0 / z, times),
            target=self._target,
            delta=self._delta,
            adjacency=Adjacency.REPLACE_ONE,
        )
        return 1.0 / noise

    def votes(self) -> int:
        """How many votes a round make the least noise, `MOST_VOTES` at the most."""
        if is_mixed(self.plan):
            return self._mixed_votes()
        each = self._target / self._rounds
        fewer = min(MOST_VOTES, max(1, math.floor(each / BEST_EPSILON)))
        some = range(fewer, min(MOST_VOTES, fewer + 1) + 1)
        return min(some, key=lambda k: 1 / k / math.tanh(each / k / 2) ** 2)

    def _mixed_votes(self) -> int:
        """The most votes of the best epsilon, by halving."""
        low, high = 1, MOST_VOTES + 1  # what is always offered, what never is
        while high - low > 1:
            middle = (low + high) // 2
            event = self._mixed(BEST_MIXED_EPSILON, middle * self._rounds)
            low, high = (middle, high) if self._fits(event) else (low, middle)
        return low

    def _fits(self, event: DpEvent) -> bool:
        exchange = Adjacency.REPLACE_ONE
        found = epsilon(event, delta=self._delta, adjacency=exchange, finest=_ROUGH)
        return found.value is not None and found.value <= self._target

    def _mixed(self, each: float, times: int) -> DpEvent:
        from tacit.accounting.events import ShuffledDpEvent

        return composed(ShuffledDpEvent(each, self.plan.min_contributors), times)

    @property
    def _rounds(self) -> int:
        return self.plan.sampler.most_participations(self.plan)

    @property
    def _target(self) -> float:
        if self.plan.target_epsilon is None:
            raise BadValue(
                "privacy='local' needs an epsilon: set privacy.target_epsilon, or the "
                "method's own epsilon of one message"
            )
        return self.plan.target_epsilon

    @property
    def _delta(self) -> float:
        if self.plan.delta is None:
            raise BadValue(
                "what a relay mixes has no pure epsilon: set privacy.delta, such as "
                "1e-6, or channel = 'direct'"
            )
        return self.plan.delta
