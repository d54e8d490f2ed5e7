"""k-ary randomised response: say the value, or with a known chance any other one.

With chance L the value is forgotten and one of the k is drawn, each with chance u_r of
about 1/k, whatever the value is. So a report r is said with chance L u_r, and with
1 - L more if it is true, and two values differ by a factor of at most

    1 + (1 - L) / (L u)  <=  e^eps        u = floor(2^64 / k) / 2^64, the least u_r

L is the least multiple of 2^-64 for which that holds (`integer_coins`): bias is paid
for. The exact response is L = k / (e^eps + k - 1) and u = 1/k. This one is no louder at
any other factor either, so its exact privacy loss is an account of this one too: the
chance of r beyond a factor f, (1 - L) - (f - 1) L u_r, is linear in f and not larger at
f = 1, where L decides, nor at e^eps, where it is not above 0.

Probabilities are written with e^-epsilon, so that no epsilon overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike

from tacit import arrays, check
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms import integer_coins

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True)
class RandomizedResponse:
    """Reports a value out of `choices`, or with a known chance one of the others.

    Guarantee: `epsilon` pure local DP for the value, in every view.
    Assumes: nothing of the value. Each report of a client is a release of its own.
    Source: Warner 1965; Kairouz, Oh and Viswanath 2014 for more than two choices.
    """

    epsilon: float
    choices: int

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.count(choices=self.choices)
        check.at_least(2, choices=self.choices, remedy="one choice says nothing")

    @property
    def keep(self) -> float:
        """The chance that the report is the true value."""
        return 1.0 / (1.0 + (self.choices - 1) * math.exp(-self.epsilon))

    @property
    def other(self) -> float:
        """The chance that the report is one given other value."""
        return math.exp(-self.epsilon) * self.keep

    @property
    def event(self) -> DpEvent:
        """The event of one report: k-ary randomised response, exactly."""
        from tacit.accounting.events import pure_local

        return pure_local(self.epsilon, choices=self.choices)

    def likelihoods(self) -> Float64[np.ndarray, "values reports"]:
        """The chance of every report, for every value."""
        table = np.full((self.choices, self.choices), self.other)
        np.fill_diagonal(table, self.keep)
        return table

    def privatize(self, values: ArrayLike, keys: Keys) -> Int64[np.ndarray, "clients"]:
        """One reported value per client."""
        sizes = np.full(len(keys), self.choices, np.int64)
        return respond(values, keys, sizes=sizes, epsilon=self.epsilon)

    def counts(self, reports: ArrayLike) -> Int64[np.ndarray, "choices"]:
        """How often each value was reported; counts of several batches may be added."""
        said = arrays.integers(reports, "reports", below=self.choices)
        return np.bincount(said.astype(np.int64), minlength=self.choices)

    def estimate(self, counts: ArrayLike) -> Float64[np.ndarray, "choices"]:
        """How frequent each value is among the clients: unbiased, may be negative."""
        seen = arrays.integers(counts, "counts", below=2**62)
        if len(seen) != self.choices or not seen.sum():
            raise BadValue(
                f"{len(seen)} counts of {seen.sum()} reports; give a count for each of "
                f"the {self.choices} choices, from at least one report"
            )
        return (seen / seen.sum() - self.other) / self._contrast

    def variance(self, frequency: float, *, reports: int) -> float:
        """The variance of the estimate of one true frequency, the clients given."""
        check.count(reports=reports)
        truths = frequency * self.keep * (1.0 - self.keep)
        lies = (1.0 - frequency) * self.other * (1.0 - self.other)
        return (truths + lies) / (reports * self._contrast**2)

    @property
    def _contrast(self) -> float:
        return -math.expm1(-self.epsilon) * self.keep  # keep - other


def respond(
    values: ArrayLike,
    keys: Keys,
    *,
    sizes: Int64[np.ndarray, "clients"],
    epsilon: float,
) -> Int64[np.ndarray, "clients"]:
    """Randomised response with a number of choices of its own for every client.

    A client with one choice can only say that one.
    """
    value = one_of_each(values, sizes)
    kinds, which = np.unique(sizes, return_inverse=True)
    # Compared with `<=` the last of them: 2^64 itself is no word.
    last = [integer_coins.lies(epsilon, int(size)) - 1 for size in kinds]
    forgets = keys.at("forget").bits(1)[:, 0] <= np.array(last, np.uint64)[which]
    # Drawn for everyone, forgetful or not: the work does not depend on the value.
    drawn = keys.at("any").integers(1, below=sizes)[:, 0]
    return np.where(forgets, drawn, value)


def one_of_each(
    values: ArrayLike, sizes: Int64[np.ndarray, "clients"]
) -> Int64[np.ndarray, "clients"]:
    """Values that each client's choices have; others are refused."""
    value = arrays.integers(values, "values", below=2**62).astype(np.int64)
    if value.shape != sizes.shape:
        raise BadValue(f"{len(value)} values for {len(sizes)} clients; give one each")
    if (sizes < 1).any() or (value >= sizes).any():
        raise BadValue(
            "every value must be in [0, choices), and every client have a choice"
        )
    return value
