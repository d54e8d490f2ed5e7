"""Exact top-k scans; the twins of the plain functions in `serving/topk.py`."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from tacit.kernels.threads import parallel

TILE = 1024  # items coded side by side, one row of codes a factor
GROUP = 8  # factors whose products are summed in 16 bits
_STEPS = 254  # of a group's query in all; rounding adds 4, and 127 * 258 < 2**15
_SHIFT = 3  # groups are rounded down to multiples of 8, so that 16 bits hold their sum
_DROPPED = 2**_SHIFT - 1  # at most, a group
_STEPS_IN_ALL = 2000  # of a whole query: 127 * 2000 / 8 and a unit per group < 2**15


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


@parallel()
def scan_rows(rows, offsets, seen, k):  # type: ignore[no-untyped-def]
    """The best k of each row without the seen: items, scores, how many."""
    items = np.empty((len(rows), k), np.int32)
    scores = np.empty((len(rows), k), rows.dtype)
    filled = np.zeros(len(rows), np.int64)
    for p in prange(len(rows)):
        n = 0
        for item in range(rows.shape[1]):
            score = rows[p, item]
            if n == k and score <= scores[p, k - 1]:
                continue
            if not _holds(seen, offsets[p], offsets[p + 1], item):
                n = _insert(items[p], scores[p], n, item, score)
        filled[p] = n
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
def _steps(user, step, n_rows):  # type: ignore[no-untyped-def]
    query = np.zeros(n_rows, np.int16)
    for f in range(len(user)):
        query[f] = np.int16(np.rint(user[f] / step))
    return query


@njit(cache=True)
def _coarse_query(user, n_rows):  # type: ignore[no-untyped-def]
    """The query in whole steps, the step, and the two parts of what coarseness hides.

    With v = size * code + e and u = step * query + d, the error of the coarse score is
    (step * query)·e + d·v. By Cauchy-Schwarz it is at most
    step * (|e| * for_error + |v| * for_norm).
    """
    most = 0.0
    for start in range(0, len(user), GROUP):
        total = 0.0
        for f in range(start, min(start + GROUP, len(user))):
            total += abs(np.float64(user[f]))
        most = max(most, total)
    step = most / _STEPS if most > 0 else 1.0
    query = _steps(user, step, n_rows)
    while np.abs(query).sum() > _STEPS_IN_ALL:
        step *= 1.125
        query = _steps(user, step, n_rows)
    squares, missing = 0.0, 0.0
    for f in range(len(user)):
        squares += np.float64(query[f]) ** 2
        missing += (user[f] / step - query[f]) ** 2
    # A little more covers what rounding to single precision can add.
    for_error = np.float32(1.001 * np.sqrt(squares))
    for_norm = np.float32(1.001 * np.sqrt(missing) + 0.01)
    return query, step, for_error, for_norm


@njit(cache=True)
def _coarse_group(codes, query, f, short):  # type: ignore[no-untyped-def]
    """Eight factors' products, summed in 16 bits: sixteen items per instruction."""
    a, b, c, d = codes[f], codes[f + 1], codes[f + 2], codes[f + 3]
    e, g, h, i = codes[f + 4], codes[f + 5], codes[f + 6], codes[f + 7]
    q, r, s, t = query[f], query[f + 1], query[f + 2], query[f + 3]
    u, v, w, x = query[f + 4], query[f + 5], query[f + 6], query[f + 7]
    for j in range(TILE):
        one = np.int16(np.int16(a[j] * q) + np.int16(b[j] * r))
        two = np.int16(np.int16(c[j] * s) + np.int16(d[j] * t))
        three = np.int16(np.int16(e[j] * u) + np.int16(g[j] * v))
        four = np.int16(np.int16(h[j] * w) + np.int16(i[j] * x))
        short[j] = np.int16(np.int16(one + two) + np.int16(three + four))


@njit(cache=True)
def _set(short, coarse):  # type: ignore[no-untyped-def]
    for j in range(TILE):
        coarse[j] = np.int16(short[j] >> _SHIFT)


@njit(cache=True)
def _add(short, coarse):  # type: ignore[no-untyped-def]
    for j in range(TILE):
        coarse[j] = np.int16(coarse[j] + np.int16(short[j] >> _SHIFT))


@njit(cache=True)
def _coarse_tile(codes, query, short, coarse):  # type: ignore[no-untyped-def]
    """The sums of all groups, in units of 2**_SHIFT."""
    _coarse_group(codes, query, 0, short)
    _set(short, coarse)
    for f in range(GROUP, len(codes), GROUP):
        _coarse_group(codes, query, f, short)
        _add(short, coarse)


