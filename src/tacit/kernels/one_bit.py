"""Draws of one-bit reports; the twins of the plain ones in `mechanisms/one_bit.py`.

They make the words of each client's key where they are used: nothing of 64 bits per
draw is written down. Results go into the caller's arrays (see `implicit_factors.py`).
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from tacit.kernels.philox import block
from tacit.kernels.threads import parallel

_DRAW = np.uint64(0)  # as in `keys`
_LOWER, _HALF, _STEP = np.uint64(2**32 - 1), np.uint64(32), 2.0**-32


@njit(cache=True)
def _unit(made, i):  # type: ignore[no-untyped-def]
    """The i-th of a block's eight draws: half a word each, the lower one first."""
    word = made[i // 2]
    return (word >> _HALF if i % 2 else word & _LOWER) * _STEP


@parallel()
def places(words, starts, sizes, out):  # type: ignore[no-untyped-def]
    """One of `sizes[j]` numbers from `starts[j]` on, for each client and j."""
    clients, count = out.shape
    for u in prange(clients):
        for first in range(0, count, 8):
            counter = np.uint64(first // 8)
            made = block(words[u, 0], words[u, 1], counter, _DRAW)
            for i in range(min(8, count - first)):
                drawn = int(_unit(made, i) * sizes[first + i])
                out[u, first + i] = starts[first + i] + drawn


@parallel()
def bits(words, values, bound, least, out):  # type: ignore[no-untyped-def]
    """1 with the chance of each value, which is never below `least` for either bit."""
    clients, count = out.shape
    slope = (0.5 - least) / bound
    for u in prange(clients):
        for first in range(0, count, 8):
            counter = np.uint64(first // 8)
            made = block(words[u, 0], words[u, 1], counter, _DRAW)
            for i in range(min(8, count - first)):
                none = 0.5 - values[u, first + i] * slope
                none = 0.5 if np.isnan(none) else min(max(none, least), 1.0 - least)
                out[u, first + i] = _unit(made, i) >= none


@njit(cache=True, nogil=True)
def tally(votes, dimension):  # type: ignore[no-untyped-def]
    """How often each vote from -dimension to dimension was given."""
    out = np.zeros(2 * dimension + 1, np.int64)
    for vote in votes:
        place = np.int64(vote) + dimension
        if 0 <= place <= 2 * dimension:  # nearly always: no sign to be guessed
            out[place] += 1
    return out
