"""Sparse times dense, against the products of scipy and numpy."""

import numpy as np
import pytest
import scipy.sparse as sp

from tacit.kernels.rows import (
    add_rests_outer,
    add_touched,
    outer_sum,
    rests_squares,
    rests_times,
    unit_rests,
    weighted_rows,
    write_rests,
)


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
    """The same two columns twice, one column along p, and nothing at all."""
    offsets, columns = np.array([0, 4, 6, 6]), np.array([0, 1, 1, 0, 0, -1])
    p, weights = np.array([1.0, 0.0, 0.0]), np.array([2.0, 2.0, 1.0])
    x, factors = np.full((3, 3), np.nan), np.full((3, 2), np.nan)
    items = offsets, columns, weights
    unit_rests(items, p, (1e-5, 1.0), factors)
    write_rests(items, factors, p, x)
    np.testing.assert_allclose(x, [[0, 1, 0], [0, 0, 0], [0, 0, 0]], atol=1e-15)
    assert columns.tolist() == [0, 1, -1, -1, 0, -1]
    np.testing.assert_allclose(factors, [[0.5, 1], [0, 0], [0, 0]])


def test_products_with_unit_rests_are_those_of_the_rows_written_out():
    draws = np.random.default_rng(2)
    offsets = np.array([0, 0, 3, 11, 12])
    columns = draws.integers(-1, 6, size=12)
    weights, p = draws.random(6), draws.random(6)
    p /= np.linalg.norm(p)
    x, factors = np.empty((4, 6)), np.empty((4, 2))
    items = offsets, columns, weights
    unit_rests(items, p, (1e-5, 1.0), factors)
    write_rests(items, factors, p, x)
    matrix, out = draws.normal(size=(4, 2)), np.full((4, 2), np.nan)
    rests_times(items, factors, p, matrix, out)
    np.testing.assert_allclose(out, x[:, :4] @ matrix, atol=1e-12)
    right, total = draws.normal(size=(4, 3)), np.ones((6, 3))
    add_rests_outer(items, factors, p, right, total)
    np.testing.assert_allclose(total, 1 + x.T @ right, atol=1e-12)
    for cancelled in (1.0, 64.0):  # always adds up the other columns; hardly ever
        squares = np.full(4, np.nan)
        rests_squares(items, factors, p, cancelled, squares)
        np.testing.assert_allclose(squares, (x**2).sum(1), atol=1e-12)


def test_touched_rows_are_added_once_each_and_only_where_there_is_one():
    rows = np.array([[0, 2, 2, 1, 5], [-1, 1, 3, 9, 2]], np.int32)
    values, out = np.ones((2, 5, 2)), np.zeros((4, 2))
    add_touched(rows, values, out)
    assert out[:, 0].tolist() == [1, 1, 1, 1]
