"""Ranks by counting; the twins of the plain functions in `evaluation/ranking.py`."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from tacit.kernels.threads import parallel

_TILE = 1024  # scores worked on at once: 4 KiB of float32 stay in the nearest cache
_USERS = 64  # who share a tile's item factors while these are in the cache


@njit(cache=True)
def _count(row, n, mark):  # type: ignore[no-untyped-def]
    """How many of the first n are above the mark, and how many equal it."""
    above, tied = np.int32(0), np.int32(0)  # 32 bits: twice the lanes of 64
    for j in range(n):
        above = np.int32(above + np.int32(row[j] > mark))
        tied = np.int32(tied + np.int32(row[j] == mark))
    return above, tied


@njit(cache=True)
def _mark_out(out, first, last, user, seen_by):  # type: ignore[no-untyped-def]
    """Write the user beside each item that is out; gives how many there are."""
    n = 0
    for x in range(first, last):
        n += seen_by[out[x]] != user
        seen_by[out[x]] = user
    return n


@parallel()
def count_ranks(scores, out_offsets, out, offsets, targets):  # type: ignore[no-untyped-def]
    """Above and tied for each target without the items that are `out`.

    Also which targets are out themselves, and how many distinct items are.
    """
    above = np.zeros(len(targets), np.int64)
    tied = np.zeros(len(targets), np.int64)
    is_out = np.zeros(len(targets), np.bool_)
    n_out = np.zeros(len(scores), np.int64)
    for block in prange((len(scores) + _USERS - 1) // _USERS):
        seen_by = np.full(scores.shape[1], -1, np.int32)
        for p in range(block * _USERS, min((block + 1) * _USERS, len(scores))):
            n_out[p] = _mark_out(out, out_offsets[p], out_offsets[p + 1], p, seen_by)
            row = scores[p]
            for t in range(offsets[p], offsets[p + 1]):
                is_out[t] = seen_by[targets[t]] == p
                above[t], tied[t] = _count(row, len(row), row[targets[t]])
            for x in range(out_offsets[p], out_offsets[p + 1]):
                if seen_by[out[x]] != p:
                    continue
                seen_by[out[x]] = -1  # a repeat must not count again
                for t in range(offsets[p], offsets[p + 1]):
                    above[t] -= row[out[x]] > row[targets[t]]
                    tied[t] -= row[out[x]] == row[targets[t]]
    return above, tied, is_out, n_out


@njit(cache=True)
def _score(user, factors, item):  # type: ignore[no-untyped-def]
    total = user[0] * factors[0, item]
    for f in range(1, len(user)):
        total += user[f] * factors[f, item]
    return total


@njit(cache=True)
def _score_tile(user, factors, start, stop, tile):  # type: ignore[no-untyped-def]
    """As `_score` for a run of items, but for the last factor: bit for bit its sums.

    Two factors per pass halve the traffic of the tile; four were not faster.
    """
    n, f, last = stop - start, 1, len(user) - 1
    if last == 0:
        tile[:n] = 0.0
        return
    row, weight = factors[0, start:stop], user[0]
    for j in range(n):
        tile[j] = weight * row[j]
    while f + 2 <= last:
        a, b = factors[f, start:stop], factors[f + 1, start:stop]
        p, q = user[f], user[f + 1]
        for j in range(n):
            tile[j] = tile[j] + p * a[j] + q * b[j]
        f += 2
    if f < last:
        row, weight = factors[f, start:stop], user[f]
        for j in range(n):
            tile[j] += weight * row[j]


@njit(cache=True)
def _count_last(user, factors, start, stop, tile, mark):  # type: ignore[no-untyped-def]
    """Add the last factor and count in one pass; the sums are not written down."""
    above, tied = np.int32(0), np.int32(0)
    row, weight = factors[len(user) - 1, start:stop], user[len(user) - 1]
    for j in range(stop - start):
        score = tile[j] + weight * row[j]
        above = np.int32(above + np.int32(score > mark))
        tied = np.int32(tied + np.int32(score == mark))
    return above, tied


@parallel()
def count_factor_ranks(users, factors, out_offsets, out, offsets, targets):  # type: ignore[no-untyped-def]
    """As `count_ranks`, scores made tile by tile from transposed item factors."""
    n_items = factors.shape[1]
    above = np.zeros(len(targets), np.int64)
    tied = np.zeros(len(targets), np.int64)
    is_out = np.zeros(len(targets), np.bool_)
    n_out = np.zeros(len(users), np.int64)
    for block in prange((len(users) + _USERS - 1) // _USERS):
        first = block * _USERS
        last = min(first + _USERS, len(users))
        base = offsets[first]
        marks = np.empty(offsets[last] - base, factors.dtype)
        seen_by = np.full(n_items, -1, np.int32)
        for p in range(first, last):
            n_out[p] = _mark_out(out, out_offsets[p], out_offsets[p + 1], p, seen_by)
            for t in range(offsets[p], offsets[p + 1]):
                is_out[t] = seen_by[targets[t]] == p
                marks[t - base] = _score(users[p], factors, targets[t])
            for x in range(out_offsets[p], out_offsets[p + 1]):
                if seen_by[out[x]] != p:
                    continue
                seen_by[out[x]] = -1  # a repeat must not count again
                score = _score(users[p], factors, out[x])
                for t in range(offsets[p], offsets[p + 1]):
                    above[t] -= score > marks[t - base]
                    tied[t] -= score == marks[t - base]
        tile = np.empty(_TILE, factors.dtype)
        for start in range(0, n_items, _TILE):
            stop = min(start + _TILE, n_items)
            for p in range(first, last):
                _score_tile(users[p], factors, start, stop, tile)
                for t in range(offsets[p], offsets[p + 1]):
                    mark = marks[t - base]
                    more, same = _count_last(users[p], factors, start, stop, tile, mark)
                    above[t] += more
                    tied[t] += same
    return above, tied, is_out, n_out
