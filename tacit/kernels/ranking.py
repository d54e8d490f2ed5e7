"""Ranks by counting; the twins of the plain functions in `evaluation/ranking.py`."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

_TILE = 512  # scores worked on at once: 2 KiB of float32 stay in the first-level cache
_PEOPLE = 64  # who share a tile's item factors while these are in the cache


@njit(cache=True)
def _count(row, n, mark):  # type: ignore[no-untyped-def]
    """How many of the first n are above the mark, and how many equal it."""
    above, tied = np.int32(0), np.int32(0)  # 32 bits: twice the lanes of 64
    for j in range(n):
        above = np.int32(above + np.int32(row[j] > mark))
        tied = np.int32(tied + np.int32(row[j] == mark))
    return above, tied


@njit(cache=True, parallel=True)
def count_ranks(scores, out_offsets, out, offsets, targets):  # type: ignore[no-untyped-def]
    """Above and tied for each target, without the items that are `out`."""
    above = np.zeros(len(targets), np.int64)
    tied = np.zeros(len(targets), np.int64)
    for person in prange(len(scores)):
        row = scores[person]
        for t in range(offsets[person], offsets[person + 1]):
            mark = row[targets[t]]
            above[t], tied[t] = _count(row, len(row), mark)
            for x in range(out_offsets[person], out_offsets[person + 1]):
                above[t] -= row[out[x]] > mark
                tied[t] -= row[out[x]] == mark
    return above, tied


@njit(cache=True)
def _score(user, factors, item):  # type: ignore[no-untyped-def]
    total = user[0] * factors[0, item]
    for f in range(1, len(user)):
        total += user[f] * factors[f, item]
    return total


@njit(cache=True)
def _score_tile(user, factors, start, stop, tile):  # type: ignore[no-untyped-def]
    """As `_score` for a run of items: the same sums in the same order, bit for bit."""
    n = stop - start
    row, weight = factors[0, start:stop], user[0]
    for j in range(n):
        tile[j] = weight * row[j]
    for f in range(1, len(user)):
        row, weight = factors[f, start:stop], user[f]
        for j in range(n):
            tile[j] += weight * row[j]


@njit(cache=True, parallel=True)
def count_factor_ranks(users, factors, out_offsets, out, offsets, targets):  # type: ignore[no-untyped-def]
    """As `count_ranks`, scores made tile by tile from transposed item factors."""
    n_items = factors.shape[1]
    above = np.zeros(len(targets), np.int64)
    tied = np.zeros(len(targets), np.int64)
    for block in prange((len(users) + _PEOPLE - 1) // _PEOPLE):
        first = block * _PEOPLE
        last = min(first + _PEOPLE, len(users))
        base = offsets[first]
        tile = np.empty(_TILE, factors.dtype)
        marks = np.empty(offsets[last] - base, factors.dtype)
        for p in range(first, last):
            for t in range(offsets[p], offsets[p + 1]):
                marks[t - base] = _score(users[p], factors, targets[t])
            for x in range(out_offsets[p], out_offsets[p + 1]):
                score = _score(users[p], factors, out[x])
                for t in range(offsets[p], offsets[p + 1]):
                    pass
                    tied[t] -= score == marks[t - base]
        for start in range(0, n_items, _TILE):
            stop = min(start + _TILE, n_items)
            for p in range(first, last):
                _score_tile(users[p], factors, start, stop, tile)
                for t in range(offsets[p], offsets[p + 1]):
                    more, same = _count(tile, stop - start, marks[t - base])
                    above[t] += more
                    tied[t] += same
    return above, tied
