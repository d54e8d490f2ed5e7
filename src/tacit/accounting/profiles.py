"""Privacy profiles, delta as a function of epsilon, and their loss distributions.

A Gaussian that saw the user with probability q has the profile
q · delta_Gauss(log(1 + (e^eps - 1) / q)) (Balle, Barthe and Gaboardi 2018):

    poisson_loss   the user's coin; for e > log(1 - q) when removed (Theorem 8), and
                   the mirror image when added. The library has it too, 5 times slower.
    sampled_loss   M of N without replacement, or padding at the item level; for e >= 0
                   and, by symmetry, below (Theorem 11). The library lacks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64
from scipy.special import log_ndtr

from tacit import check

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_TAIL = 1e-15  # delta beyond the grid; the least delta in use is 1e-10

Curve = Float64[np.ndarray, "n"]


def gaussian_delta(epsilon: Curve, *, noise_multiplier: float) -> Curve:
    """The exact profile of the Gaussian mechanism (Balle and Wang 2018, Theorem 8)."""
    mu = 1.0 / noise_multiplier
    # Phi(a) - e^epsilon Phi(b) as Phi(a) (1 - e^(...)): no two large numbers cancel.
    above = log_ndtr(mu / 2 - epsilon / mu)
    below = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return np.exp(above) * -np.expm1(np.minimum(below - above, 0.0))


def gaussian_epsilon(noise_multiplier: float, *, delta: float) -> float:
    """The least epsilon of one Gaussian at this delta, rounded up by 1e-12 or less."""
    aim = math.log(delta)
    if _log_gaussian_delta(0.0, noise_multiplier) <= aim:
        return 0.0
    return _crossing(lambda e: _log_gaussian_delta(e, noise_multiplier) <= aim)


def gaussian_noise(epsilon: float, *, delta: float) -> float:
    """The least noise multiplier of one Gaussian, rounded up by 1e-12 of it or less."""
    aim = math.log(delta)
    return _crossing(lambda z: _log_gaussian_delta(epsilon, z) <= aim)


def _crossing(holds: Callable[[float], bool]) -> float:
    """The least number above zero that holds, if all larger ones do, from above."""
    high = 1.0
    while not holds(high):
        high *= 2
    low = high / 2
    while low > 1e-12 and holds(low):
        low, high = low / 2, low
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _log_gaussian_delta(epsilon: float, noise_multiplier: float) -> float:
    """`gaussian_delta` in logarithms, so that none is too small."""
    mu = 1.0 / noise_multiplier
    above = float(log_ndtr(mu / 2 - epsilon / mu))
    below = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return above + math.log1p(-math.exp(below - above)) if below < above else -math.inf


def sampled_delta(epsilon: Curve, *, rate: float, noise_multiplier: float) -> Curve:
    """The profile of a Gaussian that saw the user at this rate, at e > log(1 - q)."""
    # log(1 + (e^epsilon - 1) / rate), written so that a large epsilon does not overflow
    amplified = epsilon + np.log1p((rate - 1.0) * np.exp(-epsilon)) - math.log(rate)
    return rate * gaussian_delta(amplified, noise_multiplier=noise_multiplier)


def sampled_loss(
    *, rate: float, noise_multiplier: float, grid: float
) -> PrivacyLossDistribution:
    """The loss of a sample without replacement, symmetric."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    _check(rate, noise_multiplier, grid)
    half = _steps_to_the_tail(rate, noise_multiplier, grid)
    epsilons = np.arange(half + 1) * grid
    right = sampled_delta(epsilons, rate=rate, noise_multiplier=noise_multiplier)
    deltas = np.concatenate([_mirrored(epsilons, right)[:-1], right])
    return PrivacyLossDistribution(_connected(deltas, lowest=-half, grid=grid))


def poisson_loss(
    *, rate: float, noise_multiplier: float, grid: float
) -> PrivacyLossDistribution:
    """The loss of a Poisson sample when a user is removed, and when one is added."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    _check(rate, noise_multiplier, grid)
    least = math.log1p(-rate)  # no loss of a removal is below
    lowest = math.floor(least / grid)
    highest = _steps_to_the_tail(rate, noise_multiplier, grid)
    epsilons = np.arange(lowest, highest + 1) * grid
    above = epsilons > least
    removed = -np.expm1(np.minimum(epsilons, 0.0))
    removed[above] = sampled_delta(
        epsilons[above], rate=rate, noise_multiplier=noise_multiplier
    )
    added = np.where(above[::-1], _mirrored(epsilons, removed), 0.0)
    return PrivacyLossDistribution(
        _connected(removed, lowest=lowest, grid=grid),
        _connected(added, lowest=-highest, grid=grid),
    )


def _check(rate: float, noise_multiplier: float, grid: float) -> None:
    check.fraction(rate=rate, remedy="at rate 1 it is the Gaussian itself")
    check.positive(noise_multiplier=noise_multiplier, grid=grid)


def _mirrored(epsilons: Curve, deltas: Curve) -> Curve:
    """The profile of the pair exchanged, at the negated epsilons, ascending.

    For any pair, delta(Q, P, -e) = 1 - exp(-e) + exp(-e) delta(P, Q, e).
    """
    back = -epsilons[::-1]
    return -np.expm1(back) + np.exp(back) * deltas[::-1]


def _connected(deltas: Curve, *, lowest: int, grid: float) -> Any:
    """The pessimistic loss distribution through a profile's points."""
    from dp_accounting.pld import pld_pmf

    # A profile never rises; its rounded values may, by a last digit.
    falling = np.minimum.accumulate(np.clip(deltas, 0.0, 1.0))
    made = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        grid, lowest, lowest + len(deltas) - 1, falling
    )
    return made.to_dense_pmf()  # a sparse one takes long to compose with itself


def _steps_to_the_tail(rate: float, noise_multiplier: float, grid: float) -> int:
    """How far the grid must reach until what is left is negligible."""
    reach = max(0.1, grid)
    while (
        sampled_delta(np.array([reach]), rate=rate, noise_multiplier=noise_multiplier)[
            0
        ]
        > _TAIL
    ):
        reach *= 1.25
    return math.ceil(reach / grid)
