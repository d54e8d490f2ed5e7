"""Standard normal draws by the ziggurat, on an SFC64 stream: twin of numpy's own.

256 layers of equal area lie under the density: the lowest eight bits of a word choose
one, the next its side, the rest a place in it. 99 of 100 words are a draw; the others
look at the edge of their layer, or at the tail. The side is multiplied in: a branch on
a fair coin would cost more than all the rest.

numpy keeps its tables to itself. Ours are computed and may differ in the last bit, so
draws agree with numpy's to 1e-14, and in which words they use.
Sources: Marsaglia and Tsang 2000; SFC64, Doty-Humphrey's PractRand.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_EDGE = 3.6541528853610088  # where the tail begins
_AREA = 0.0049286732339746519  # of each layer
_PLACES = 2.0**52  # positions across a layer
_STEP = 2.0**-53  # of a uniform draw


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each layer: its width over 2^52, how far no look is needed, its height."""
    widths, heights = np.zeros(256), np.ones(256)
    sure = np.zeros(256, np.uint64)
    x, height = _EDGE, math.exp(-0.5 * _EDGE * _EDGE)
    widths[0], sure[0] = _AREA / height / _PLACES, int(x * height / _AREA * _PLACES)
    widths[255], heights[255] = x / _PLACES, height
    for layer in range(254, 0, -1):
        above = math.sqrt(-2.0 * math.log(_AREA / x + height))
        sure[layer + 1] = int(above / x * _PLACES)
        x, height = above, math.exp(-0.5 * above * above)
        widths[layer], heights[layer] = x / _PLACES, height
    return widths, sure, heights


_WIDTHS, _SURE, _HEIGHTS = _tables()
_ONE, _THREE, _EIGHT, _NINE = (np.uint64(n) for n in (1, 3, 8, 9))
_ELEVEN, _SEVENTEEN, _LEFT, _RIGHT = (np.uint64(n) for n in (11, 17, 24, 40))
_LAYER, _PLACE = np.uint64(0xFF), np.uint64(0xFFFFFFFFFFFFF)


@njit(cache=True, nogil=True, inline="always")
def _next(a, b, c, d):  # type: ignore[no-untyped-def]
    """The state one word further; the last of its numbers is the word."""
    word = a + b + d
    turned = (c << _LEFT) | (c >> _RIGHT)
    return b ^ (b >> _ELEVEN), c + (c << _THREE), turned + word, d + _ONE, word


@njit(cache=True, nogil=True, inline="always")
def _sided(x, coin):  # type: ignore[no-untyped-def]
    return x * (1.0 - 2.0 * np.float64(coin & _ONE))


@njit(cache=True, nogil=True)
def _exponentials(one, two):  # type: ignore[no-untyped-def]
    beyond = -math.log1p(-np.float64(one >> _ELEVEN) * _STEP) / _EDGE
    return beyond, -math.log1p(-np.float64(two >> _ELEVEN) * _STEP)


@njit(cache=True, nogil=True)
def add_normal(state, scale, values, out):  # type: ignore[no-untyped-def]
    """Values plus scaled draws into `out`, summed in double precision.

    From an SFC64 state of four words that moves on.
    """
    a, b, c, d = state[0], state[1], state[2], state[3]  # in registers meanwhile
    for i in range(len(out)):
        while True:
            a, b, c, d, word = _next(a, b, c, d)
            layer, place = np.int64(word & _LAYER), (word >> _NINE) & _PLACE
            x = np.float64(place) * _WIDTHS[layer]
            if place < _SURE[layer]:
                x = _sided(x, word >> _EIGHT)
                break
            if layer > 0:
                a, b, c, d, other = _next(a, b, c, d)
                low, high = _HEIGHTS[layer], _HEIGHTS[layer - 1]
                height = (high - low) * (np.float64(other >> _ELEVEN) * _STEP) + low
                if height < math.exp(-0.5 * x * x):
                    x = _sided(x, word >> _EIGHT)
                    break
            else:
                a, b, c, d, one = _next(a, b, c, d)
                a, b, c, d, two = _next(a, b, c, d)
                beyond, height = _exponentials(one, two)
                while height + height <= beyond * beyond:  # Marsaglia's tail: reject
                    a, b, c, d, one = _next(a, b, c, d)
                    a, b, c, d, two = _next(a, b, c, d)
                    beyond, height = _exponentials(one, two)
                x = _sided(_EDGE + beyond, word >> _SEVENTEEN)
                break
        out[i] = values[i] + scale * x
    state[0], state[1], state[2], state[3] = a, b, c, d
