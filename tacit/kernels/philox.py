"""Philox-4x64-10, one block a row; the twin of `keys._philox_plain`."""

from __future__ import annotations

import numpy as np
from numba import njit, prange, uint64

_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_MASK, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@njit(uint64(uint64, uint64), cache=True, inline="always")
def _high_product(x, y):  # type: ignore[no-untyped-def]
    xl, xh, yl, yh = x & _MASK, x >> _HALF, y & _MASK, y >> _HALF
    middle = xh * yl + (xl * yl >> _HALF)
    other = xl * yh + (middle & _MASK)
    return xh * yh + (middle >> _HALF) + (other >> _HALF)


@njit(
    "uint64[:, ::1](uint64[::1], uint64[::1], uint64[::1], int64)",
    cache=True,
    parallel=True,
)
def philox(k0, k1, c0, c3):  # type: ignore[no-untyped-def]
    """Four words for each key and counter."""
    out = np.empty((len(c0), 4), np.uint64)
    for i in prange(len(c0)):
        a, b, c, d = c0[i], np.uint64(0), np.uint64(0), np.uint64(c3)
        x, y = k0[i], k1[i]
        for _ in range(10):
            hi0, lo0 = _high_product(a, _M0), a * _M0
            hi1, lo1 = _high_product(c, _M1), c * _M1
            a, b, c, d = hi1 ^ b ^ x, lo1, hi0 ^ d ^ y, lo0
            x, y = x + _W0, y + _W1
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = a, b, c, d
    return out
