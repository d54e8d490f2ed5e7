"""SGD of many clients; the twins of those in `models/matrix_factorization.py`.

A client's rows stay in the processor's cache from its first batch to its last. One
thread: a cohort takes a few milliseconds, and a pool that has to be woken, more.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def shuffle(draws, offsets, out):  # type: ignore[no-untyped-def]
    """A random order of each client's examples, from one uniform draw for each."""
    for c in range(len(offsets) - 1):
        first, n = offsets[c], offsets[c + 1] - offsets[c]
        for i in range(n):
            out[first + i] = first + i
        for i in range(n - 1, 0, -1):  # Fisher and Yates
            a, b = first + i, first + int(draws[first + i] * (i + 1))
            out[a], out[b] = out[b], out[a]


# Sums of products may be added in any order, so that they are computed side by side; a
# number that is not finite stays so.
_MATH = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_MATH)
def sgd(items, users, rows, offsets, slots, targets, orders, rate, ridge, moved):  # type: ignore[no-untyped-def]
    """All passes of every client; `users` in place, how its rows moved into `moved`.

    `rows` says which rows of `items` a client touches, `slots` which of those an
    example is, `targets` its label less the bias of its item, `orders` the order of the
    examples in each pass.
    """
    most, factors = rows.shape[1], users.shape[1]
    own, kept = np.empty((most, factors)), 1.0 - rate * ridge
    for c in range(len(users)):
        u, n_rows = users[c], 0
        while n_rows < most and rows[c, n_rows] >= 0:
            own[n_rows] = items[rows[c, n_rows]]
            n_rows += 1
        for epoch in range(len(orders)):
            for place in range(offsets[c], offsets[c + 1]):
                example = orders[epoch, place]
                v, score = own[slots[example]], 0.0
                for j in range(factors):
                    score += u[j] * v[j]
                step = rate * (targets[example] - score)
                for j in range(factors):
                    before = u[j]
                    u[j] = kept * before + step * v[j]
                    v[j] = kept * v[j] + step * before
        total = 0.0
        for j in range(factors):
            total += u[j]
        for row in range(n_rows):
            start = items[rows[c, row]]
            for j in range(factors):
                away = own[row, j] - start[j]
                moved[c, row, j] = away
                total += away
        is_spoiled = not np.isfinite(total)
        moved[c, (0 if is_spoiled else n_rows) :] = 0.0
        if is_spoiled:
            u[:] = 0.0
