"""Sparse times dense, against the products of scipy and numpy."""

import numpy as np
import pytest
import scipy.sparse as sp

from tacit.kernels.rows import add_touched, outer_sum, weighted_rows


def test_weighted_rows_are_added_to_what_is_there():
    draws = np.random.default_rng(0)
    matrix, before = draws.normal(size=(6, 4)), draws.normal(size=(3, 4))
    sparse = sp.random_array((3, 6), density=0.5, rng=draws, format="csr")
    sparse.data[0] = 0.0  # an entry that is stored and weighs nothing
    out = before.copy()
    weighted_rows(matrix, sparse.indptr, sparse.indices, sparse.data, out)
    np.testing.assert_allclose(out, before + sparse @ matrix, rtol=1e-12)


@pytest.mark.parametrize("users", [0, 1, 9])
def test_a_sum_of_outer_products(users):
    draws = np.random.default_rng(1)
    left = draws.normal(size=(users, 5)) * (draws.random((users, 5)) < 0.4)
    right, out = draws.normal(size=(users, 3)), np.full((5, 3), np.nan)
    outer_sum(left, right, out)
    np.testing.assert_allclose(out, left.T @ right, rtol=1e-12, atol=1e-12)


def test_touched_rows_are_added_once_each_and_only_where_there_is_one():
    rows = np.array([[0, 2, 2, 1, 5], [-1, 1, 3, 9, 2]], np.int32)
    values, out = np.ones((2, 5, 2)), np.zeros((4, 2))
    add_touched(rows, values, out)
    assert out[:, 0].tolist() == [1, 1, 1, 1]
