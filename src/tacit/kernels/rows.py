"""Sparse times dense: rows of a matrix, weighted and added; most weigh nothing."""

from __future__ import annotations

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
