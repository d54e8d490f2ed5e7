"""A loss whose values lie on a lattice of its own, composed there before rounding.

n releases that are rounded to a common grid and then composed are off by up to n steps.
Composed on a finer lattice first and rounded last, they are off by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_TAIL = 1e-15  # mass that composition may cut off; it is given to infinity
_ROUNDING = 1e-9  # of a step: so that 100 · 1.0 is the grid point it is meant to be


@dataclass(frozen=True)
class Lattice:
    """Masses at the losses `(lowest + i) * step`, and at infinity.

    The pair of neighbours is symmetric: exchanged, it has the same loss.
    """

    step: float
    lowest: int
    masses: Float64[np.ndarray, "losses"]
    infinite: float = 0.0

    def times(self, count: int) -> Lattice:
        """The loss of `count` independent releases with this loss."""
        from dp_accounting.pld import common

        if count == 1:
            return self
        offset, masses = common.self_convolve(self.masses, count, _TAIL)
        # Infinite if any of them is; what the convolution cut off is added.
        infinite = _TAIL - math.expm1(count * math.log1p(-self.infinite))
        lowest = self.lowest * count + offset
        # A Fourier transform leaves tiny negative masses where there is none.
        return Lattice(self.step, lowest, np.maximum(masses, 0.0), infinite)

    def rounded(self, step: float) -> Lattice:
        """The same loss, rounded up to multiples of `step`."""
        losses = (self.lowest + np.arange(len(self.masses))) * (self.step / step)
        places = np.ceil(losses - _ROUNDING).astype(np.int64)
        masses = np.bincount(places - places[0], self.masses)
        return Lattice(step, int(places[0]), masses, self.infinite)

    def distribution(self) -> PrivacyLossDistribution:
        """The loss as the library has it, to be composed with others."""
        from dp_accounting.pld.pld_pmf import DensePLDPmf
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        pmf = DensePLDPmf(self.step, self.lowest, self.masses, self.infinite, True)
        return PrivacyLossDistribution(pmf)
