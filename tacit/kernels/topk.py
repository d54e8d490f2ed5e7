"""Exact top-k scans; the twins of the plain functions in `serving/topk.py`."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

# Codes come in blocks of 64 bytes: with the length known, the inner loop becomes a few
# multiply-add instructions; at 16 or 32 it is unrolled too early and is 10x slower.
WIDTH = 64
_TILE = 256  # items coded at once
_LOOK = 32  # of them looked at together


@njit(cache=True)
def _holds(seen, first, last, item):  # type: ignore[no-untyped-def]
    """Whether the sorted seen[first:last] holds the item."""
    end = last
    while first < end:
        middle = (first + end) // 2
        if seen[middle] < item:
            first = middle + 1
        else:
            end = middle
    return first < last and seen[first] == item


@njit(cache=True)
def _insert(items, scores, filled, item, score):  # type: ignore[no-untyped-def]
    """Put an item behind all that score at least as much; gives the new length."""
    place = filled if filled < len(items) else len(items) - 1
    while place > 0 and scores[place - 1] < score:
        items[place], scores[place] = items[place - 1], scores[place - 1]
        place -= 1
    items[place], scores[place] = item, score
    return min(filled + 1, len(items))


@njit(cache=True, parallel=True)
def scan_rows(rows, offsets, seen, k):  # type: ignore[no-untyped-def]
    """The best k of each row without the seen: items, scores, how many."""
    items = np.empty((len(rows), k), np.int32)
    scores = np.empty((len(rows), k), rows.dtype)
    filled = np.zeros(len(rows), np.int64)
    for person in prange(len(rows)):
        n = 0
        for item in range(rows.shape[1]):
            score = rows[person, item]
            if n == k and score <= scores[person, k - 1]:
                continue
            if not _holds(seen, offsets[person], offsets[person + 1], item):
                n = _insert(items[person], scores[person], n, item, score)
        filled[person] = n
    return items, scores, filled


@njit(cache=True)
def _exact(user, factors, item):  # type: ignore[no-untyped-def]
    """The score in double precision, as four sums that run side by side."""
    a = b = c = d = 0.0
    whole = len(user) // 4 * 4
    row = factors[item]
    for f in range(0, whole, 4):
        a += np.float64(user[f]) * np.float64(row[f])
        b += np.float64(user[f + 1]) * np.float64(row[f + 1])
        c += np.float64(user[f + 2]) * np.float64(row[f + 2])
        d += np.float64(user[f + 3]) * np.float64(row[f + 3])
    for f in range(whole, len(user)):
        a += np.float64(user[f]) * np.float64(row[f])
    return (a + b) + (c + d)


@njit(cache=True)
def _coarse_query(user, blocks):  # type: ignore[no-untyped-def]
    """The query in whole steps, the step, and how many steps coarseness can hide.

    With v = size * code + e, |e| <= size / 2 a coordinate, and u = step * query + d:
    u·v = size * step * (query·code) + u·e + d·(size * code). By Cauchy-Schwarz the last
    two are at most size * √F (|u| / 2 + 127 |d|), which is size * step * margin.
    """
    n = len(user)
    largest, squares = 0.0, 0.0
    for f in range(n):
        largest = max(largest, abs(np.float64(user[f])))
        squares += np.float64(user[f]) ** 2
    # 127 * steps * n stays below 2**31, so that whole numbers never overflow.
    steps = min(32767, (2**31 - 1) // (127 * n))
    step = largest / steps if largest > 0 else 1.0
    query = np.zeros((blocks, WIDTH), np.int16)
    missing = 0.0
    for f in range(n):
        whole = np.rint(user[f] / step)
        query[f // WIDTH, f % WIDTH] = np.int16(whole)
        missing += (user[f] - whole * step) ** 2
    margin = np.sqrt(n) * (0.5 * np.sqrt(squares) + 127 * np.sqrt(missing)) / step
    # A thousandth more covers what rounding to single precision can add.
    return query, step, np.float32(margin * 1.001)


@njit(cache=True)
def _coarse_tile(codes, query, start, stop, tile):  # type: ignore[no-untyped-def]
    for item in range(start, stop):
        total = np.int32(0)
        for block in range(codes.shape[1]):
            for f in range(WIDTH):
                code, part = np.int32(codes[item, block, f]), np.int32(query[block, f])
                total = np.int32(total + np.int32(code * part))
        tile[item - start] = total


@njit(cache=True)
def _any_above(tile, sizes, start, stop, margin, bar):  # type: ignore[no-untyped-def]
    count = np.int32(0)
    for j in range(start, stop):
        at_most = sizes[j] * (np.float32(tile[j]) + margin)
        count = np.int32(count + np.int32(at_most > bar))
    return count > 0


@njit(cache=True)
def _scan(user, coarse, index, seen, start, stop, items, scores):  # type: ignore[no-untyped-def]
    """Fill items and scores with the best of a run of items; gives how many.

    Coarse codes rule most items out; whatever they cannot rule out is scored exactly.
    """
    query, step, margin = coarse
    factors, codes, sizes, unit = index
    tile = np.empty(_TILE, np.int32)
    n, k, bar = 0, len(items), np.float32(-np.inf)
    for first in range(start, stop, _TILE):
        last = min(first + _TILE, stop)
        _coarse_tile(codes, query, first, last, tile)
        size = sizes[first:last]
        for begin in range(0, last - first, _LOOK):
            end = min(begin + _LOOK, last - first)
            if n == k and not _any_above(tile, size, begin, end, margin, bar):
                continue
            for j in range(begin, end):
                at_most = size[j] * (np.float32(tile[j]) + margin)
                if n == k and at_most <= bar:
                    continue
                if _holds(seen, 0, len(seen), first + j):
                    continue
                score = _exact(user, factors, first + j)
                if n < k or score > scores[k - 1]:
                    n = _insert(items, scores, n, first + j, score)
                    if n == k:
                        bar = np.float32(scores[k - 1] / (step * unit))
    return n


@njit(cache=True, parallel=True)
def scan_codes(user, index, seen, k, runs):  # type: ignore[no-untyped-def]
    """The best k of one person, the catalog cut into runs that go side by side."""
    n_items, blocks, _ = index[1].shape
    coarse = _coarse_query(user, blocks)
    items = np.empty((runs, k), np.int32)
    scores = np.empty((runs, k), np.float64)
    filled = np.zeros(runs, np.int64)
    for run in prange(runs):
        start, stop = run * n_items // runs, (run + 1) * n_items // runs
        filled[run] = _scan(
            user, coarse, index, seen, start, stop, items[run], scores[run]
        )
    n = filled[0]
    for run in range(1, runs):  # in the order of items: of equals the first stays
        for j in range(filled[run]):
            if n < k or scores[run, j] > scores[0, k - 1]:
                n = _insert(items[0], scores[0], n, items[run, j], scores[run, j])
    return items[0, :n], scores[0, :n]


@njit(cache=True, parallel=True)
def scan_codes_each(users, index, offsets, seen, k):  # type: ignore[no-untyped-def]
    """The best k of each person: items, scores, how many."""
    n_items, blocks, _ = index[1].shape
    items = np.empty((len(users), k), np.int32)
    scores = np.empty((len(users), k), np.float64)
    filled = np.zeros(len(users), np.int64)
    for p in prange(len(users)):
        coarse = _coarse_query(users[p], blocks)
        held = seen[offsets[p] : offsets[p + 1]]
        filled[p] = _scan(
            users[p], coarse, index, held, 0, n_items, items[p], scores[p]
        )
    return items, scores, filled
