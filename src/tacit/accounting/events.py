"""Events that dp-accounting has no word for; the rest of the vocabulary is its own.

A noise multiplier is sigma / S, S the bound on the norm of *one* contribution, under
every adjacency. With `replace_one` an exchange moves a sum by up to 2 S: the accountant
doubles, once, in one place (the library's two accountants disagree: trap T2,
docs/privacy.md). The one exception is the library's `SampledWithoutReplacementDpEvent`:
it has an account under `replace_one` only and holds sigma / (2 S); the sampler that
hands it out halves.
"""

from __future__ import annotations

import math

import attr

from tacit import check
from tacit.accounting.dp_events import DpEvent, GaussianDpEvent


@attr.frozen
class PureDpEvent(DpEvent):  # type: ignore[misc]
    """A local release of pure `epsilon`, as the randomised response that dominates it.

    Any mechanism of pure epsilon is dominated by binary randomised response (Kairouz,
    Oh and Viswanath 2015), so `choices=2` holds for all of them. For k-ary randomised
    response itself `choices=k` is exact and composes better.
    """

    epsilon: float
    choices: int = 2

    def __attrs_post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.count(choices=self.choices)
        check.at_least(2, choices=self.choices)

    @property
    def noise(self) -> float:
        """How often the library's randomised response ignores the truth."""
        # k / (e^epsilon + k - 1), written so that a large epsilon does not overflow
        small = math.exp(-self.epsilon)
        return self.choices * small / (1.0 + (self.choices - 1) * small)


@attr.frozen
class PaddedDpEvent(DpEvent):  # type: ignore[misc]
    """A release about one interaction that padding replaced with probability `padding`.

    Guarantee: amplifies the item-level guarantee of `event`, Gaussians only; the user
    level keeps the guarantee of `event` as it is.
    """

    padding: float
    event: DpEvent

    def __attrs_post_init__(self) -> None:
        check.fraction(padding=self.padding, remedy="without padding, use the event")


@attr.frozen
class ShuffledDpEvent(DpEvent):  # type: ignore[misc]
    """One report of pure local `epsilon`, among `reports` that a shuffler mixed.

    Assumes: at least `reports` honest reports in the same batch, one message each.
    """

    epsilon: float
    reports: int

    def __attrs_post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.count(reports=self.reports)


@attr.frozen
class SkellamDpEvent(DpEvent):  # type: ignore[misc]
    """Whole numbers plus Skellam noise of this total variance.

    `l1` and `l2` bound the norms of one contribution after rounding.
    """

    variance: float
    l1: float
    l2: float

    def __attrs_post_init__(self) -> None:
        check.positive(variance=self.variance, l1=self.l1, l2=self.l2)


@attr.frozen
class FailureDpEvent(DpEvent):  # type: ignore[misc]
    """With this probability everything about a user is told, else nothing.

    A release that is as good as another one unless something goes wrong, such as an
    item of one user that passes a threshold, is that other one and a failure.
    """

    probability: float

    def __attrs_post_init__(self) -> None:
        check.fraction(probability=self.probability)


def pure_local(epsilon: float, *, choices: int = 2) -> PureDpEvent:
    """A release of pure local `epsilon`; `choices=k` for k-ary randomised response."""
    return PureDpEvent(epsilon, choices)


def local_gaussian(sigma: float, *, diameter: float) -> GaussianDpEvent:
    """A vector released with Gaussian noise by its owner, for `replace_one`.

    `diameter` is the largest distance between two vectors that could be released; a
    ball that holds them all has at least half of it as radius.

    >>> local_gaussian(5.0, diameter=2.0)
    GaussianDpEvent(noise_multiplier=5.0)
    """
    check.positive(sigma=sigma, diameter=diameter)
    # `replace_one` doubles S, and here twice S is the diameter.
    return GaussianDpEvent(2.0 * sigma / diameter)


def randomized_response_epsilon(noise: float, *, choices: int) -> float:
    """The pure epsilon of the library's randomised response; infinite without noise.

    It keeps the truth with probability 1 - noise and else draws among all choices.
    """
    if not 0.0 <= noise <= 1.0:
        check.rate(noise=noise)
    # The truth comes with 1 - noise + noise / k, each other answer with noise / k.
    return math.inf if noise == 0 else math.log1p(choices * (1.0 - noise) / noise)
