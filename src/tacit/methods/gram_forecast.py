"""What a plan foretells of Gram: its gain over private popularity, as a range.

    gain   NDCG@100 of Gram over that of private popularity with the same budget
    e      the edge of the noise over users if relating had all but a usual counting
    x      log(HOPELESS / e), at least 0: how far it is below a hopeless edge
    f      how steeply counts fall with the rank: the count of rank k goes as k^-f
    c      the strength of a taste, per user and item of a usual history, that nine sets
           in ten have: the strongest direction is then c history / e of the edge

Before training nobody knows the counts, and usual histories are known to a rounding. So
the very rules of the run are asked beforehand: `gram_heuristics.is_enough` of nine
usual catalogs (flat, usual and steep ones, each with three lengths of a history), and
`shows_tastes` of a taste of that strength. Then, in logarithms,

    never relates    -margin  to  margin
    may not relate,
    or find a taste  -margin  to  slope x + margin, and no wider than log 1.6
    always does both above 0  to  slope x + margin or `most`, and no wider than log 1.6

The slope, `most`, the f and c are fitted to gains that were measured on sets of data
and invented worlds (docs/methods/gram.md). The margin is what `compare` itself cannot
tell: with a few hundred test users a ratio of two means has a standard error of two or
three percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from tacit.methods.gram_heuristics import HOPELESS, shows_tastes

HISTORIES = (5, 10, 20, 50, 100)  # items of a usual history, as it may be declared
USUAL_HISTORY = 20  # where nobody declares it
WIDEST = 1.6  # the upper end of a range over the lower
_MARGIN = 0.05  # of a logarithm
_LEAST_GAIN = 1.01  # the lower end where relating is certain
_FAR = 1.1  # the lower end from which on it is called far better
_ROUNDED = math.sqrt(2)  # a history, over what it was rounded to


@dataclass(frozen=True)
class Fit:
    """The constants that are fitted to gains on sets of data."""

    slope: float  # of the upper end over x
    most: float  # logarithm of the largest upper end
    fall: float  # f of a usual catalog
    spread: float  # between usual and steep catalogs: a factor of f
    taste: float  # c

    @property
    def falls(self) -> tuple[float, float, float]:
        """How counts of a flat, a usual and a steep catalog fall with the rank."""
        return self.fall / self.spread, self.fall, self.fall * self.spread


FIT = Fit(slope=0.3, most=0.6, fall=0.7, spread=1.39, taste=0.000245)


@dataclass(frozen=True)
class Gain:
    """A range of the gain over private popularity."""

    low: float
    high: float
    never_relates: bool = False

    @property
    def words(self) -> str:
        """What to expect, in words."""
        if self.never_relates:
            return "a list like private popularity, the same for everyone"
        if self.low <= 1:
            return "a list like private popularity, or better and personal"
        if self.low < _FAR:
            return "personal lists, better than private popularity"
        return "personal lists, far better than private popularity"

    def __str__(self) -> str:
        return f"{self.words} ({self.low:.2f} to {self.high:.2f} times its NDCG@100)"


def foretell(
    edge: float, relates: Sequence[bool], *, history: float, fit: Fit = FIT
) -> Gain:
    """The gain at this edge, where the rule relates in these of the usual catalogs.

    >>> foretell(0.01, [True, True], history=20).words
    'personal lists, far better than private popularity'
    >>> str(foretell(0.05, [True, False], history=20))[-33:]
    '(0.95 to 1.29 times its NDCG@100)'
    >>> foretell(0.01, [True, True], history=5).words
    'a list like private popularity, or better and personal'
    """
    if not any(relates):
        return Gain(math.exp(-_MARGIN), math.exp(_MARGIN), never_relates=True)
    width = math.log(WIDEST)
    high = fit.slope * max(0.0, math.log(HOPELESS / edge)) + _MARGIN
    finds_tastes = shows_tastes(fit.taste * history / edge)
    if not (all(relates) and finds_tastes):
        return Gain(math.exp(-_MARGIN), math.exp(min(high, width - _MARGIN)))
    high = min(high, fit.most)
    low = max(high - width, math.log(_LEAST_GAIN))
    return Gain(math.exp(low), math.exp(high))


def round_history(items: float) -> int:
    """The length of a usual history, rounded to one that may be declared.

    >>> round_history(17), round_history(80), round_history(1)
    (20, 100, 5)
    """
    return min(HISTORIES, key=lambda one: abs(math.log(max(items, 1.0) / one)))


def usual_history(lengths: Sequence[float]) -> float:
    """The usual length of these histories: the square of the mean root.

    A report has norm 1, so that a history of n items adds sqrt(n) to all counts.
    """
    return float(np.sqrt(np.asarray(lengths, np.float64)).mean() ** 2)


def possible_histories(usual: int) -> tuple[float, float, float]:
    """The shortest length that is rounded to this one, itself, and the longest."""
    return usual / _ROUNDED, float(usual), usual * _ROUNDED


def usual_counts(
    users: float, *, n_items: int, history: float, fall: float
) -> Float64[np.ndarray, "items"]:
    """The counts that items of a usual catalog have, the most frequent first.

    Histories of n items add up to sqrt(n) each, because a report has norm 1.
    """
    shares = np.arange(1, n_items + 1) ** -fall
    return np.asarray(users * math.sqrt(history) * shares / shares.sum())
