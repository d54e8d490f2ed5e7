"""How much a user may contribute: DP-VAE's construction of training data.

    d, ω, δ   dimension, error and probability of a bound on labelled examples
    B(p)      p/ω (d + ln 1/δ), or p/ω (d + 1 + ln 1/δ): the paper prints both
    p_k       a user's share of the bound, between p_min and 1

Users and items with fewer than B(p_min) events are dropped, each once and by the same
data; of users with more than B(1), so many are drawn. An item that is rated several
times gets one rating, the mean with weights 2t / (m (m + 1)) for the t-th of m.

The paper takes d for the number of items. Then B has nothing to do with how many events
users have: 33.7 to 33,686 on MovieLens 100K, where the paper prints [3, 1772]
(docs/errata/dpvae.md).

Source: Fang et al. 2022, Sections 3.2 and 4.1.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from tacit import check
from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.subset import restricted
from tacit.errors import BadValue
from tacit.keys import Key

_DRAW = Key.from_seed(0).at("contribution bounds")  # one draw for all experiments


@dataclass(frozen=True)
class ContributionBounds:
    """The least and the most events of a user. It looks at what users did.

    So it belongs into a simulation only.
    """

    least: float = 0.001  # p_min
    most: float = 1.0
    error: float = 0.05  # ω
    probability: float = 0.1  # δ
    dimension: int | None = None  # d; None: the number of items
    adds_one: bool = False  # d + 1 + ln 1/δ
    items: bool = True  # drop items below the bound as well

    def __post_init__(self) -> None:
        check.not_negative(least=self.least)
        check.rate(most=self.most)
        check.fraction(error=self.error, probability=self.probability)
        if self.dimension is not None:
            check.count(dimension=self.dimension)
        if self.least > self.most:
            raise BadValue(f"least={self.least} must be <= most={self.most}")

    def bound(self, share: float, *, n_items: int) -> float:
        """B(p): how many events a user with this share contributes.

        >>> round(ContributionBounds().bound(0.001, n_items=1682), 1)
        33.7
        >>> round(ContributionBounds(adds_one=True).bound(1.0, n_items=1682))
        33706
        """
        d = (self.dimension or n_items) + self.adds_one
        return share / self.error * (d + math.log(1 / self.probability))

    def of(self, dataset: Dataset) -> Dataset:
        """The data set within the bounds; users and items are numbered anew."""
        log = by_recency(dataset.interactions)
        fewest = self.bound(self.least, n_items=log.n_items)
        most = self.bound(self.most, n_items=log.n_items)
        users = np.flatnonzero(log.per_user >= fewest)
        left = np.bincount(log.take_users(users).items, minlength=log.n_items)
        items = np.flatnonzero(left >= (fewest if self.items else 1))
        if not len(users) or not len(items):
            raise BadValue(
                f"nobody has the {fewest:.1f} events that least={self.least} asks for; "
                "lower it, or set dimension"
            )
        log = log.keep(_drawn(log, math.floor(most)))
        return restricted(replace(dataset, interactions=log), users, items)


def by_recency(log: Interactions) -> Interactions:
    """One event per user and item, at its last time; later ratings weigh more.

    Of m ratings the t-th counts 2t / (m (m + 1)). Contexts are those of the last.
    """
    pair = log.users.astype(np.int64) * log.n_items + log.items
    _, group, counts = np.unique(pair, return_inverse=True, return_counts=True)
    if (counts == 1).all():
        return log
    order = np.argsort(group, kind="stable")  # a user's events stand in order of time
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    nth = np.empty(len(log), np.int64)
    nth[order] = np.arange(len(log)) - np.repeat(starts, counts) + 1
    m = counts[group]
    values = np.bincount(group, weights=log.values * (2 * nth / (m * (m + 1))))
    last = nth == m
    weighted = replace(log, values=values[group].astype(np.float32))
    return weighted.keep(last)


def best_share(
    shares: Iterable[float], precision: Callable[[float], float]
) -> tuple[float, float]:
    """The p_min of the highest precision, and that; the first of several.

    `precision` trains and measures with this p_min: on validation users, since the
    choice is one of the data. The paper raises it "gradually" from 0 to 1.
    """
    found = {share: precision(share) for share in sorted(shares)}
    if not found:
        raise BadValue("no share to choose from; give some in (0, 1]")
    best = max(found, key=lambda share: found[share])
    return best, found[best]


def _drawn(log: Interactions, most: int) -> np.ndarray:
    """Which events stay: all of a user who has at most so many, else a draw."""
    draws = _DRAW.each(np.arange(log.n_users)).uniform_ragged(log.per_user)
    order = np.lexsort((draws, log.users))
    nth = np.empty(len(log), np.int64)
    nth[order] = np.arange(len(log)) - np.repeat(log.offsets[:-1], log.per_user)
    return nth < most
