"""Everyone's factors and gradients; the twins of those in `models/implicit_factors.py`.

Results are written into arrays of the caller's: numpy asks for huge pages, and
allocating here would cost a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, prange

from tacit.kernels.threads import parallel

_USERS = 256  # users who share one table of the items they have


@njit(cache=True, error_model="numpy")
def _factorize(a):  # type: ignore[no-untyped-def]
    """The Cholesky factor of `a`, in its own lower triangle."""
    for i in range(len(a)):
        for j in range(i + 1):
            total = a[i, j]
            for m in range(j):
                total -= a[i, m] * a[j, m]
            a[i, j] = np.sqrt(total) if i == j else total / a[j, j]


@njit(cache=True, error_model="numpy")
def _substitute(a, b):  # type: ignore[no-untyped-def]
    """Solve the factored system in `b` itself: forward, then back substitution."""
    n = len(b)
    for i in range(n):
        for m in range(i):
            b[i] -= a[i, m] * b[m]
        b[i] /= a[i, i]
    for i in range(n - 1, -1, -1):
        for m in range(i + 1, n):
            b[i] -= a[m, i] * b[m]
        b[i] /= a[i, i]


@njit(cache=True, error_model="numpy")
def _user(history, table, common, alpha, times, total, system, x):  # type: ignore[no-untyped-def]
    """A user's factors into `x`; `times` then says how often an item is there.

    A row of `table` is v and the lower triangle of v vᵀ. Their sums over events have c
    for the triangle; for v, repeats add alpha and not one.
    """
    n = len(x)
    total[:] = 0.0
    x[:] = 0.0
    for item in history:
        if times[item] > 0:
            for i in range(n):
                x[i] -= table[item, i]
        times[item] += 1
        for i in range(len(total)):
            total[i] += table[item, i]
    place = n
    for i in range(n):
        x[i] += (1.0 + alpha) * total[i]
        for j in range(i + 1):
            system[i, j] = common[i, j] + alpha * total[place]
            place += 1
    _factorize(system)
    _substitute(system, x)


@cache
def solver(factors: int) -> Callable[..., Any]:
    """The kernel for so many factors: loops over them are written out by the compiler.

    That halves the time of a coordinate. Each number of factors is compiled once and
    then kept on the disk.
    """
    n = factors

    @parallel(error_model="numpy")
    def solve(offsets, events, table, common, alpha, coordinates, users, values):  # type: ignore[no-untyped-def]
        """Factors of every client, and the gradient at its coordinates."""
        clients, count = coordinates.shape
        items = table[:, :n].copy()  # close together, so that more are in the cache
        root = common.copy()
        _factorize(root)
        for block in prange((clients + _USERS - 1) // _USERS):
            times = np.zeros(len(table), np.int32)
            total, system = np.empty(table.shape[1]), np.empty((n, n))
            for u in range(block * _USERS, min((block + 1) * _USERS, clients)):
                history, x = events[offsets[u] : offsets[u + 1]], users[u]
                if alpha != 0.0:
                    _user(history, table, common, alpha, times, total, system, x)
                else:  # everyone has the same system
                    x[:] = 0.0
                    for item in history:
                        if times[item] == 0:
                            for i in range(n):
                                x[i] += items[item, i]
                        times[item] += 1
                    _substitute(root, x)
                for j in range(count):
                    item = np.uint64(coordinates[u, j]) // np.uint64(n)
                    score = 0.0
                    for i in range(n):
                        score += x[i] * items[item, i]
                    factor = np.uint64(coordinates[u, j]) - item * np.uint64(n)
                    trust = -2.0 * (1.0 + alpha * times[item])
                    values[u, j] = trust * ((times[item] > 0) - score) * x[factor]
                for item in history:
                    times[item] = 0

    return solve


@parallel(error_model="numpy")
def spread(offsets, events, items, alpha, users, out):  # type: ignore[no-untyped-def]
    """The whole gradient of every client, from the factors of all."""
    n_items, n = items.shape
    for u in prange(len(users)):
        times, x, own = np.zeros(n_items, np.int32), users[u], out[u]
        for event in range(offsets[u], offsets[u + 1]):
            times[events[event]] += 1
        for item in range(n_items):
            score = 0.0
            for i in range(n):
                score += x[i] * items[item, i]
            shared = -2.0 * (1.0 + alpha * times[item]) * ((times[item] > 0) - score)
            for i in range(n):
                own[item, i] = shared * x[i]
