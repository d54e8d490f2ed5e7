"""Bounds as papers computed them, to reproduce their tables; and ours beside them.

DP-PrivRec states epsilons from the analytical moments accountant of Wang, Balle and
Kasiviswanathan (2019, "WBK"). All 36 published cells come out, cut to four decimals,
with a noise multiplier of 1 and 1000 · M compositions where the text says 1000 rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float64
from scipy.special import gammaln

from tacit import check
from tacit.accounting.decomposition import REPLACE_ONE
from tacit.accounting.epsilon import epsilon
from tacit.accounting.rdp import rdp_epsilon
from tacit.errors import BadValue


@dataclass(frozen=True)
class EpsilonTable:
    """A published table: epsilon by cohort size and delta."""

    name: str
    population: int
    deltas: tuple[float, ...]
    rows: Mapping[int, tuple[float, ...]]  # cohort size -> epsilon at each delta


PRIVREC_ROUNDS = 1000  # as the text says; the tables compose 1000 · M
PRIVREC_TABLES = (
    EpsilonTable(
        "DP-PrivRec, Table 3 (Movielens)",
        4800,
        (1e-8, 1e-6, 1e-4),
        {
            5: (1.7439, 1.3602, 0.9764),
            10: (3.2117, 2.7511, 2.2535),
            15: (5.9705, 5.2030, 4.3074),
            20: (9.4736, 8.3223, 6.9235),
            25: (13.7047, 12.1696, 10.2052),
            30: (18.9107, 16.6081, 14.3056),
        },
    ),
    EpsilonTable(
        "DP-PrivRec, Table 4 (Frappe)",
        760,
        (1e-8, 1e-6, 1e-4),
        {
            2: (2.2994, 1.8388, 1.3783),
            5: (7.4618, 6.5408, 5.3932),
            8: (16.2853, 14.3169, 12.0143),
            10: (23.7651, 21.4626, 18.6182),
            12: (34.5025, 30.0690, 25.4638),
            15: (50.1537, 45.5485, 40.9433),
        },
    ),
)


def privrec_epsilon(size: int, *, population: int, delta: float) -> float:
    """A cell of the tables as the paper's tool computes it, before it is cut."""
    return wbk_epsilon(
        size / population,
        noise_multiplier=1.0,
        count=PRIVREC_ROUNDS * size,
        delta=delta,
    )


def wbk_epsilon(
    rate: float,
    *,
    noise_multiplier: float,
    count: int,
    delta: float,
    most_order: int = 256,
) -> float:
    """WBK's epsilon of `count` Gaussians on samples without replacement.

    A valid bound under `replace_one` (multiplier sigma / (2 S)), but loose: see
    `fixed_size_epsilons` for what can be proven.
    """
    check.fraction(delta=delta)
    check.count(count=count)
    orders = np.arange(2, most_order + 1)
    curve = wbk_rdp(rate, noise_multiplier=noise_multiplier, most_order=most_order)
    return float(np.min(count * curve - math.log(delta) / (orders - 1)))


def wbk_rdp(
    rate: float, *, noise_multiplier: float, most_order: int
) -> Float64[np.ndarray, "orders"]:
    """The Rényi bound at orders 2, 3, ..., `most_order` (WBK, Theorem 9)."""
    check.fraction(rate=rate)
    check.positive(noise_multiplier=noise_multiplier)
    check.at_least(2, most_order=most_order)
    j = np.arange(2, most_order + 1)
    divergence = j / (2.0 * noise_multiplier**2)  # of the Gaussian itself, at order j
    terms = math.log(2.0) + (j - 1) * divergence + j * math.log(rate)
    # The term j = 2 has a sharper constant: 4 (e^D - 1) in place of 2 e^D.
    second = math.log(4.0) + math.log(math.expm1(divergence[0]))
    terms[0] = min(terms[0], second + 2 * math.log(rate))
    curve = np.empty(len(j))
    for i, order in enumerate(j):  # log of 1 + sum of binomial(order, j) e^terms
        binomials = gammaln(order + 1) - gammaln(j[: i + 1] + 1)
        binomials -= gammaln(order - j[: i + 1] + 1)
        logs = np.append(terms[: i + 1] + binomials, 0.0)
        curve[i] = np.logaddexp.reduce(logs) / (order - 1)
    return curve


@dataclass(frozen=True)
class Provable:
    """What holds for cohorts of fixed size: by Rényi divergence, and tightly."""

    rdp: float
    pld: float


@cache
def fixed_size_epsilons(
    size: int, *, population: int, noise_multiplier: float, rounds: int, delta: float
) -> Provable:
    """What can be proven for a table's row, under `replace_one`.

    `noise_multiplier` is the papers' sigma over the sensitivity of the mean, 2 S / M.
    """
    from dp_accounting import (
        GaussianDpEvent,
        SampledWithoutReplacementDpEvent,
        SelfComposedDpEvent,
    )

    one = GaussianDpEvent(noise_multiplier)
    sampled = SampledWithoutReplacementDpEvent(population, size, one)
    event = SelfComposedDpEvent(sampled, rounds)
    tight = epsilon(event, delta=delta, adjacency=REPLACE_ONE).value
    assert tight is not None  # noise is positive
    return Provable(rdp_epsilon(event, delta=delta, adjacency=REPLACE_ONE), tight)


def effective_noise(noise_multiplier: float, *, step: float, shared: float) -> float:
    """The multiplier that is left when the server's step is taken outside the noise.

    DP-PrivRec adds noise of scale z to theta + alpha3 · mean, of which a share h is
    kept from before: 1 / z_eff² = alpha3² (1 - h) / z² + h / z².

    >>> round(effective_noise(1.0, step=0.1, shared=0.7), 4)
    1.1927
    """
    check.positive(noise_multiplier=noise_multiplier, step=step)
    if not 0.0 <= shared <= 1.0:
        raise BadValue(f"shared={shared} must be in [0, 1]")
    return float(noise_multiplier * (step**2 * (1.0 - shared) + shared) ** -0.5)
