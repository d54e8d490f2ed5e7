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


def share_found(counts: Counts, *, deviation: float, best: int, least: float) -> float:
    """How good the order of these counts is, next to counts of less noise.

    The true count of the `best` items by these counts, over that of the best by counts
    whose noise has the deviation `least`: 1 if counting more would bring nothing.
    """
    if deviation == 0:
        return 1.0
    prior = CountPrior.of(counts, deviation)
    return prior.share_found(deviation, best=best, least=least)


def foretold(
    true: Counts, *, deviation: float, best: int, least: float
) -> tuple[float, float]:
    """What `share_found` and `standing_out` will be, on average, of such true counts.

    >>> share, n = foretold(np.array([9.0, 1, 0]), deviation=1.0, best=1, least=0.5)
    >>> round(share, 3), round(n, 1)
    (1.0, 1.7)
    """
    prior = CountPrior(true, np.full(len(true), 1 / len(true)), len(true))
    share = prior.share_found(deviation, best=best, least=least)
    above = ndtr((true - _noise_line(len(true), deviation)) / deviation)
    return share, float(above.sum())


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
