"""Sparse times dense, against the products of scipy and numpy."""

import numpy as np
import pytest
import scipy.sparse as sp

from tacit.kernels.rows import outer_sum, unit_rests, weighted_rows


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


def test_unit_rests_by_hand():
    """Three users over columns 1, 0 and 2 of items 0, 1 and 3: both items of a head
    twice over, an item outside of it, and nothing at all.
    """
    offsets, items = np.array([0, 4, 5, 5]), np.array([1, 0, 0, 1, 2])
    column_of = np.array([1, 0, -1, 2])
    p, weights = np.array([1.0, 0.0, 0.0]), np.array([2.0, 2.0, 1.0])
    directions = np.array([[5.0, 1.0], [3.0, -1.0]])
    x, tastes = np.full((3, 3), np.nan), np.full((3, 2), np.nan)
    limits = 1e-5, 1.0
    unit_rests(offsets, items, column_of, weights, p, limits, directions, x, tastes)
    np.testing.assert_allclose(x, [[0, 1, 0], [0, 0, 0], [0, 0, 0]], atol=1e-15)
    np.testing.assert_allclose(tastes, [[3, -1], [0, 0], [0, 0]], atol=1e-15)
