"""Rows of different lengths: copied end to end, and searched for repeats."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gather(values, starts, offsets, out):  # type: ignore[no-untyped-def]
    """The rows that begin at `starts` into `out`, as long as `offsets` has room."""
    for row in range(len(starts)):
        n = offsets[row + 1] - offsets[row]
        theirs = values[starts[row] : starts[row] + n]
        mine = out[offsets[row] : offsets[row + 1]]
        for i in range(n):  # from 0 on: copied in blocks
            mine[i] = theirs[i]


@njit(cache=True, nogil=True)
def firsts(offsets, values, n_values):  # type: ignore[no-untyped-def]
    """Whether each value is the first of its kind in its row; values are below n."""
    is_first = np.empty(len(values), np.bool_)
    last_row = np.full(n_values, -1)  # in which a value was seen
    for row in range(len(offsets) - 1):
        for place in range(offsets[row], offsets[row + 1]):
            value = values[place]
            is_first[place] = last_row[value] != row
            last_row[value] = row
    return is_first
