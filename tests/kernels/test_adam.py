"""The compiled step of Adam against the formula."""

import numpy as np
import pytest

from tacit.kernels.adam import adam


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_is_the_formula_and_keeps_the_type(dtype):
    draws, kind = np.random.default_rng(0), np.dtype(dtype).type
    before = tuple(draws.normal(size=7).astype(dtype) for _ in range(2))
    before = (*before, draws.random(7).astype(dtype))
    gradient = draws.normal(size=7).astype(dtype)
    after = tuple(np.empty(7, dtype) for _ in range(3))
    shares = tuple(map(kind, (0.9, 0.1, 0.99, 0.01)))
    adam(before, gradient, shares, tuple(map(kind, (0.5, 0.7, 1e-8))), after)
    mean = 0.9 * before[1] + 0.1 * gradient
    square = 0.99 * before[2] + 0.01 * gradient**2
    moved = before[0] - 0.5 * mean / (np.sqrt(square) / 0.7 + 1e-8)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for found, expected in zip(after, (moved, mean, square), strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
