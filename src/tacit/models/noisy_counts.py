"""What noisy counts say about the true ones: the prior that all of them suggest.

    c   true + normal noise of deviation s, for each item of a catalog
    g   a grid of possible true counts, from 0 to a little above the largest c
    π   how many items have each true count: a likely prior on the grid, found by a few
        steps of expectation maximisation over all c

    E[true | c]   under that prior: what to expect of an item seen at c
    found(s)      the true count of the K items with the largest noisy counts

Most of a catalog is hardly liked at all, and of so many items noise lifts some to the
top. The prior knows how many there are, so the expected count of an item that stands
among them is pulled down, while one far above keeps what it has. All of it follows from
released counts and the known noise, so it costs no privacy.

Source: Robbins 1956 and Kiefer and Wolfowitz 1956, the nonparametric maximum likelihood
of a mixture; Efron 2011 for its use after selection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtr, ndtri

Counts = Float64[np.ndarray, "items"]
Grid = Float64[np.ndarray, "grid"]

_GRID = 120  # possible true counts, each a few percent above the last
_BINS = 800  # of the noisy counts; a bin is far narrower than the noise
# Of expectation maximisation, from a prior that is even over the logarithm of counts.
# With many more the prior becomes a few peaks, forgets the many items that stand a
# little below the noise, and foretells that counting on would find nothing.
_STEPS = 15
_SMALLEST = 0.02  # of the noise: a true count that is as good as none
_ALIKE = 0.01  # of a logarithm: known counts that far apart are told apart
_NEVER = 1e-300  # a density that is not zero, so that none is divided by zero


@dataclass(frozen=True, eq=False)
class CountPrior:
    """How many items have each possible true count."""

    grid: Grid
    shares: Grid  # of the catalog, adding up to 1
    n_items: int

    @classmethod
    def of(cls, counts: Counts, deviation: float) -> Self:
        """A smooth prior under which these noisy counts are likely."""
        top = 1.05 * max(float(counts.max()), 4 * deviation)
        spread = np.geomspace(_SMALLEST * deviation, top, _GRID)
        grid = np.concatenate([np.zeros(1), spread])
        sizes, edges = np.histogram(counts, _BINS)
        middles, sizes = (edges[:-1] + edges[1:])[sizes > 0] / 2, sizes[sizes > 0]
        likely = _density(middles, grid, deviation)
        shares = np.full(len(grid), 1 / len(grid))
        for _ in range(_STEPS):
            belongs = likely * shares
            belongs /= belongs.sum(axis=1, keepdims=True)
            shares = sizes @ belongs / len(counts)
        return cls(grid, shares, len(counts))

    @classmethod
    def known(cls, true: Counts) -> Self:
        """The true counts themselves; those within a percent share their mean."""
        true = np.sort(true)  # the last point of a grid is the largest count
        steps = np.floor(np.log(np.maximum(true, _NEVER)) / _ALIKE)
        _, which, sizes = np.unique(steps, return_inverse=True, return_counts=True)
        means = np.bincount(which, weights=true) / sizes
        return cls(means, sizes / len(true), len(true))

    def expected(self, counts: Counts, deviation: float) -> Counts:
        """The expected true count of each item; it grows with the noisy one."""
        likely = _density(counts, self.grid, deviation) * self.shares
        return np.asarray(likely @ self.grid / likely.sum(axis=1))

    def found(self, deviation: float, *, best: int) -> float:
        """The true count of the `best` items, chosen under this much noise.

        An item is chosen if its noisy count is above a line; the line is where as many
        are chosen as there are places.
        """
        best = min(best, self.n_items)
        low, high = -20 * deviation - 1.0, float(self.grid[-1]) + 20 * deviation + 1.0
        for _ in range(100):  # halves: the line is exact to the last digits
            line = (low + high) / 2
            chance = ndtr((self.grid - line) / max(deviation, _NEVER))
            if self.n_items * float(self.shares @ chance) > best:
                low = line
            else:
                high = line
        return self.n_items * float((self.shares * chance) @ self.grid)

    def share_found(self, deviation: float, *, best: int, least: float) -> float:
        """What is found under this much noise, over what is under the least noise."""
        possible = self.found(least, best=best)
        return self.found(deviation, best=best) / possible if possible > 0 else 0.0


@dataclass(frozen=True)
class Counted:
    """How good counts are, and how much of a history is among the most counted items.

    `share_found` is the true count of the best items by these counts, over that of the
    best by counts of the least noise: 1 if counting more would bring nothing.
    `standing_out` is the number of items whose count noise alone would not make, and
    `per_history` the number of items of the head in a usual history.
    """

    share_found: float
    standing_out: float
    per_history: float


@dataclass(frozen=True)
class Counting:
    """Counts of so many users under noise, and what they are to be judged by."""

    users: float
    deviation: float
    least: float  # the deviation if the whole budget were spent on counts
    best: int  # places of a list, which counting must fill
    head: int  # items that would be related

    def judged(self, counts: Counts) -> Counted:
        """What these noisy counts show."""
        if self.deviation == 0:
            return self._counted(1.0, np.maximum(counts, 0.0), counts, len(counts))
        prior = CountPrior.of(counts, self.deviation)
        share = prior.share_found(self.deviation, best=self.best, least=self.least)
        expected = prior.expected(counts, self.deviation)
        out = standing_out(counts, self.deviation)
        return self._counted(share, expected, counts, out)

    def _counted(
        self, share: float, expected: Counts, counts: Counts, out: float
    ) -> Counted:
        head = np.argsort(-counts, kind="stable")[: self.head]
        of_head = float(expected[head].sum())
        of_all = float(counts.sum())
        return Counted(share, out, items_per_history(of_all, of_head, users=self.users))

    def foretold(self, true: Counts) -> Counted:
        """What counts will show on average, if these, in any order, are the true ones.

        >>> counting = Counting(10, deviation=1.0, least=0.5, best=1, head=1)
        >>> round(counting.foretold(np.array([9.0, 1, 0])).share_found, 3)
        1.0
        """
        prior = CountPrior.known(true)
        share = prior.share_found(self.deviation, best=self.best, least=self.least)
        line = _noise_line(len(true), self.deviation)
        above = prior.shares @ ndtr((prior.grid - line) / self.deviation) * len(true)
        of_head = prior.found(self.deviation, best=self.head)
        of_all = float(true.sum())
        per_history = items_per_history(of_all, of_head, users=self.users)
        return Counted(share, float(above), per_history)


def items_per_history(of_all: float, of_head: float, *, users: float) -> float:
    """How many items of the head a usual history has, from the sums of counts.

    A history of n items adds 1 / sqrt(n) to the count of each. So all counts add up to
    the users times a usual sqrt(n), and the counts of the head to the users times what
    a history has of the head, over sqrt(n). The product of the two, each over the
    number of users, is what is asked for.

    >>> items_per_history(40.0, 10.0, users=10)  # 16 items each, 4 of them in the head
    4.0
    """
    return max(of_all, 0.0) * of_head / users**2


def standing_out(counts: Counts, deviation: float) -> int:
    """How many items have a count that noise alone would not make.

    Noise alone would lift half an item above the line, on average.
    """
    return int((counts > _noise_line(len(counts), deviation)).sum())


def expected_counts(counts: Counts, deviation: float) -> Counts:
    """The expected true count of each item; the counts themselves without noise."""
    if deviation == 0 or not len(counts):
        return np.maximum(counts, 0.0)
    return CountPrior.of(counts, deviation).expected(counts, deviation)


def _noise_line(n_items: int, deviation: float) -> float:
    return deviation * float(ndtri(1 - 0.5 / max(n_items, 1)))


def _density(
    counts: Float64[np.ndarray, "some"], grid: Grid, deviation: float
) -> Float64[np.ndarray, "some grid"]:
    """The density of each noisy count at each true one, up to a factor per count."""
    off = -0.5 * ((counts[:, None] - grid) / deviation) ** 2
    # Relative to the nearest true count: a count far below zero is no zero by zero.
    return np.exp(off - off.max(axis=1, keepdims=True)) + _NEVER
