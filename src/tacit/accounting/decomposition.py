"""Events taken apart: how often each elementary release happens.

Repetitions and lists are flattened, n Gaussians become one (their multipliers add as
z^-2), and what has several names gets one, so that equal releases are accounted for
together and once. Values no mechanism can have are refused here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit import check
from tacit.errors import BadValue, Refused

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

ZERO_OUT, REPLACE_ONE = "zero_out", "replace_one"
LEAST_NOISE = 1e-3  # less protects nothing: a single Gaussian of it has epsilon 500 000


@dataclass(frozen=True)
class Part:
    """One elementary release, under one adjacency."""

    event: DpEvent
    adjacency: str


Parts = dict[Part, int]  # each elementary release -> how often it happens


class NotPrivate(Exception):
    """One part protects nothing, so neither does the whole account."""


def take_apart(releases: Iterable[tuple[DpEvent, str]]) -> Parts | None:
    """The elementary releases of several, each under its own adjacency.

    None if one of them protects nothing. An event that is not known is refused.
    """
    found: Parts = {}
    try:
        for event, adjacency in releases:
            check.one_of((ZERO_OUT, REPLACE_ONE), adjacency=adjacency)
            _collect(event, str(adjacency), 1, found)
        return _with_one_gaussian(found)
    except NotPrivate:
        return None


def _collect(event: Any, adjacency: str, times: int, found: Parts) -> None:
    from tacit.accounting import dp_events as dp

    if isinstance(event, dp.NonPrivateDpEvent):
        raise NotPrivate
    if isinstance(event, dp.SelfComposedDpEvent):
        _collect(event.event, adjacency, times * _count(event.count), found)
    elif isinstance(event, dp.ComposedDpEvent):
        for one in event.events:
            _collect(one, adjacency, times, found)
    elif not isinstance(event, dp.NoOpDpEvent):
        leaf = _leaf(event)
        if leaf is not None:
            part = Part(leaf, adjacency)
            found[part] = found.get(part, 0) + times


def _count(count: int) -> int:
    check.count(count=count)
    return int(count)


def _leaf(event: Any) -> DpEvent | None:
    """The event by its one name, with values checked; None if it releases nothing."""
    known = _known()
    if type(event) not in known:
        names = ", ".join(sorted(kind.__name__ for kind in known))
        raise Refused(f"{type(event).__name__} has no accountant here; known: {names}")
    return known[type(event)](event)


def _known() -> dict[type, Callable[[Any], Any]]:
    from tacit.accounting import dp_events as dp
    from tacit.accounting import events

    return {
        dp.GaussianDpEvent: _gaussian,
        dp.LaplaceDpEvent: _laplace,
        dp.RandomizedResponseDpEvent: _randomized_response,
        dp.PoissonSampledDpEvent: _poisson,
        dp.TruncatedSubsampledGaussianDpEvent: _truncated,
        dp.SampledWithoutReplacementDpEvent: _without_replacement,
        dp.RepeatAndSelectDpEvent: _unchanged,
        dp.ZCDpEvent: _concentrated,
        events.FailureDpEvent: _unchanged,
        events.PaddedDpEvent: _padded,
        events.PureDpEvent: _unchanged,
        events.ShuffledDpEvent: _unchanged,
        events.SkellamDpEvent: _unchanged,
    }


def _unchanged(event: Any) -> Any:
    return event


def _gaussian(event: Any) -> Any:
    _noisy(event.noise_multiplier)
    return event


def _laplace(event: Any) -> Any:
    check.not_negative(noise_multiplier=event.noise_multiplier)
    if event.noise_multiplier == 0:  # any positive one has the pure epsilon 1 / it
        raise NotPrivate
    return event


def _concentrated(event: Any) -> Any:
    """zCDP; its rho is that of the neighbours which the release's adjacency names."""
    check.not_negative(rho=event.rho, xi=event.xi)
    return event if event.rho or event.xi else None


def _noisy(multiplier: float) -> float:
    check.not_negative(noise_multiplier=multiplier)
    if multiplier < LEAST_NOISE:
        raise NotPrivate
    return float(multiplier)


def _randomized_response(event: Any) -> Any:
    from tacit.accounting.events import PureDpEvent, randomized_response_epsilon

    if event.num_buckets == 1:  # the only answer there is tells nothing
        return None
    epsilon = randomized_response_epsilon(
        event.noise_parameter, choices=event.num_buckets
    )
    if epsilon == math.inf:
        raise NotPrivate
    return PureDpEvent(epsilon, event.num_buckets) if epsilon > 0 else None


def _poisson(event: Any) -> Any:
    from tacit.accounting import dp_events as dp

    rate = event.sampling_probability
    if rate == 0:
        return None
    check.rate(sampling_probability=rate)
    merged = _noisy(merged_multiplier(event.event, "a Poisson sample"))
    gaussian = dp.GaussianDpEvent(merged)
    # At rate 1 nothing is sampled, and the exact formula of the Gaussian applies.
    return gaussian if rate == 1 else dp.PoissonSampledDpEvent(rate, gaussian)


