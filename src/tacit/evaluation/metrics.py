"""Metrics of a ranking, one number per user; ties as their expected value.

Candidates with equal scores have no order, so every metric is its exact mean over all
orders of the tied: a constant scorer gets what a random order gets, not luck.

    hr@k          1 if any target is in the first k
    ndcg@k        sum of 1 / log2(rank + 1) over targets in the first k / its maximum
    recall@k      targets in the first k / min(k, targets)       (Liang et al. 2018)
    recall_all@k  targets in the first k / targets
    precision@k   targets in the first k / k
    mrr           1 / rank of the first target
    mrr_all       mean over targets of 1 / rank: what MIND calls MRR
    auc           share of (target, other candidate) pairs in the right order

Each target alone, without the user's other targets among its candidates (PrivRec):

    hr_each@k     share of the targets that are in the first k
    ndcg_each@k   mean over targets of 1 / log2(rank + 1), 0 beyond the first k
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from tacit import check
from tacit.errors import BadValue
from tacit.evaluation.ranking import Ranks

PerUser = Float64[np.ndarray, "users"]


@dataclass(frozen=True)
class Measure:
    """A metric's kind and, where it has one, its cut-off."""

    kind: str
    k: int | None

    @property
    def is_each(self) -> bool:
        """Whether each target is ranked alone."""
        return self.kind in _EACH

    def __call__(self, ranks: Ranks) -> PerUser:
        """One value of the metric per user."""
        if self.k is None:
            return _WHOLE[self.kind](ranks)
        return _CUT[self.kind](ranks, self.k)


def parse(name: str) -> Measure:
    """The measure that `name` stands for, such as `ndcg@100`.

    >>> parse("ndcg@100")
    Measure(kind='ndcg', k=100)
    >>> parse("ndcg")
    Traceback (most recent call last):
    tacit.errors.BadValue: metric 'ndcg' needs a cut-off; write for example 'ndcg@10'
    """
    kind, at, cutoff = name.partition("@")
    if kind not in {*_CUT, *_WHOLE, COVERAGE}:
        raise BadValue(f"metric {check.unknown(kind, _shown())}")
    if kind in _WHOLE:
        if at:
            raise BadValue(f"metric '{name}' has no cut-off; write '{kind}'")
        return Measure(kind, None)
    if not at:
        raise BadValue(
            f"metric '{name}' needs a cut-off; write for example '{kind}@10'"
        )
    if not re.fullmatch("[1-9][0-9]*", cutoff):
        raise BadValue(f"metric '{name}': the cut-off must be a whole number >= 1")
    return Measure(kind, int(cutoff))


def hr(ranks: Ranks, k: int) -> PerUser:
    """The probability that any target is in the first k places.

    Of a block of m tied candidates, t of them targets, s places are in the first k. No
    target gets one with probability C(m - t, s) / C(m, s), which is the product over
    i < t of (m - s - i) / (m - i); here the targets of a block are numbered by i.
    """
    i = _own_blocks(ranks).number
    missed = np.maximum(ranks.tied - _slots(ranks, k) - i, 0) / (ranks.tied - i)
    return 1.0 - np.multiply.reduceat(missed, ranks.offsets[:-1])


def ndcg(ranks: Ranks, k: int) -> PerUser:
    """Discounted gain in the first k places over the largest possible."""
    return _gain(ranks, k) / _gains(k)[np.minimum(ranks.n_targets, k)]


def recall(ranks: Ranks, k: int) -> PerUser:
    """Targets found in the first k places, of those that could be found there."""
    return _hits(ranks, k) / np.minimum(ranks.n_targets, k)


def recall_all(ranks: Ranks, k: int) -> PerUser:
    """Targets found in the first k places, of all targets."""
    return _hits(ranks, k) / ranks.n_targets


def precision(ranks: Ranks, k: int) -> PerUser:
    """Targets found in the first k places, of k."""
    return _hits(ranks, k) / k


def mrr(ranks: Ranks) -> PerUser:
    """One over the rank of each user's first target."""
    starts = ranks.offsets[:-1]
    first = np.minimum.reduceat(ranks.above, starts)
    is_first = ranks.above == np.repeat(first, ranks.n_targets)
    tied = np.maximum.reduceat(np.where(is_first, ranks.tied, 0), starts)
    blocks = np.stack([first, tied, np.add.reduceat(is_first, starts)], axis=1)
    # Most users share a few shapes of ties, and each shape is worked out once.
    distinct, which = np.unique(blocks, axis=0, return_inverse=True)
    means = [_first_reciprocal(*map(int, block)) for block in distinct]
    return np.array(means)[which.reshape(-1)]


def mrr_all(ranks: Ranks) -> PerUser:
    """The mean over targets of one over the rank, as in MIND's own evaluation."""
    most = int((ranks.above + ranks.tied).max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, most + 1))])
    # The mean of 1 / rank over the ranks that a block of ties covers.
    each = (harmonic[ranks.above + ranks.tied] - harmonic[ranks.above]) / ranks.tied
    return _sum(each, ranks) / ranks.n_targets


