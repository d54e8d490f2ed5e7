"""What follows from users and noise alone: the head and the budget.

Nothing here looks at data, so all of it is known before anything is spent. The figures
were found on MovieLens 1M and are not tuned per epsilon (docs/methods/gram.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.models.eigenvalue_shrinkage import noise_edge
from tacit.models.noisy_counts import Counted
from tacit.tree import Arrays

COUNT_SHARE = 0.1  # of the budget, for counting: the least, and usually enough
_COUNT_MORE = 8.0  # counting gets this times the edge of the noise, up to 0.9
# A fit over catalogs: ridge = 1.2 (items * users)^-0.35 + 0.1 edge; see `ridge`.
_RIDGE, _RIDGE_POWER, _RIDGE_NOISE = 1.2, -0.35, 0.1
# Above this edge relations are noise on every set at hand, and everything is counted.
HOPELESS = 0.1
_ENOUGH = 0.9  # of what the whole budget would find by counting: then relations begin
MORE = 2 / 3  # of what is left, for counting again where the first was not enough
BEST = 100  # places of a list: what counting must find
# Relating pays if the edge of its noise over users is at most this times n², where n is
# the number of items of the head in a usual history. Two things grow with n: how far a
# direction stands out from the noise, and how well one history shows where it lies on
# it. On validation users it paid up to .0066 and lost from .0100 on (docs, same page).
_PAYS = 0.008
# Relations show tastes if the strongest direction has this part of the edge of their
# noise. A smaller part would gain more on average, and with .3 and less some lists fall
# below private popularity (docs, same page).
_SHOWN = 1 / 3
# Loadings need histories of so many items of the head, because of fewer a taste is
# mostly each item itself; or an edge of at most this times n²: then tastes are clear.
_TASTES_FROM, _TASTES_CLEAR = 4.0, 0.001
_OWN_FROM = 6.0  # items of the head per history: with fewer, own parts are taken out
_POPULAR = 0.1  # of all histories have the most popular item: with fewer, they are not
_STANDING_OUT = 10  # items that noise alone would not lift: fewer have no relations
_LOAD_SHARE, _LOAD_PART = 0.5, 0.55  # of loadings, and the largest part of what is left
# Of the head's rule, where loadings follow for the others: r / 400, between these.
_LEAST_PART, _MOST_PART, _PER_PART = 0.5, 0.7, 400
_LOADED = 2  # times the head's rule: the items that get loadings
EVERY_ITEM = 2**31 - 1  # more than any catalog has
MOST_LOADINGS = 20_000_000  # numbers of a model: 160 MB
# One direction is loaded for 22 items of the head's rule r, or for 5600 / r if more.
_HEAD_PER_TASTE, _SQUARE_PER_TASTE = 22, 5600
_DIRECTIONS_PER_CONTENT = 8  # one in 8 directions of the head lies within content
_HEAD, _USERS_TO_NOISE = 600, 4743.0  # the head is 600 where users / s is 4743
FEWEST_HEAD = 16  # however loud the noise: some matrix must be left to decompose
_DOUBT = 0.03  # the edge over users from which weak directions count by certainty
_BROAD = 0.02  # the edge of the noise over users at which content weighs most


@dataclass(frozen=True)
class Evidence:
    """What a sum of relations rests on: how many users, under how much noise."""

    users: float
    variance: float  # of the noise on its diagonal

    @classmethod
    def of(cls, memory: Arrays, what: str = "") -> Evidence:
        """The evidence on `what` that stands in a server's memory."""
        # Every checkpoint has these keys, and a refresh reads those of older versions.
        users, variance = (memory[what + n] for n in ("people", "variance"))
        return cls(float(users[0]), float(variance[0]))

    def arrays(self, what: str = "") -> dict[str, np.ndarray]:
        """The evidence on `what` as arrays for a server's memory."""
        return {
            what + "people": np.array([self.users]),
            what + "variance": np.array([self.variance]),
        }

    def __add__(self, other: Evidence) -> Evidence:
        """Evidence of two sums added up, whose noise is independent."""
        return Evidence(self.users + other.users, self.variance + other.variance)

    def times(self, weight: float) -> Evidence:
        """Evidence of the sum times a weight: noise grows with its square."""
        return Evidence(self.users * weight, self.variance * weight**2)

    def rounds(self, n: int) -> Evidence:
        """Evidence after `n` independent rounds like this one."""
        return Evidence(self.users * n, self.variance * n)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on the diagonal."""
        return math.sqrt(self.variance)

    def edge(self, side: int) -> float:
        """The largest eigenvalue that noise makes, over the number of users."""
        return noise_edge(side, self.deviation) / self.users

    def weight_beside(self, other: Evidence) -> float:
        """What to multiply this sum by before the other is added to it.

        A sum weighted by users / variance has the largest ratio of users to noise
        deviation: the root of the sum of both squared ratios (Cauchy and Schwarz). So
        neither sum is ever worse off for the other. Without noise the weight is 1.
        """
        if self.variance == 0 or other.variance == 0:
            return 1.0
        return self.users / self.variance / (other.users / other.variance)


def head_size(known: Evidence, *, most: int) -> int:
    """How many items can be related: it grows with users over noise."""
    if known.variance == 0:
        return most
    size = _HEAD * math.sqrt(known.users / known.deviation / _USERS_TO_NOISE)
    return min(most, max(FEWEST_HEAD, int(size)))


def count_share(edge: float) -> float:
    """The share of the budget for counting: more where little can be related."""
    return min(1 - COUNT_SHARE, max(COUNT_SHARE, _COUNT_MORE * edge))


def first_count_share(edge: float) -> float:
    """The share of the first counting where more may follow: all if all is noise."""
    return 1.0 if edge > HOPELESS else count_share(edge)


def load_share(counting: float) -> float:
    """The share of a third sum, after counting with this share of the budget."""
    return min(_LOAD_SHARE, _LOAD_PART * (1 - counting))


def is_enough(
    counted: Counted, *, edge: float, n_items: int, loads: bool = False
) -> bool:
    """Whether counting on would find little more, and relating would find tastes.

    `edge` is that of the noise of relating, over users; `loads` is whether loadings
    follow, which need longer histories. Where hardly an item stands out from the noise
    of the counts, it is never enough.

    >>> long, short = Counted(0.95, 50, 20.0), Counted(0.95, 50, 2.0)
    >>> is_enough(long, edge=0.05, n_items=99), is_enough(short, edge=0.05, n_items=99)
    (True, False)
    >>> some = Counted(0.95, 50, 3.0)
    >>> [is_enough(some, edge=0.05, n_items=99, loads=loads) for loads in (True, False)]
    [False, True]
    """
    n = counted.per_history
    has_tastes = n >= _TASTES_FROM or edge <= _TASTES_CLEAR * n**2
    return (
        counted.standing_out >= min(_STANDING_OUT, n_items // 2)
        and counted.share_found >= _ENOUGH
        and edge <= _PAYS * n**2
        and (has_tastes or not loads)
    )


def shows_tastes(strongest: float) -> bool:
    """Whether relations show tastes, so that a personal list is worth its noise.

    `strongest` is the strength of the strongest direction over the edge of the noise,
    without what items have in common with themselves.

    >>> shows_tastes(0.3), shows_tastes(0.35)
    (False, True)
    """
    return strongest >= _SHOWN


def own_part_taken_out(items_per_history: float, most_popular: float) -> float:
    """How much of what items have in common with themselves is taken off a strength.

    All of it where histories are short: there it is most of a direction that stands on
    popular items, and no taste. Next to none where they are long: there it is small,
    and taking it off cost Steam .012 at epsilon 8. Nor where the most popular item is
    in few histories: popularity has little to lose there, and short histories say much
    (citeulike-a, where one in twenty has it, lost .006 at epsilon 8).

    >>> own_part_taken_out(3.0, 0.2), own_part_taken_out(24.0, 0.2)
    (1.0, 0.0625)
    >>> own_part_taken_out(3.0, 0.05)
    0.25
    """
    is_short = min(1.0, (_OWN_FROM / max(items_per_history, 1e-300)) ** 2)
    return is_short * min(1.0, (most_popular / _POPULAR) ** 2)


def head_before_loads(size: int) -> int:
    """The rows to relate if loadings follow; `size` is the head's rule at that noise.

    The louder the noise, the fewer directions can be found, and few rows tell them.

    >>> head_before_loads(600), head_before_loads(240), head_before_loads(80)
    (420, 144, 40)
    """
    part = min(_MOST_PART, max(_LEAST_PART, size / _PER_PART))
    return max(FEWEST_HEAD, int(part * size))


def loads_shape(size: int) -> tuple[int, int]:
    """How many items get loadings, on how many directions.

    `size` is the head's rule at the noise that relations alone would have.

    >>> loads_shape(600), loads_shape(110)
    ((1200, 27), (220, 2))
    """
    few = min(size // _HEAD_PER_TASTE, size**2 // _SQUARE_PER_TASTE)
    return _LOADED * size, max(1, few)


def ridge(known: Evidence, *, n_items: int, side: int) -> float:
    """Ridge λ per user: the part of an eigenvalue that sampling and noise explain.

    It is larger for few users, few items or loud noise. The figures were found on
    catalogs of 100 to 3,500 items and 700 to 40,000 users (docs/methods/gram.md).
    """
    sampled = _RIDGE * (n_items * known.users) ** _RIDGE_POWER
    return float(sampled + _RIDGE_NOISE * known.edge(side))


def likely_directions(side: int) -> int:
    """The number of content directions in which tastes are looked for first."""
    return max(1, side // _DIRECTIONS_PER_CONTENT)


def lean(edge: float) -> float:
    """The weight t of public content: from 0 without noise to 1."""
    return min(1.0, edge / _BROAD)


def doubt(edge: float) -> float:
    """The power of its certainty by which a direction without loadings is weakened.

    Under loud noise such directions are next to nothing; under little noise they tell
    which items go together in pairs (Steam lost .0046 at epsilon 8 without them).

    >>> doubt(0.1), doubt(0.015), doubt(0.0)
    (1.0, 0.25, 0.0)
    """
    return min(1.0, (edge / _DOUBT) ** 2)
