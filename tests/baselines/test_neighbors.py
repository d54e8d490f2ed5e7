from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tacit.baselines import matrix, neighbors
from tacit.baselines.neighbors import nearest

#            sizes 2, 3, 1, 2; overlaps 0-1: 2, 0-2: 0, 0-3: 1, 1-2: 0, 1-3: 1, 2-3: 1
ROWS = sp.csr_array(
    np.array(
        [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 1]], np.float32
    )
)


def test_cosines_by_hand():
    found = nearest(ROWS, ROWS, count=4, shrinkage=0.0).toarray()
    expected = [
        [1, 2 / 6**0.5, 0, 1 / 2],
        [2 / 6**0.5, 1, 0, 1 / 6**0.5],
        [0, 0, 1, 1 / 2**0.5],
        [1 / 2, 1 / 6**0.5, 1 / 2**0.5, 1],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_shrinkage_is_added_to_the_norm():
    found = nearest(ROWS, ROWS, count=4, shrinkage=3.0).toarray()
    assert found[0, 1] == pytest.approx(2 / (6**0.5 + 3))
    assert found[2, 2] == pytest.approx(1 / 4)


def test_only_the_nearest_stay():
    found = nearest(ROWS, ROWS, count=1, shrinkage=0.0, but_itself=True).toarray()
    assert [np.flatnonzero(row).tolist() for row in found] == [[1], [0], [3], [2]]


def test_all_that_tie_with_the_last_stay():
    rows = sp.csr_array(np.array([[1, 1], [1, 0], [0, 1]], np.float32))
    found = nearest(rows[:1], rows[1:], count=1, shrinkage=0.0).toarray()
    np.testing.assert_allclose(found, [[0.5**0.5, 0.5**0.5]], rtol=1e-6)


def test_a_row_without_entries_has_no_neighbors():
    empty = sp.csr_array(np.zeros((1, 5), np.float32))
    assert nearest(empty, ROWS, count=2, shrinkage=0.0).nnz == 0


@pytest.mark.parametrize("but_itself", [False, True])
def test_blocks_change_nothing(monkeypatch, but_itself):
    table = (np.random.default_rng(0).random((23, 9)) < 0.4).astype(np.float32)
    rows = sp.csr_array(table)
    how = {"count": 4, "shrinkage": 2.0, "but_itself": but_itself}
    whole = nearest(rows, rows, **how).toarray()
    monkeypatch.setattr(matrix, "_NUMBERS_AT_ONCE", 5 * 23)  # five rows a block
    np.testing.assert_array_equal(nearest(rows, rows, **how).toarray(), whole)


@pytest.mark.parametrize("but_itself", [False, True])
@pytest.mark.parametrize("count", [1, 3, 50])
def test_sparse_and_dense_blocks_find_the_same(monkeypatch, but_itself, count):
    table = (np.random.default_rng(1).random((60, 40)) < 0.05).astype(np.float32)
    rows, how = sp.csr_array(table), {"shrinkage": 2.0, "but_itself": but_itself}
    found = []
    for least in (0.0, 2.0):  # all blocks are dense, all are sparse
        monkeypatch.setattr(neighbors, "_SPARSE", least)
        found.append(nearest(rows, rows, count=count, **how).toarray())
    np.testing.assert_array_equal(*found)