def auc(ranks: Ranks) -> PerUser:
    """The share of target and non-target pairs in the right order, ties one half.

    A user all of whose candidates are targets has no such pair and gets one half.
    """
    n = ranks.n_targets
    pairs = n * (ranks.n_candidates - n)
    above = _sum(ranks.above + (ranks.tied - 1) / 2, ranks)
    wrong = above - n * (n - 1) / 2  # the targets' own pairs are no mistakes
    return np.where(pairs > 0, 1.0 - wrong / np.maximum(pairs, 1), 0.5)


def hr_each(ranks: Ranks, k: int) -> PerUser:
    """Targets that are in the first k places when ranked alone, of all targets."""
    return recall_all(alone(ranks), k)


def ndcg_each(ranks: Ranks, k: int) -> PerUser:
    """Discounted gain in the first k places of a target alone, the mean over targets.

    Needs no normalization: the largest gain of a single target is 1.
    """
    return _gain(alone(ranks), k) / ranks.n_targets


def alone(ranks: Ranks) -> Ranks:
    """Where each target stands when the user's other targets are no candidates."""
    own = _own_blocks(ranks)
    return Ranks(
        ranks.offsets,
        ranks.above - own.before,
        ranks.tied - own.size + 1,
        ranks.n_candidates - ranks.n_targets + 1,
    )


COVERAGE = "coverage"  # belongs to the catalog and to no user: `coverage.py`

_CUT: Mapping[str, Callable[[Ranks, int], PerUser]] = {
    "hr": hr,
    "ndcg": ndcg,
    "recall": recall,
    "recall_all": recall_all,
    "precision": precision,
    "hr_each": hr_each,
    "ndcg_each": ndcg_each,
}
_EACH = frozenset({"hr_each", "ndcg_each"})
_WHOLE: Mapping[str, Callable[[Ranks], PerUser]] = {
    "mrr": mrr,
    "mrr_all": mrr_all,
    "auc": auc,
}


def _shown() -> list[str]:
    return [*(f"{kind}@k" for kind in (*_CUT, COVERAGE)), *_WHOLE]


def _slots(ranks: Ranks, k: int) -> Int64[np.ndarray, "targets"]:
    """How many of the first k places go to the block a target is tied in."""
    return np.clip(k - ranks.above, 0, ranks.tied)


def _hits(ranks: Ranks, k: int) -> PerUser:
    return _sum(_slots(ranks, k) / ranks.tied, ranks)


def _gain(ranks: Ranks, k: int) -> PerUser:
    """The discounted gain of a user's targets in the first k places, summed."""
    gains = _gains(k)
    first, last = np.minimum(ranks.above, k), np.minimum(ranks.above + ranks.tied, k)
    return _sum((gains[last] - gains[first]) / ranks.tied, ranks)


def _gains(k: int) -> Float64[np.ndarray, "k_and_one"]:
    """The gain of the first 0, 1, …, k places together."""
    # 1 / log2(rank + 1) at ranks 1, 2, … (Järvelin and Kekäläinen 2002)
    return np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(k) + 2.0))])


def _sum(values: Float64[np.ndarray, "targets"], ranks: Ranks) -> PerUser:
    return np.add.reduceat(values, ranks.offsets[:-1])


class _Blocks(NamedTuple):
    """A user's targets that are tied with each other, as seen by each of them."""

    before: Int64[np.ndarray, "targets"]  # of the user's targets, those that score more
    number: Int64[np.ndarray, "targets"]  # 0, 1, … within the block
    size: Int64[np.ndarray, "targets"]


def _own_blocks(ranks: Ranks) -> _Blocks:
    """Equal `above` of one user is an equal score, a smaller one a larger score."""
    if len(ranks.above) == len(ranks):  # one target each, and nothing to number
        zeros = np.zeros(len(ranks), np.int64)
        return _Blocks(zeros, zeros, zeros + 1)
    owners = np.repeat(np.arange(len(ranks)), ranks.n_targets)
    order = np.lexsort((ranks.above, owners))
    block = np.stack([owners, ranks.above])[:, order]
    starts_block = np.ones(len(order), bool)
    starts_block[1:] = (block[:, 1:] != block[:, :-1]).any(axis=0)
    number, position = np.cumsum(starts_block) - 1, np.arange(len(order))
    start, size = np.flatnonzero(starts_block)[number], np.bincount(number)[number]
    found = np.empty((3, len(order)), np.int64)
    found[:, order] = start - ranks.offsets[owners], position - start, size
    return _Blocks(*found)


def _first_reciprocal(above: int, tied: int, targets: int) -> float:
    """The mean of 1 / rank of the first of some targets among tied candidates.

    The first one is number j of the block with probability
    C(tied - 1 - j, targets - 1) / C(tied, targets); each follows from the one before.
    """
    j = np.arange(tied - targets)
    steps = (tied - targets - j) / (tied - 1 - j)
    chance = targets / tied * np.concatenate([[1.0], np.cumprod(steps)])
    return float((chance / (above + 1.0 + np.arange(len(chance)))).sum())
