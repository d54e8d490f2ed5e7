"""What protects the sum of updates: nothing, sound noise, or the paper's.

Each says which mechanism a round has whose Cast says `clip`, where the clip goes next,
and what a run of such rounds costs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.accounting.published import wbk_epsilon
from tacit.errors import Refused
from tacit.mechanisms.adaptive_clip import AdaptiveClip, ClippedSumWithBits
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.published.privrec import PublishedClipping, PublishedSum
from tacit.plan import Plan
from tacit.release import Cells, Unit, View, summed, unprotected
from tacit.tree import Arrays

_GAUSSIAN = "Gaussian mechanism on a sum of jointly clipped updates"
_ADAPTIVE = f"{_GAUSSIAN}, and on clip bits (Andrew et al. 2021, Theorem 1)"
_PUBLISHED = f"{_GAUSSIAN} and bits, as in Algorithm 2; docs/errata/privrec.md"


@dataclass(frozen=True)
class Bare:
    """Updates as they are."""

    start = 0.0
    has_bits = False

    def at(self, clip: float) -> None:
        """No mechanism."""

    def following(self, clip: float, total: Arrays, *, planned: float) -> float:
        """There is none to move."""
        return clip

    def cells(self, plan: Plan) -> Cells:
        """No promise."""
        return unprotected("updates are sent as they are; no mechanism protects them")


@dataclass(frozen=True)
class Constant:
    """A clip that stays, and Gaussian noise."""

    mechanism: GaussianSum
    has_bits = False

    @property
    def start(self) -> float:
        """The clip."""
        return self.mechanism.clip

    def at(self, clip: float) -> GaussianSum:
        """The same, whatever a Cast says."""
        return self.mechanism

    def following(self, clip: float, total: Arrays, *, planned: float) -> float:
        """The same."""
        return clip

    def cells(self, plan: Plan) -> Cells:
        """A Gaussian release in every round."""
        return summed(plan, self.mechanism.event, reason=_GAUSSIAN)


@dataclass(frozen=True)
class Adaptive:
    """A clip that follows a quantile of the norms."""

    rule: AdaptiveClip
    has_bits = True

    @property
    def start(self) -> float:
        """The first clip."""
        return self.rule.start

    def at(self, clip: float) -> ClippedSumWithBits:
        """The mechanism at this clip; refuses one beyond the agreed limits."""
        return self.rule.at(clip)

    def following(self, clip: float, total: Arrays, *, planned: float) -> float:
        """By the noisy bits."""
        return self.rule.following(clip, total, planned=planned)

    def cells(self, plan: Plan) -> Cells:
        """A Gaussian release in every round; the clip is a part of it."""
        return summed(plan, self.at(self.start).event, reason=_ADAPTIVE)


@dataclass(frozen=True)
class Published:
    """Algorithm 2 as printed, except that its bound stops at `least`."""

    clipping: PublishedClipping
    start: float  # S
    least: float
    step: float  # alpha3
    has_bits = True

    def at(self, clip: float) -> PublishedSum:
        """Lines 8 to 10, 22 and 23."""
        if clip < self.least:
            raise Refused(f"clip={clip} must be at least {self.least}, as agreed")
        return PublishedSum(self.clipping, clip, step=self.step)

    def following(self, clip: float, total: Arrays, *, planned: float) -> float:
        """Line 11, and the floor that it lacks."""
        return max(self.least, self.at(clip).next_clip(total, planned=planned))

    def cells(self, plan: Plan) -> Cells:
        """What its noise is worth, and beside it what the paper says it is."""
        cells = dict(summed(plan, self.clipping.event(self.step), reason=_PUBLISHED))
        where = Unit.USER, View.RELEASE
        told = self._published_epsilon(plan)
        cells[where] = replace(cells[where], published_epsilon=told)
        return cells

    def _published_epsilon(self, plan: Plan) -> float | None:
        """The paper's bound with its count of rounds · M; none for whole cohorts."""
        size, people = int(plan.cohort_size), plan.population
        if plan.delta is None or size >= people:
            return None
        return wbk_epsilon(
            size / people,
            noise_multiplier=self.clipping.noise_multiplier,
            count=plan.rounds * size,
            delta=plan.delta,
        )


Protection = Bare | Constant | Adaptive | Published
