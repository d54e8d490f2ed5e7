"""What leaves are stored in: rows of numbers, whatever their type."""

import numpy as np
import pytest

from tacit.tree.stored import as_float, flat_rank, is_whole, squared_rows


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("n", [1, 7, 2_000])
def test_squares_are_added_up_in_double_precision(dtype, n):
    rows = (np.arange(3 * n).reshape(3, n) % 5 - 2).astype(dtype)
    found = squared_rows(rows)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, (rows.astype(float) ** 2).sum(1), rtol=1e-12)


def test_nobody_else_changes_the_square_of_a_row():
    rows = np.random.default_rng(0).normal(size=(9, 3_000)).astype(np.float32)
    assert [squared_rows(rows[[i]])[0] for i in range(9)] == [*squared_rows(rows)]


def test_factors_take_the_type_of_what_they_scale():
    factors = np.array([0.5, 2.0])
    assert as_float(factors, np.ones(2, np.float32)).dtype == np.float32
    assert as_float(factors, np.ones(2, np.int32)).dtype == np.float64


def test_a_sum_over_clients_and_rank_is_one_product():
    left, right = np.random.default_rng(1).normal(size=(2, 4, 3, 5))
    together = flat_rank(left).T @ flat_rank(right)
    np.testing.assert_allclose(together, np.einsum("kri,krj->ij", left, right))


@pytest.mark.parametrize(
    ("dtype", "whole"),
    [("i1", True), ("u8", True), ("bool", True), ("f4", False)],
)
def test_whole_numbers_are_told_from_floats(dtype, whole):
    assert is_whole(np.dtype(dtype)) == whole
