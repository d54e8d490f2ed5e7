"""Rows of which nearly all numbers are zero: weighted, added, made unit vectors."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


# One thread each: beside the threads of the matrix products before and after, a second
# pool took a FedVAE gradient from 44 ms to 47 to 61 ms (bar 3, two cores).
@njit(cache=True, nogil=True)
def weighted_rows(matrix, offsets, columns, values, out):  # type: ignore[no-untyped-def]
    """Add to each user's row of `out` the matrix's rows `columns`, times `values`.

    The twin of `sparse @ matrix`; entries that are zero cost nothing.
    """
    for user in range(len(offsets) - 1):
        mine = out[user]
        for i in range(offsets[user], offsets[user + 1]):
            value = values[i]
            if value != 0:
                theirs = matrix[columns[i]]
                for j in range(len(mine)):
                    mine[j] += value * theirs[j]


@njit(cache=True, nogil=True)
def outer_sum(left, right, out):  # type: ignore[no-untyped-def]
    """The twin of `out = left.T @ right`; zero entries of `left` cost nothing.

    A row of `out` at a time: it stays in the nearest cache while it is added to.
    """
    n_users, rows = left.shape
    # A counting sort of the entries that are not zero, by row.
    ends = np.zeros(rows + 1, np.int64)
    for i in range(n_users):
        for row in range(rows):
            ends[row + 1] += left[i, row] != 0
    for row in range(rows):
        ends[row + 1] += ends[row]
    owners, places = np.empty(ends[rows], np.int32), ends[:-1].copy()
    for i in range(n_users):
        for row in range(rows):
            if left[i, row] != 0:
                owners[places[row]] = i
                places[row] += 1
    for row in range(rows):
        mine = out[row]
        mine[:] = 0
        for entry in range(ends[row], ends[row + 1]):
            owner = owners[entry]
            value, theirs = left[owner, row], right[owner]
            for j in range(len(theirs)):
                mine[j] += value * theirs[j]


@njit(cache=True, nogil=True)
def unit_rests(items, p, limits, factors):  # type: ignore[no-untyped-def]
    """How weighted histories without what is along p become unit vectors.

    `items` are offsets, columns and weights: the column of every event, or -1, and the
    weight of every column. A column that comes twice counts once, and is -1 from then
    on. `p` has norm 1. With `limits` (least, longer), rows and rests shorter than
    `least` are zero and all others 1 / `longer` long. A row is then factors[0] *
    weights, where the history has an item, minus factors[1] * p.

    The twin of `Relations._unit_rest`, by the few items of a row.
    """
    offsets, columns, weights = items
    least, longer = limits
    owner = np.full(len(p), -1)
    for user in range(len(factors)):
        square, popular = 0.0, 0.0
        for event in range(offsets[user], offsets[user + 1]):
            j = columns[event]
            if j >= 0 and owner[j] == user:
                columns[event] = -1
            elif j >= 0:
                owner[j] = user
                square += weights[j] * weights[j]
                popular += weights[j] * p[j]
        norm = max(math.sqrt(square), 1e-300)
        popular /= norm
        left = math.sqrt(max(1 - popular * popular, 0.0)) * longer
        scale = 1 / left if left > least and norm > least else 0.0
        factors[user, 0], factors[user, 1] = scale / norm, popular * scale


@njit(cache=True, nogil=True)
def write_rests(items, factors, p, out):  # type: ignore[no-untyped-def]
    """Write the rows of `unit_rests` out."""
    offsets, columns, weights = items
    for user in range(len(out)):
        row, shrink, shift = out[user], factors[user, 0], factors[user, 1]
        for j in range(len(row)):
            row[j] = -shift * p[j]
        for event in range(offsets[user], offsets[user + 1]):
            j = columns[event]
            if j >= 0:
                row[j] += shrink * weights[j]


@njit(cache=True, nogil=True)
def rests_squares(items, factors, p, cancelled, out):  # type: ignore[no-untyped-def]
    """The squared norms of the rows of `unit_rests`, by their few items.

    What p has in all other columns is |p|² less what it has in these. Where that is
    less than |p|² / `cancelled` the difference would have too few digits, and the
    other columns are added up. A row that names a column twice has no norm but NaN.
    """
    offsets, columns, weights = items
    whole = 0.0
    for j in range(len(p)):
        whole += p[j] * p[j]
    owner = np.full(len(p), -1)
    for user in range(len(out)):
        shrink, shift = factors[user, 0], factors[user, 1]
        square, others = 0.0, whole
        for event in range(offsets[user], offsets[user + 1]):
            j = columns[event]
            if j >= 0:
                value = shrink * weights[j] - shift * p[j]
                square += value * value if owner[j] != user else np.nan
                others -= p[j] * p[j]
                owner[j] = user
        if others < whole / cancelled:
            others = 0.0
            for j in range(len(p)):
                others += p[j] * p[j] if owner[j] != user else 0.0
        out[user] = square + shift * shift * others


@njit(cache=True, nogil=True)
def rests_times(items, factors, p, matrix, out):  # type: ignore[no-untyped-def]
    """The rows of `unit_rests` times a matrix whose rows belong to the first columns.

    The twin of `out = x[:, : len(matrix)] @ matrix`.
    """
    offsets, columns, weights = items
    along = np.zeros(matrix.shape[1])
    for j in range(len(matrix)):
        for k in range(len(along)):
            along[k] += p[j] * matrix[j, k]
    for user in range(len(out)):
        mine, shrink, shift = out[user], factors[user, 0], factors[user, 1]
        for k in range(len(mine)):
            mine[k] = -shift * along[k]
        for event in range(offsets[user], offsets[user + 1]):
            j = columns[event]
            if 0 <= j < len(matrix):
                value = shrink * weights[j]
                for k in range(len(mine)):
                    mine[k] += value * matrix[j, k]


@njit(cache=True, nogil=True)
def add_rests_outer(items, factors, p, right, total):  # type: ignore[no-untyped-def]
    """Add to a total the sum over clients of x rightᵀ, x a row of `unit_rests`.

    The twin of `total += x.T @ right`. p is taken off once for all.
    """
    offsets, columns, weights = items
    along = np.zeros(right.shape[1])
    for user in range(len(right)):
        theirs, shrink, shift = right[user], factors[user, 0], factors[user, 1]
        for k in range(len(theirs)):
            along[k] += shift * theirs[k]
        for event in range(offsets[user], offsets[user + 1]):
            j = columns[event]
            if j >= 0:
                value = shrink * weights[j]
                for k in range(len(theirs)):
                    total[j, k] += value * theirs[k]
    for j in range(len(p)):
        for k in range(len(along)):
            total[j, k] -= p[j] * along[k]


@njit(cache=True, nogil=True)
def add_touched(rows, values, out):  # type: ignore[no-untyped-def]
    """Add the rows that each client touched to `out`; the twin of `np.add.at`.

    A row number counts only after all before it, and only if `out` has that row.
    """
    for client in range(len(rows)):
        last = -1
        for i in range(rows.shape[1]):
            row = rows[client, i]
            if row <= last:
                continue
            last = row
            if row < len(out):
                mine, theirs = out[row], values[client, i]
                for j in range(len(theirs)):
                    mine[j] += theirs[j]


@njit(cache=True, nogil=True)
def touched_squares(rows, values, n_rows):  # type: ignore[no-untyped-def]
    """The squared norm of each client's touched rows, in float64.

    The rows that count are those that `add_touched` adds.
    """
    out = np.zeros(len(rows))
    for client in range(len(rows)):
        last, total = -1, 0.0
        for i in range(rows.shape[1]):
            row = rows[client, i]
            if row <= last:
                continue
            last = row
            if row < n_rows:
                own = values[client, i]
                for j in range(len(own)):
                    total += np.float64(own[j]) * np.float64(own[j])
        out[client] = total
    return out
