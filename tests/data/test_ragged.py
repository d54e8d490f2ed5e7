"""Rows of different lengths: any choice of rows equals one at a time."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.ragged import Ragged, offsets_of, skip_taken
from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE

REFUSED = (BadValue, jaxtyping.TypeCheckError)  # annotations are checked in tests
ROWS = Ragged.of_lengths([2, 0, 3], np.arange(5))


def test_rows():
    assert [row.tolist() for row in ROWS] == [[0, 1], [], [2, 3, 4]]
    assert len(ROWS) == 3
    assert ROWS[-1].tolist() == [2, 3, 4]
    np.testing.assert_array_equal(ROWS.lengths, [2, 0, 3])
    np.testing.assert_array_equal(ROWS.owners, [0, 0, 2, 2, 2])
    np.testing.assert_array_equal(offsets_of([2, 0, 3]), [0, 2, 2, 5])
    with pytest.raises(IndexError):
        ROWS[3]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data())
def test_take_equals_one_at_a_time(lengths, data):
    ragged = Ragged.of_lengths(lengths, np.arange(sum(lengths)) * 10)
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=8))
    taken = ragged.take(rows)
    assert [r.tolist() for r in taken] == [ragged[i].tolist() for i in rows]
    np.testing.assert_array_equal(ragged.values[ragged.places(rows)], taken.values)


def test_a_mask_takes_rows():
    taken = ROWS.take([False, True, True])
    assert [row.tolist() for row in taken] == [[], [2, 3, 4]]


def test_no_rows():
    empty = Ragged.of_lengths([], np.zeros(0, np.int32))
    assert len(empty) == len(empty.owners) == len(list(empty)) == 0
    assert len(empty.take([])) == len(ROWS.take([])) == 0
    assert ROWS.take([]).values.dtype == ROWS.values.dtype


@given(st.lists(st.sets(st.integers(0, 12)), min_size=1, max_size=5), st.data())
def test_taken_numbers_are_skipped(rows, data):
    """Against the numbers that are left, listed one by one."""
    taken = Ragged.of_lengths(
        [len(row) for row in rows],
        np.array([n for row in rows for n in sorted(row)], np.int64),
    )
    free = [[n for n in range(40) if n not in row] for row in rows]
    drawn = st.tuples(st.integers(0, len(rows) - 1), st.integers(0, 20))
    pairs = data.draw(st.lists(drawn, max_size=6))
    who, numbers = np.array(pairs, np.int64).reshape(-1, 2).T
    found = skip_taken(numbers, who, taken)
    assert found.tolist() == [free[row][r] for row, r in pairs]


@pytest.mark.parametrize(
    "offsets", [[], [0], [0, 4], [1, 5], [0, 6], [0, 3, 2, 5], [-1, 5]]
)
def test_bad_offsets_are_refused(offsets):
    with pytest.raises(BadValue, match="offsets must rise from 0 to 5"):
        Ragged(np.array(offsets, np.int64), np.arange(5))


@pytest.mark.parametrize(
    "offsets", [np.array([0.0, 5.0]), np.array([[0, 5]]), np.array([0, 5], np.int32)]
)
def test_offsets_of_another_type_are_refused(offsets):
    with pytest.raises(REFUSED, match="offsets"):
        Ragged(offsets, np.arange(5))


@pytest.mark.parametrize("lengths", [[-1, 6], [2.5, 2.5], [2, 2], [np.nan]])
def test_bad_lengths_are_refused(lengths):
    with pytest.raises(BadValue):
        Ragged.of_lengths(lengths, np.arange(5))


@pytest.mark.parametrize("rows", [[3], [-1], [0.0], [True], ["a"]])
def test_bad_rows_are_refused(rows):
    with pytest.raises(BadValue):
        ROWS.take(rows)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(0, 2**32))
def test_twins_agree(lengths, seed):
    """The compiled copy of many values, on a few."""
    draw = np.random.default_rng(seed)
    many = Ragged.of_lengths(lengths, draw.integers(0, 99, sum(lengths), np.int32))
    other = draw.random(sum(lengths)).astype(np.float32)
    rows = draw.integers(0, len(lengths), draw.integers(0, 12))
    found = []
    for limit in (2**62, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(TABLE, "ragged.gather", TABLE["ragged.gather"].at(limit))
            found.append(many.columns_of(rows, many.values, other))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two, strict=True)
