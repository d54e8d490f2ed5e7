"""DP-PrivRec (Wang et al. 2021): the adaptive clipping bound, as printed."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from tacit import check

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class PublishedClipping:
    """DP-PrivRec's adaptive clipping bound S, and its two noises.

    Guarantee: `event` for a round, for a cohort of fixed size under replace_one.
    Assumes: a trusted aggregator. The bit is taken after clipping, so it is 1 for
        everyone; the bound falls by rate · (1 - quantile) a round, below zero in the
        end.
    Source: Wang et al. 2021, Algorithm 2, lines 8 to 11, 22 and 23; section 2.3.4.
    """

    noise_multiplier: float  # z
    cohort: int  # M
    _: KW_ONLY
    balance: float  # h, the share of the budget that the bit gets
    rate: float  # alpha4
    quantile: float  # gamma

    def __post_init__(self) -> None:
        check.positive(noise_multiplier=self.noise_multiplier, rate=self.rate)
        check.count(cohort=self.cohort)
        check.fraction(balance=self.balance, quantile=self.quantile)

    def bits(
        self, norms: Float[np.ndarray, "clients"], *, bound: float
    ) -> Bool[np.ndarray, "clients"]:
        """Lines 22 and 23: clip, then ask whether the norm is within the bound."""
        return np.minimum(norms, bound) <= bound

    def update_sigma(self, bound: float) -> float:
        """The noise on the mean update, line 8."""
        z = self.noise_multiplier
        return 2 * bound * z / self.cohort * math.sqrt(1 / (1 - self.balance))

    @property
    def bit_sigma(self) -> float:
        """The noise on the mean bit, line 10."""
        return 2 * self.noise_multiplier / self.cohort * math.sqrt(1 / self.balance)

    def next_bound(self, bound: float, *, noisy_mean: float) -> float:
        """S - alpha4 (beta - gamma), line 11."""
        return bound - self.rate * (noisy_mean - self.quantile)

    def effective_noise(self, step: float) -> float:
        """The noise multiplier of a round: line 9 scales the update by `step` (alpha3).

        The noise is added outside the step, so a larger step gets relatively less.
        """
        check.positive(step=step)
        kept = step**2 * (1 - self.balance) + self.balance
        return self.noise_multiplier / math.sqrt(kept)

    def event(self, step: float) -> DpEvent:
        """What a round costs a member of its cohort, for replace_one.

        The paper's noise is over 2 S / M, the distance of an exchange; the accountant
        doubles by itself.
        """
        from dp_accounting import GaussianDpEvent

        return GaussianDpEvent(2 * self.effective_noise(step))
