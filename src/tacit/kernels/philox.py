"""Philox-4x64-10; the twin of `keys._philox_plain`.

Serial on purpose: numba's thread pools do not survive a fork, and a client or a worker
process may fork or call from several threads. One core makes 10^8 words in a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

# Salmon et al. 2011: multipliers, and Weyl constants by which the key moves on.
_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ZERO = np.uint64(0)


def _emit_high_product(_context, x, y):  # type: ignore[no-untyped-def]
    def emit(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(value, wide) for value in arguments))
        upper = builder.lshr(product, ir.Constant(wide, 64))
        return builder.trunc(upper, ir.IntType(64))

    return types.uint64(x, y), emit


# The upper 64 bits of the 128-bit product: one instruction on most processors.
_high_product: Any = intrinsic(_emit_high_product)


@njit(cache=True, nogil=True)
def block(x, y, counter, domain):  # type: ignore[no-untyped-def]
    """The four words of the key (x, y) at one counter."""
    a, b, c, d = counter, _ZERO, _ZERO, domain
    for _ in range(10):  # rounds; seven pass all tests, ten are the standard
        hi0, lo0 = _high_product(a, _M0), a * _M0
        hi1, lo1 = _high_product(c, _M1), c * _M1
        a, b, c, d = hi1 ^ b ^ x, lo1, hi0 ^ d ^ y, lo0
        x, y = x + _W0, y + _W1
    return a, b, c, d


@njit(
    types.uint64[:, :, ::1](
        types.Array(types.uint64, 2, "C", readonly=True),
        types.Array(types.uint64, 1, "C", readonly=True),
        types.int64,
        types.int64,
    ),
    cache=True,
    nogil=True,
)
def philox(words, first, blocks, domain):  # type: ignore[no-untyped-def]
    """For each key, `blocks` blocks of four words, counting up from `first`."""
    out = np.empty((len(words), blocks, 4), np.uint64)
    for i in range(len(words)):
        for j in range(blocks):
            counter = first[i] + np.uint64(j)
            made = block(words[i, 0], words[i, 1], counter, np.uint64(domain))
            out[i, j, 0], out[i, j, 1], out[i, j, 2], out[i, j, 3] = made
    return out