def _truncated(event: Any) -> Any:
    if 0 in (
        *(event.sampling_probability, event.truncated_batch_size),
        event.dataset_size,
    ):
        return None
    check.rate(sampling_probability=event.sampling_probability)
    check.count(
        truncated_batch_size=event.truncated_batch_size, dataset_size=event.dataset_size
    )
    _noisy(event.noise_multiplier)
    return event


def _without_replacement(event: Any) -> Any:
    from tacit.accounting import dp_events as dp

    population, size = event.source_dataset_size, event.sample_size
    check.count(source_dataset_size=population, sample_size=size)
    if size > population:
        raise BadValue(f"sample_size={size} must be <= {population}, the population")
    merged = _noisy(merged_multiplier(event.event, "a fixed-size sample"))
    if size == population:
        return dp.GaussianDpEvent(2.0 * merged)  # from sigma / (2 S) to sigma / S
    gaussian = dp.GaussianDpEvent(merged)
    return dp.SampledWithoutReplacementDpEvent(population, size, gaussian)


def _padded(event: Any) -> Any:
    from tacit.accounting import dp_events as dp
    from tacit.accounting.events import PaddedDpEvent

    merged = _noisy(merged_multiplier(event.event, "padding"))
    return PaddedDpEvent(event.padding, dp.GaussianDpEvent(merged))


def merged_multiplier(event: Any, around: str) -> float:
    """The multiplier of the one Gaussian that several on the same sample amount to.

    The library's loss accountant refuses a list here (trap T3, docs/privacy.md).
    """
    from tacit.accounting import dp_events as dp

    if isinstance(event, dp.GaussianDpEvent):
        return _noisy(event.noise_multiplier)
    if isinstance(event, dp.SelfComposedDpEvent):
        one = merged_multiplier(event.event, around)
        return one / math.sqrt(_count(event.count))
    if isinstance(event, dp.ComposedDpEvent) and event.events:
        return sum(merged_multiplier(e, around) ** -2 for e in event.events) ** -0.5
    if isinstance(event, dp.NonPrivateDpEvent):
        raise NotPrivate
    raise Refused(
        f"{around} of {type(event).__name__} has no account here, only Gaussians have"
    )


def _with_one_gaussian(found: Parts) -> Parts:
    """All Gaussians as one under `zero_out`: an exchange is a removal twice as far."""
    from tacit.accounting import dp_events as dp

    rest, precision = {}, 0.0  # precision: 1/z², which adds up over Gaussians
    for part, count in found.items():
        if isinstance(part.event, dp.GaussianDpEvent):
            reach = distance(part.adjacency)
            precision += count * (reach / part.event.noise_multiplier) ** 2
        else:
            rest[part] = count
    if not precision:
        return rest
    return {Part(dp.GaussianDpEvent(_noisy(precision**-0.5)), ZERO_OUT): 1, **rest}


def without_failures(parts: Parts) -> tuple[Parts, float]:
    """The releases that cannot fail, and the probability that any other does."""
    from tacit.accounting.events import FailureDpEvent

    rest, log_success = {}, 0.0
    for part, count in parts.items():
        if isinstance(part.event, FailureDpEvent):
            # In logarithms: 1 - 1e-12 a thousand times keeps all its digits.
            log_success += count * math.log1p(-part.event.probability)
        else:
            rest[part] = count
    return rest, -math.expm1(log_success)


def delta_left(delta: float, failure: float) -> float:
    """The delta for the rest of an account that fails with this probability.

    The whole has delta = failure + (1 - failure) * rest: a failure is a mixture with
    something that tells all.
    """
    if not failure:
        return delta
    if delta <= failure:
        raise Refused(
            f"something is told outright with probability {failure:.3g}, and "
            f"delta={delta} must be more than that; raise it, or choose a smaller one"
        )
    return (delta - failure) / (1.0 - failure)


def distance(adjacency: str) -> float:
    """How far a neighbouring data set moves a sum, in bounds of one contribution."""
    return 1.0 if adjacency == ZERO_OUT else 2.0


def deviations(part: Part) -> float:
    """1/z: how many deviations of its noise neighbours are apart in one release.

    Zero where noise has no deviation. A cohort of fixed size has noise over the
    distance of an exchange already (`events`).
    """
    from tacit.accounting import dp_events as dp

    event = getattr(part.event, "event", part.event)  # what was sampled, or itself
    multiplier = float(getattr(event, "noise_multiplier", math.inf))
    if isinstance(part.event, dp.SampledWithoutReplacementDpEvent):
        return 1.0 / multiplier
    return distance(part.adjacency) / multiplier
