"""A step of Adam in one pass over memory; twin of `server_optimizers._Step.plain`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def adam(before, gradient, shares, constants, after):  # type: ignore[no-untyped-def]
    """Weights, mean and square `after` a step; scalars have the type of the arrays.

    `shares`: of the old and the new in the mean, and in the square. `constants`: the
    rate over the first bias correction, the root of the second, and what keeps
    divisions finite.
    """
    old, new, old_square, new_square = shares
    rate, root, floor = constants
    (weights, mean, square), (moved, m, v) = before, after
    for i in range(len(weights)):
        g = gradient[i]
        m[i] = old * mean[i] + new * g
        v[i] = old_square * square[i] + new_square * g * g
        # One pass: each array is read once and written once, which is all it costs.
        moved[i] = weights[i] - rate * m[i] / (np.sqrt(v[i]) / root + floor)
