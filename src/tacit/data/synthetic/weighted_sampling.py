"""Picks without replacement, by weight, for many users and many items."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int64

from tacit.data.ragged import offsets_of
from tacit.data.synthetic.ground_truth import Oracle
from tacit.data.synthetic.ragged_draws import within
from tacit.keys import Keys

_WEIGHTS = 2**19  # held at a time: 4 MiB
_TRIES = 2  # draws per pick; who likes few things, or picks very many, needs more

Users = Int64[np.ndarray, "users"]
Counts = Int64[np.ndarray, "users"]


def pick(
    oracle: Oracle, users: Users, *, counts: Counts, keys: Keys, tries: int = _TRIES
) -> Int64[np.ndarray, "picks"]:
    """`counts[i]` different items of user i in the order of picking, end to end.

    Each is one of the items left, with probability proportional to its weight. Drawing
    with replacement and passing over repeats does that: given that a draw is none of
    the items picked, it falls on the others in proportion to their weights. Whoever
    lacks some after `tries * counts[i]` draws starts again with more, the same first.
    """
    draws = tries * counts
    drawn = _draw(oracle, users, draws, keys=keys)
    rows = np.repeat(np.arange(len(users)), draws)
    is_new = _is_first(rows * len(oracle.items) + drawn)
    found = np.bincount(rows[is_new], minlength=len(users))
    lacks = found < counts
    is_pick = within(found) < np.repeat(np.where(lacks, 0, counts), found)
    picks = np.empty(counts.sum(), np.int64)
    is_lacking = np.repeat(lacks, counts)
    picks[~is_lacking] = drawn[is_new][is_pick]
    if lacks.any():
        picks[is_lacking] = pick(
            oracle,
            users[lacks],
            counts=counts[lacks],
            keys=keys[lacks],
            tries=4 * tries,  # the same draws first, so picks made before stay
        )
    return picks


def _draw(
    oracle: Oracle, users: Users, n: Counts, *, keys: Keys
) -> Int64[np.ndarray, "draws"]:
    """`n[i]` items of user i by weight, with replacement."""
    size = max(1, _WEIGHTS // len(oracle.items))
    starts, uniform = offsets_of(n), keys.uniform_ragged(n)
    drawn = np.empty(len(uniform), np.int64)
    for first in range(0, len(users), size):
        sums = oracle.weights(users[first : first + size])
        np.cumsum(sums, axis=1, out=sums)
        for i, row in enumerate(sums, start=first):  # a row costs far more than a turn
            own = slice(starts[i], starts[i + 1])
            drawn[own] = np.searchsorted(row, uniform[own] * row[-1], side="right")
    return drawn


def _is_first(codes: Int64[np.ndarray, "draws"]) -> Bool[np.ndarray, "draws"]:
    """Whether each code occurs here for the first time."""
    is_first = np.zeros(len(codes), bool)
    is_first[np.unique(codes, return_index=True)[1]] = True
    return is_first
