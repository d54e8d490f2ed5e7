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
def unit_rests(offsets, items, column_of, weights, p, limits, directions, x, tastes):  # type: ignore[no-untyped-def]
    """Write weighted histories without what is along p, as unit vectors, into x.

    `column_of` has an item's column, or -1; an item that comes twice counts once. `p`
    has norm 1. With `limits` (least, longer), rows and rests shorter than `least` are
    zero and all others 1 / `longer` long. Each row of `tastes` becomes the product with
    the directions, whose rows belong to the first columns.

    The twin of `Relations._unit_rest`: one pass over a row, all else by its few items.
    """
    least, longer = limits
    side, few = directions.shape
    along = np.zeros(few)
    for j in range(side):
        for k in range(few):
            along[k] += p[j] * directions[j, k]
    held, owner = np.empty(len(p), np.int64), np.full(len(p), -1)
    for user in range(len(x)):
        n, square, popular = 0, 0.0, 0.0
        for event in range(offsets[user], offsets[user + 1]):
            j = column_of[items[event]]
            if j >= 0 and owner[j] != user:
                owner[j] = user
                held[n] = j
                n += 1
                square += weights[j] * weights[j]
                popular += weights[j] * p[j]
        norm = max(math.sqrt(square), 1e-300)
        popular /= norm
        left = math.sqrt(max(1 - popular * popular, 0.0)) * longer
        scale = 1 / left if left > least and norm > least else 0.0
        shrink, shift = scale / norm, popular * scale
        row, taste = x[user], tastes[user]
        for j in range(len(row)):
            row[j] = -shift * p[j]
        for k in range(few):
            taste[k] = -shift * along[k]
        for i in range(n):
            j = held[i]
            value = shrink * weights[j]
            row[j] += value
            if j < side:
                for k in range(few):
                    taste[k] += value * directions[j, k]
