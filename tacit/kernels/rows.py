"""Sparse times dense: rows of a matrix, weighted and added; most weigh nothing."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def weighted_rows(matrix, offsets, columns, values, out):  # type: ignore[no-untyped-def]
    """Add to each person's row of `out` the matrix's rows `columns`, times `values`.

    The twin of `sparse @ matrix`; entries that are zero cost nothing.
    """
    for person in range(len(offsets) - 1):
        mine = out[person]
        for i in range(offsets[person], offsets[person + 1]):
            value = values[i]
            if value != 0:
                theirs = matrix[columns[i]]
                for j in range(len(mine)):
                    mine[j] += value * theirs[j]


@njit(cache=True, nogil=True)
def add_outer(left, right, out):  # type: ignore[no-untyped-def]
    """The twin of `out += left.T @ right`; zero entries of `left` cost nothing."""
    for i in range(left.shape[0]):
        theirs = right[i]
        for row in range(left.shape[1]):
            value = left[i, row]
            if value != 0:
                mine = out[row]
                for j in range(len(theirs)):
                    mine[j] += value * theirs[j]
