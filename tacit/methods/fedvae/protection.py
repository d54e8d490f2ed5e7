"""What protects FedVAE's sums: nothing, or noise on bounded contributions.

Counting: a report is a history of length 1, so a person moves the sum by 1 at most.
Training: a report is a gradient, all layers clipped together to S, fixed or following
a quantile of the norms (`mechanisms.adaptive_clip`), so a person moves the sum by S. In
groups (`aggregation.bucketed`) a person is in one of them, and the bound is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.mechanisms.adaptive_clip import AdaptiveClip
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.sums import SumMechanism
from tacit.plan import Plan
from tacit.release import Cells, summed, unprotected
from tacit.tree import Array, Arrays

CLIP = "clip"  # its name in the server's memory and in a Cast, where it moves
_SPAN = 100.0  # by how much an adaptive clip may leave its start, either way
_REASON = "Gaussian mechanism on a sum of clipped gradients (docs/methods/fedvae.md)"
_BARE = "gradients are sent as they are: their signs give the history back"
_PAPER = (
    "gradients are sent as they are; dropout is no differential privacy, and a filter "
    "that looks at reports has no bounded sensitivity"
)


@dataclass(frozen=True)
class Bare:
    """Reports as they are."""

    is_paper: bool

    def start(self) -> dict[str, Array]:
        """Nothing to remember."""
        return {}

    def counting(self) -> None:
        """No mechanism."""

    def training(self, told: Arrays) -> None:
        """No mechanism."""

    def after(self, told: Arrays, total: Arrays, *, planned: float) -> dict[str, Array]:
        """Still nothing."""
        return {}

    def cells(self, plan: Plan, *, is_counting: bool) -> Cells:
        """No promise."""
        return unprotected(_PAPER if self.is_paper else _BARE)


@dataclass(frozen=True)
class Central:
    """Gaussian noise on both kinds of sums."""

    noise_multiplier: float
    clip: float
    count_noise: float | None = None  # None: nothing is counted
    adaptive: AdaptiveClip | None = None

    @classmethod
    def following(
        cls,
        quantile: float,
        *,
        noise_multiplier: float,
        clip: float,
        bit_noise: float,
        count_noise: float | None,
    ) -> Central:
        """With a clip that follows a quantile of the norms, from `clip` on."""
        rule = AdaptiveClip(
            start=clip,
            least=clip / _SPAN,
            most=clip * _SPAN,
            noise_multiplier=noise_multiplier,
            bit_noise=bit_noise,
            quantile=quantile,
        )
        return cls(noise_multiplier, clip, count_noise, rule)

    def start(self) -> dict[str, Array]:
        """The first clip, if it will move."""
        return {} if self.adaptive is None else {CLIP: np.array([self.clip])}

    def counting(self) -> GaussianSum:
        """What the sums of histories get."""
        assert self.count_noise is not None
        return GaussianSum(1.0, self.count_noise)

    def training(self, told: Arrays) -> SumMechanism:
        """What the sums of gradients get, at the clip that everyone was told."""
        if self.adaptive is None:
            return GaussianSum(self.clip, self.noise_multiplier)
        return self.adaptive.at(float(told[CLIP][0]))

    def after(self, told: Arrays, total: Arrays, *, planned: float) -> dict[str, Array]:
        """The clip of the next round."""
        if self.adaptive is None:
            return {}
        clip = float(told[CLIP][0])
        return {CLIP: np.array([self.adaptive.following(clip, total, planned=planned)])}

    def cells(self, plan: Plan, *, is_counting: bool) -> Cells:
        """A Gaussian release in every round of `plan`."""
        one = self.counting() if is_counting else self.training(self.start())
        return summed(plan, one.event, reason=_REASON)


Protection = Bare | Central
