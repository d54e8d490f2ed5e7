"""Sums of squares along rows, in double precision whatever the rows are stored in."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def squared_rows(rows):  # type: ignore[no-untyped-def]
    """The twin of `einsum("ij,ij->i", rows, rows, dtype=float64)`, in another order.

    NaN and infinity stay what they are: the caller looks for them.
    """
    out = np.empty(len(rows))
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):  # by number, else it does not vectorize
            value = np.float64(rows[i, j])
            total += value * value
        out[i] = total
    return out
