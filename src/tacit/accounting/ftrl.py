"""Banded correlated noise: training without sampling (DP-FTRL).

Noise of a round is partly taken back in later ones, so sums over rounds are accurate
without any amplification. The strategy matrix has the columns (c_0, ..., c_{p-1}), the
first coefficients of (1 - x)^(-1/2). A user takes part at most k times, b or more
rounds apart, which the client enforces; with p <= b the columns of one user do not
overlap and the sensitivity is S · sqrt(k) · ||c||.

The noise stream itself is a mechanism; here is what it costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.accounting.calibration import gaussian_noise
from tacit.accounting.decomposition import REPLACE_ONE, ZERO_OUT, distance
from tacit.errors import BadValue

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


def coefficients(bands: int) -> Float64[np.ndarray, "bands"]:
    """c_0 = 1 and c_j = c_{j-1} (2j - 1) / (2j).

    >>> coefficients(4)
    array([1.    , 0.5   , 0.375 , 0.3125])
    """
    check.count(bands=bands)
    j = np.arange(1, bands)
    return np.concatenate([[1.0], np.cumprod((2 * j - 1) / (2 * j))])


@dataclass(frozen=True)
class Banded:
    """Who may take part how often, under noise with so many bands.

    Guarantee: that of one Gaussian release with `event(noise)`, under `zero_out` or
    (at twice the distance) `replace_one`, in the release view, and in the server view
    with secure aggregation or an enclave.
    Assumes: clients keep `separation` rounds apart and take part `participations` times
    at the most.
    Source: Choquette-Choo et al. 2023, banded matrix factorization.
    """

    participations: int
    separation: int
    bands: int = 20  # ‖c‖ = 1.42; more bands cost noise in every round (100: 1.59)

    def __post_init__(self) -> None:
        check.count(
            participations=self.participations,
            separation=self.separation,
            bands=self.bands,
        )
        if self.bands > self.separation:
            raise BadValue(
                f"bands={self.bands} must be <= separation={self.separation}; else "
                "one user's participations overlap and the sensitivity is larger"
            )

    @property
    def norm(self) -> float:
        """||c||, the L2 norm of one column of the strategy matrix."""
        return float(np.linalg.norm(coefficients(self.bands)))

    @property
    def sensitivity(self) -> float:
        """The L2 distance by which one user moves the whole run, in clip norms."""
        # Columns do not overlap (bands <= separation), so their squares add.
        return math.sqrt(self.participations) * self.norm

    def noise(self, target: float, *, delta: float, adjacency: str = ZERO_OUT) -> float:
        """The sigma / S of each round's fresh noise that meets the target."""
        check.one_of((ZERO_OUT, REPLACE_ONE), adjacency=adjacency)
        reach = distance(adjacency) * self.sensitivity
        return gaussian_noise(target, delta=delta) * reach

    def event(self, noise: float) -> DpEvent:
        """The event of the whole run, with fresh noise of `noise` clips per round."""
        from tacit.accounting.dp_events import GaussianDpEvent

        check.positive(noise=noise)
        return GaussianDpEvent(noise / self.sensitivity)
