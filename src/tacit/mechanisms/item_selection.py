"""Which items there are, where nobody declared them: those that enough users have.

    client   1  name at most k of one's items, chosen by one's own coins
             2  of j named items each weighs floor(R / sqrt(j)) steps, R steps being 1
    sum      3  add whole Gaussian noise of deviation z R to every named item
             4  publish the items whose noisy sum reaches the threshold T

An item that only one user named has no sum without that user. It must not pass: T
is so high that none of up to k such items does, but with a probability that the account
takes from its delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64
from scipy.special import ndtri

from tacit import check, exact_sum
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key, Keys

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

STEPS = 2**16  # R: what a user weighs in all, in whole steps; a power of two
_MOST_NAMED = 2**16  # beyond, an item would weigh less than 2^8 steps

Sums = Int64[np.ndarray, "items"]
Noise = Callable[[int], Int64[np.ndarray, "n"]]  # so many whole draws


@dataclass(frozen=True)
class ItemSelection:
    """The items that enough users have, found under noise.

    Guarantee: a Gaussian release of `noise_multiplier` for a whole user, under
        zero_out, and a failure of probability `failure`: an item that the user alone
        has passes the threshold.
    Assumes: a trusted sum that publishes the selected items in an order of its own; the
        noise is round(z R g) of a normal g. Contributions, sums and threshold are whole
        numbers, with squares of at most R² per user, so that x + round(z R g) is
        round(x + z R g): what is published follows from the Gaussian mechanism.
    Source: Gopi et al. 2020, "Differentially Private Set Union", the weighted Gaussian
        algorithm and its threshold.
    """

    most: int  # k: items that one user names at the most
    noise_multiplier: float  # z
    failure: float  # probability that an item of one user alone is published

    def __post_init__(self) -> None:
        check.count(most=self.most)
        check.positive(noise_multiplier=self.noise_multiplier)
        check.fraction(failure=self.failure)
        if self.most > _MOST_NAMED:
            raise BadValue(f"most={self.most} must be <= {_MOST_NAMED}")

    # client

    def name(self, shards: Shards, keys: Keys) -> Shards:
        """At most `most` distinct items of each user, by the user's own coins."""
        return shards.at_most(self.most, keys)

    # sum

    def add_up(self, named: Shards) -> Sums:
        """The exact weight of every item, summed over all users, in whole steps.

        A client may lie: whoever names more than `most` items, or one twice, is as if
        they had named nothing.
        """
        owners, items = named.owners, named.items.astype(np.int64)
        pairs = owners * named.n_items + items
        distinct = np.unique(pairs) // max(named.n_items, 1)
        once = np.bincount(distinct, minlength=len(named))
        lengths = named.lengths
        weights = np.array([0, *self.weights], np.int64)
        fair = (once == lengths) & (lengths <= self.most)
        each = weights[np.where(fair, lengths, 0)]
        sums = np.zeros(named.n_items, np.int64)
        np.add.at(sums, items, each[owners])
        return sums

    def select(self, sums: Sums, noise: Noise) -> Int64[np.ndarray, "selected"]:
        """The items that pass, ascending; those that nobody named get no noise."""
        named = np.flatnonzero(sums)
        passes = sums[named] + noise(len(named)) >= self.threshold
        return named[passes]

    def noise(self, key: Key) -> Noise:
        """Whole Gaussian noise of a key: rounded exactly, so a release may use it."""
        drawn = exact_sum.Noise(key.secret_of())
        return lambda n: drawn.draw(self.deviation**2, n)

    @property
    def weights(self) -> list[int]:
        """The steps of each item of someone who names 1, 2, … k; squares sum to R²."""
        return [math.isqrt(STEPS * STEPS // j) for j in range(1, self.most + 1)]

    @property
    def deviation(self) -> int:
        """The noise's standard deviation in whole steps, rounded up from z R."""
        return math.ceil(self.noise_multiplier * STEPS)

    @cached_property
    def threshold(self) -> int:
        """The least whole sum that is published.

        Of j items that one user alone named, each passes if its noise reaches
        T - w_j - 1/2 before it is rounded; that any does has probability `failure` at
        the most, whatever j is.
        """
        log_success = math.log1p(-self.failure)
        reach = [
            w - self.deviation * float(ndtri(-math.expm1(log_success / j)))
            for j, w in enumerate(self.weights, start=1)
        ]
        return math.ceil(max(reach) + 0.5) + 1  # one step for rounding of these floats

    # account

    @property
    def event(self) -> DpEvent:
        """The event of the selected set: a Gaussian, and a failure."""
        from tacit.accounting.dp_events import ComposedDpEvent, GaussianDpEvent
        from tacit.accounting.events import FailureDpEvent

        gaussian = GaussianDpEvent(self.noise_multiplier)
        return ComposedDpEvent([gaussian, FailureDpEvent(self.failure)])

    @property
    def users_needed(self) -> float:
        """About how many users must name an item, and nothing else, for it to pass."""
        return self.threshold / STEPS