@njit(cache=True)
def _bounds(coarse, lengths, dropped, for_error, for_norm, at_most):  # type: ignore[no-untyped-def]
    """No item of a tile scores above its bound, in steps."""
    sizes, errors, norms = lengths
    unit = np.float32(2**_SHIFT)
    for j in range(len(sizes)):
        most = unit * np.float32(coarse[j]) + dropped
        at_most[j] = sizes[j] * most + errors[j] * for_error + norms[j] * for_norm


@njit(cache=True)
def _exact_best(user, factors, places, items, scores):  # type: ignore[no-untyped-def]
    """Fill items and scores with the best of some places; gives how many."""
    exact = np.empty(len(places), np.float64)
    for i in range(len(places)):  # a loop of its own: rows come from memory together
        exact[i] = _exact(user, factors, places[i])
    n, k = 0, len(items)
    for i in range(len(places)):
        if n < k or exact[i] > scores[k - 1]:
            n = _insert(items, scores, n, places[i], exact[i])
    return n


@njit(cache=True)
def _scan(user, index, seen, first_tile, last_tile, items, scores):  # type: ignore[no-untyped-def]
    """Fill items and scores with the best of some tiles; gives how many.

    Coarse codes rule most items out; whatever they cannot rule out is scored exactly.
    """
    factors, codes, sizes, errors, norms = index
    if not np.isfinite(user).all():
        return 0
    query, _, for_error, for_norm = _coarse_query(user, codes.shape[1])
    dropped = np.float32(len(query) // GROUP * _DROPPED)
    short, coarse = np.empty(TILE, np.int16), np.empty(TILE, np.int16)
    at_most = np.empty(TILE, np.float32)
    places = np.empty((last_tile - first_tile) * TILE, np.int32)  # not ruled out yet
    bounds = np.empty(len(places), np.float32)
    k, n_places, n_sure, bar = len(items), 0, 0, np.float32(-np.inf)
    at_least = np.empty(k, np.float32)  # what the best k surely reach
    for tile in range(first_tile, last_tile):
        first, last = tile * TILE, min((tile + 1) * TILE, len(factors))
        lengths = sizes[first:last], errors[first:last], norms[first:last]
        _coarse_tile(codes[tile], query, short, coarse)
        _bounds(coarse, lengths, dropped, for_error, for_norm, at_most)
        for j in range(last - first):
            if at_most[j] <= bar or _holds(seen, 0, len(seen), first + j):
                continue
            places[n_places], bounds[n_places] = first + j, at_most[j]
            n_places += 1
            hidden = lengths[1][j] * for_error + lengths[2][j] * for_norm
            low = at_most[j] - 2 * hidden - lengths[0][j] * dropped
            if n_sure < k or low > at_least[k - 1]:
                n_sure = _insert(items, at_least, n_sure, first + j, low)
            if n_sure == k:
                # A little less: rounding must not raise it, nor cut off what is equal.
                bar = np.float32(at_least[k - 1] - 1e-5 * abs(at_least[k - 1]) - 1e-30)
    return _exact_best(
        user, factors, places[:n_places][bounds[:n_places] > bar], items, scores
    )


@njit(cache=True)
def scan_codes(user, index, seen, k):  # type: ignore[no-untyped-def]
    """The k best items of one user that are not seen, and their scores."""
    items, scores = np.empty(k, np.int32), np.empty(k, np.float64)
    n = _scan(user, index, seen, 0, len(index[1]), items, scores)
    return items[:n], scores[:n]


@parallel()
def scan_codes_in_runs(runs, user, index, seen, k):  # type: ignore[no-untyped-def]
    """As `scan_codes`, the catalog cut into runs that go side by side."""
    n_tiles = len(index[1])
    items = np.empty((runs, k), np.int32)
    scores = np.empty((runs, k), np.float64)
    filled = np.zeros(runs, np.int64)
    for run in prange(runs):
        start, stop = run * n_tiles // runs, (run + 1) * n_tiles // runs
        filled[run] = _scan(user, index, seen, start, stop, items[run], scores[run])
    n = filled[0]
    for run in range(1, runs):  # in the order of items: of equals the first stays
        for j in range(filled[run]):
            if n < k or scores[run, j] > scores[0, k - 1]:
                n = _insert(items[0], scores[0], n, items[run, j], scores[run, j])
    return items[0, :n], scores[0, :n]


@parallel()
def scan_codes_each(users, index, offsets, seen, k):  # type: ignore[no-untyped-def]
    """The k best items of each user, their scores, and how many there are."""
    n_tiles = len(index[1])
    items = np.empty((len(users), k), np.int32)
    scores = np.empty((len(users), k), np.float64)
    filled = np.zeros(len(users), np.int64)
    for p in prange(len(users)):
        held = seen[offsets[p] : offsets[p + 1]]
        filled[p] = _scan(users[p], index, held, 0, n_tiles, items[p], scores[p])
    return items, scores, filled
