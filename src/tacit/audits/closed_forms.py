"""The exact epsilon of a few releases, in formulas of the audit's own.

Nothing here is shared with `tacit.accounting`: a figure that is printed is an upper
bound, so it may never lie below what these say.

    Gaussian     Balle and Wang 2018, Theorem 8; n of them are one of z / sqrt(n)
    Poisson      a Gaussian behind a coin, one round or two: the second is an integral
    fixed size   M of N without replacement, one round (Balle et al. 2018, Theorem 11)
    k-ary        randomised response, any number of times: a sum over outcomes
    clones       one shuffled report: a sum over clones (Feldman et al. 2021)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom

Profile = Callable[[float], float]  # epsilon to the least delta

_NODES = 4001  # of the integral over the first of two rounds; even spacing suffices
_REACH = 12.0  # standard deviations that it covers
_MOST = 1e4  # an epsilon beyond which nothing is looked for; no plan means it


def epsilon_of(profile: Profile, delta: float) -> float:
    """The least epsilon at which the profile is no more than `delta`."""
    if profile(0.0) <= delta:
        return 0.0
    high = 1.0
    while profile(high) > delta and high < _MOST:
        high *= 2
    if high >= _MOST:
        return math.inf
    return float(brentq(lambda e: profile(e) - delta, 0.0, high, xtol=1e-13))


def gaussian(multiplier: float) -> Profile:
    """The profile of a Gaussian release of this noise multiplier."""
    mu = 1.0 / multiplier

    def delta(epsilon: float) -> float:
        found = ndtr(mu / 2 - epsilon / mu)
        return float(found - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))

    return delta


def behind_a_coin(rate: float, multiplier: float) -> Profile:
    """The profile of one Poisson-sampled Gaussian whose user is removed."""

    def delta(epsilon: float) -> float:
        if epsilon <= math.log1p(-rate):
            return -math.expm1(epsilon)
        inner = math.log1p(math.expm1(epsilon) / rate)
        return rate * gaussian(multiplier)(inner)

    return delta


def behind_two_coins(rate: float, multiplier: float) -> Profile:
    """The profile of two such rounds: that of the second, averaged over the first."""
    x = np.linspace(-_REACH * multiplier, 1 + _REACH * multiplier, _NODES)
    sigma = multiplier
    bare = np.exp(-(x**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    ratio = 1 - rate + rate * np.exp((2 * x - 1) / (2 * sigma**2))
    weights, losses = bare * ratio * (x[1] - x[0]), np.log(ratio)
    least, mu = math.log1p(-rate), 1 / sigma

    def delta(epsilon: float) -> float:
        left = epsilon - losses  # what the second round may lose
        inner = np.log1p(np.expm1(np.maximum(left, least * (1 - 1e-12))) / rate)
        ahead, behind = ndtr(mu / 2 - inner / mu), ndtr(-mu / 2 - inner / mu)
        sampled = rate * (ahead - np.exp(inner) * behind)
        return float(weights @ np.where(left <= least, -np.expm1(left), sampled))

    return delta


def fixed_size(rate: float, multiplier: float) -> Profile:
    """The profile of one sample without replacement; noise over twice the bound."""

    def delta(epsilon: float) -> float:
        inner = math.log1p(math.expm1(epsilon) / rate)
        return rate * gaussian(multiplier)(inner)

    return delta


def responses(epsilon: float, *, choices: int, times: int) -> Profile:
    """The profile of `times` independent k-ary randomised responses."""
    small = math.exp(-epsilon)
    other = small / (1 + (choices - 1) * small)
    true, rest = other / small, (choices - 2) * other  # losses +ε and 0; `other` -ε
    masses = np.array([1.0])  # of losses from -times to times, in epsilons
    for _ in range(times):
        masses = np.convolve(masses, [other, rest, true])
    losses = epsilon * np.arange(-times, times + 1)
    return _hockey_stick(masses, losses)


def clones(epsilon: float, reports: int) -> Profile:
    """The profile of one report that was shuffled among `reports`."""
    n = np.arange(reports)[:, None]  # clones among the others
    firsts = np.arange(reports + 1)[None, :]
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    given = binom.pmf(n, reports - 1, math.exp(-epsilon))
    ahead, behind = binom.pmf(firsts - 1, n, 0.5), binom.pmf(firsts, n, 0.5)
    one = given * (share * ahead + (1 - share) * behind)
    other = given * ((1 - share) * ahead + share * behind)

    def delta(at: float) -> float:
        return float(np.maximum(one - math.exp(at) * other, 0.0).sum())

    return delta


def _hockey_stick(
    masses: Float64[np.ndarray, "n"], losses: Float64[np.ndarray, "n"]
) -> Profile:
    def delta(epsilon: float) -> float:
        return float((masses * -np.expm1(np.minimum(epsilon - losses, 0.0))).sum())

    return delta
