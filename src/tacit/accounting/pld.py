"""An elementary release, repeated, to its privacy loss distribution.

Composition is ours for two reasons. The library's accountant ignores the count of a
randomised response (trap T1, docs/privacy.md), and it takes one neighbouring relation
for everything, while a user's account may hold local releases (`replace_one`) beside
central ones (`zero_out`). Every leaf is the library's own loss distribution, or one of
`profiles`, `lattice` and `shuffling`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting import profiles, shuffling
from tacit.accounting.decomposition import (
    REPLACE_ONE,
    ZERO_OUT,
    Part,
    Parts,
    deviations,
    distance,
)
from tacit.accounting.lattice import Lattice
from tacit.errors import Refused

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_LARGE = 50.0  # a pure epsilon above which e^-epsilon is below any delta in use
_FINER = 10  # shuffled reports have small losses: their lattice divides the grid


def loss(parts: Parts, *, grid: float) -> PrivacyLossDistribution:
    """The loss distribution of all parts together, on one grid."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    whole = None
    for part, count in parts.items():
        one = _repeated(part, count, grid)
        whole = one if whole is None else whole.compose(one)
    return pld.identity(grid) if whole is None else whole


@lru_cache(maxsize=16)  # a total is asked for right after its parts
def _repeated(part: Part, count: int, grid: float) -> Any:
    made = _leaves()[type(part.event)](part, grid)
    # Where a tail bound overflows, the library does not use it.
    with np.errstate(over="ignore"):
        if isinstance(made, Lattice):
            return made.times(count).rounded(grid).distribution()
        return made if count == 1 else made.self_compose(count)


def largest_loss(part: Part) -> float:
    """About the largest loss of one Gaussian release, to foresee the size of a grid."""
    mu = deviations(part)
    # The loss is N(mu²/2, mu²): this is above its mean by more than ten deviations.
    return mu**2 + 10.0 * mu


def has_loss(part: Part) -> bool:
    """Whether a release has a loss distribution here, not only a Rényi bound."""
    return type(part.event) in _leaves()


def _leaves() -> dict[type, Callable[[Part, float], Any]]:
    from tacit.accounting import dp_events as dp
    from tacit.accounting.events import PaddedDpEvent, PureDpEvent, ShuffledDpEvent

    return {
        dp.GaussianDpEvent: _gaussian,
        dp.LaplaceDpEvent: _laplace,
        dp.PoissonSampledDpEvent: _poisson,
        dp.TruncatedSubsampledGaussianDpEvent: _truncated,
        dp.SampledWithoutReplacementDpEvent: _without_replacement,
        PaddedDpEvent: _padded,
        PureDpEvent: _pure,
        ShuffledDpEvent: _shuffled,
    }


def _relation(part: Part) -> Any:
    from dp_accounting import NeighboringRelation

    return {
        ZERO_OUT: NeighboringRelation.ADD_OR_REMOVE_ONE,
        REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
    }[part.adjacency]


def _gaussian(part: Part, grid: float) -> Any:
    """Always under `zero_out`: `parts` has merged all Gaussians into that."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(
        part.event.noise_multiplier, value_discretization_interval=grid
    )


def _laplace(part: Part, grid: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    from tacit.accounting.events import pure_local

    pure = distance(part.adjacency) / part.event.noise_multiplier
    if pure > _LARGE:  # the library's grid would have a million points or more
        return _pure(Part(pure_local(pure), part.adjacency), grid)
    return pld.from_laplace_mechanism(
        part.event.noise_multiplier,
        sensitivity=distance(part.adjacency),
        value_discretization_interval=grid,
    )


def _poisson(part: Part, grid: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    rate = part.event.sampling_probability
    noise_multiplier = part.event.event.noise_multiplier
    if part.adjacency == ZERO_OUT:
        return profiles.poisson_loss(
            rate=rate, noise_multiplier=noise_multiplier, grid=grid
        )
    return pld.from_gaussian_mechanism(
        noise_multiplier,
        sampling_prob=rate,
        value_discretization_interval=grid,
        neighboring_relation=_relation(part),
    )


def _truncated(part: Part, grid: float) -> Any:
    """The loss of a Poisson sample whose cohort is cut at a public size."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_truncated_subsampled_gaussian_mechanism(
        part.event.dataset_size,
        part.event.sampling_probability,
        part.event.truncated_batch_size,
        part.event.noise_multiplier,
        value_discretization_interval=grid,
        neighboring_relation=_relation(part),
    )


def _without_replacement(part: Part, grid: float) -> Any:
    """Cohorts of fixed size: the tight profile, which the library lacks (trap T4)."""
    if part.adjacency != REPLACE_ONE:
        raise Refused(
            "a cohort of fixed size has an account under replace_one only; "
            "state it so, or sample by independent coins (Poisson)"
        )
    event = part.event
    return profiles.sampled_loss(
        rate=event.sample_size / event.source_dataset_size,
        noise_multiplier=event.event.noise_multiplier,  # sigma / (2 S), see `events`
        grid=grid,
    )


def _padded(part: Part, grid: float) -> Any:
    return profiles.sampled_loss(
        rate=1.0 - part.event.padding,
        # `sampled_loss` takes sigma over the distance between two neighbours.
        noise_multiplier=part.event.event.noise_multiplier / distance(part.adjacency),
        grid=grid,
    )


def _pure(part: Part, grid: float) -> Any:
    """The loss of a local release; every input is legal, so removals are covered."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    if part.event.epsilon > _LARGE:  # all but e^-50 of the mass is at epsilon itself
        at = math.ceil(part.event.epsilon / grid)
        return pld.PrivacyLossDistribution.create_from_rounded_probability(
            {at: 1.0}, 0.0, grid
        )
    return pld.from_randomized_response(
        part.event.noise,
        part.event.choices,
        value_discretization_interval=grid,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )


def _shuffled(part: Part, grid: float) -> Any:
    made = shuffling.shuffled(part.event.epsilon, part.event.reports)
    return made.rounded(max(grid / _FINER, made.step))
