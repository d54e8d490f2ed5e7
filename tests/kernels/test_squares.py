"""Sums of squares in double precision; what is no number stays visible."""

import numpy as np
import pytest

from tacit.kernels.squares import squared_rows


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (5, 17)])
def test_the_sum_of_each_row(dtype, shape):
    rows = (10 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    found = squared_rows(rows)
    assert found.dtype == np.float64
    exact = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    np.testing.assert_allclose(found, exact, rtol=1e-13)


def test_squares_that_single_precision_cannot_hold():
    rows = np.array([[1e30, 1e30], [1e-30, 0.0]], np.float32)
    np.testing.assert_allclose(squared_rows(rows), [2e60, 1e-60], rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "seen"), [(np.nan, np.isnan), (-np.inf, np.isposinf)]
)
def test_what_is_no_number_is_not_lost(wrong, seen):
    found = squared_rows(np.array([[1.0, wrong, 2.0], [1.0, 0.0, 2.0]]))
    assert seen(found[0])
    assert found[1] == 5.0
