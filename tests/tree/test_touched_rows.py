"""Rows that clients touch: equal to the matrix written out, whatever numbers they name.

Whoever lies may name a row twice, in any order, or one that the matrix lacks.
"""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.mechanisms.clipping import clip_by_norm
from tacit.transport.messages import Layout, Reports, Slot, zeros
from tacit.tree import TouchedRows, Tree

REFUSED = (BadValue, jaxtyping.TypeCheckError)  # annotations are checked in tests
N_ROWS, COLUMNS, MOST = 6, 2, 4
KERNEL = "rows.add_touched"


def by_hand(rows, values, n_rows):
    """One client's matrix: a row counts after all before it, and if there is one."""
    out, last = np.zeros((n_rows, values.shape[1])), -1
    for row, value in zip(rows.tolist(), values, strict=True):
        if last < row < n_rows:
            out[row] = value
        last = max(last, row)
    return out


@st.composite
def leaves(draw):
    """A leaf of 0 to 4 clients whose row numbers are anything."""
    clients = draw(st.integers(0, 4))
    numbers = st.integers(-3, N_ROWS + 2) | st.sampled_from([-(2**31), 2**31 - 1])
    rows = draw(arrays(np.int32, (clients, MOST), elements=numbers))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    draws = np.random.default_rng(draw(st.integers(0, 99)))
    values = draws.normal(size=(clients, MOST, COLUMNS)).astype(dtype)
    return TouchedRows(rows, values, N_ROWS)


@given(leaves())
def test_it_equals_the_matrix_written_out(leaf):
    pairs = zip(leaf.rows, leaf.values, strict=True)
    expected = np.array([by_hand(*pair, N_ROWS) for pair in pairs])
    expected = expected.reshape(len(leaf), N_ROWS, COLUMNS)
    np.testing.assert_allclose(leaf.dense().values, expected)
    flat = expected.reshape(len(leaf), N_ROWS * COLUMNS)
    np.testing.assert_allclose(leaf.squared_norms(), (flat**2).sum(1), rtol=1e-6)
    np.testing.assert_allclose(leaf.gram(), flat @ flat.T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(leaf.sum(), expected.sum(0), rtol=1e-6, atol=1e-9)
    factors = 1.0 + np.arange(len(leaf))
    scaled = leaf.scale(factors).dense().values
    np.testing.assert_allclose(scaled, expected * factors[:, None, None], rtol=1e-6)


@given(leaves())
def test_both_ways_of_adding_give_the_same_bits(leaf):
    found = []
    for size in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(TABLE, KERNEL, TABLE[KERNEL].at(size))
            total = np.full((N_ROWS, COLUMNS), 0.1)
            leaf.add_to(total)
            found.append(total)
    np.testing.assert_array_equal(*found)


@given(leaves(), st.sampled_from([0.1, 1.0, 10.0]))
def test_no_row_numbers_pass_a_clip(leaf, clip):
    """What a client adds to a sum is no longer than the clip, by the sum itself."""
    clipped = clip_by_norm(Tree({"V": leaf}), clip).leaves["V"]
    for client in range(len(leaf)):
        alone = clipped.map(lambda stored, i=client: stored[[i]])
        assert np.linalg.norm(alone.sum()) <= clip * (1 + 1e-5)


def test_a_row_that_is_named_twice_counts_once():
    rows = np.array([[3, 3, 3, 3]], np.int32)
    leaf = TouchedRows(rows, np.ones((1, 4, 1)), 5)
    assert leaf.squared_norms().tolist() == [1.0]
    assert leaf.sum()[:, 0].tolist() == [0, 0, 0, 1, 0]


def test_what_stands_for_nothing_may_be_anything():
    """A value that is not a number, beside a row that does not count, adds nothing."""
    rows = np.array([[1, 1, -1, 9]], np.int32)
    values = np.array([[[2.0], [np.nan], [np.inf], [np.nan]]])
    leaf = clip_by_norm(Tree({"V": TouchedRows(rows, values, 3)}), 1.0).leaves["V"]
    assert leaf.sum()[:, 0].tolist() == [0, 1, 0]


def test_what_is_short_enough_is_not_copied():
    leaf = TouchedRows(np.zeros((1, 1), np.int32), np.ones((1, 1, 1)), 2)
    tree = Tree({"V": leaf})
    assert clip_by_norm(tree, 2.0).leaves["V"].values is leaf.values


def test_a_slot_says_how_many_rows_are_sent():
    slot = Slot.touched_rows("float32", (9, 2), most=4)
    assert slot.parts() == {"#rows": (4,), "#values": (4, 2)}
    layout = Layout({"V": slot})
    assert layout.stored()["V#rows"] == ("int32", (4,))
    layout.check(Reports(zeros({"V": slot}, 2)))
    assert layout.zeros()["V"].shape == (9, 2)


@pytest.mark.parametrize(
    ("slot", "said"),
    [
        ({"shape": (3,), "touched": 2}, "matrix of floats"),
        ({"shape": (3, 2), "touched": 2, "rank": 1}, "matrix of floats"),
        ({"shape": (3, 2), "touched": 2, "dtype": "int64"}, "matrix of floats"),
        ({"shape": (3, 2), "touched": 4}, "touched=4"),
        ({"shape": (3, 2), "touched": 0}, "touched=0"),
    ],
)
def test_slots_that_cannot_be(slot, said):
    with pytest.raises(BadValue, match=said):
        Slot(**{"dtype": "float64", **slot})


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        (np.zeros((2, 3), np.int64), np.zeros((2, 3, 1))),
        (np.zeros((2, 3), np.int32), np.zeros((2, 3))),
        (np.zeros((2, 3), np.int32), np.zeros((2, 4, 1))),
        (np.zeros((2, 3), np.int32), np.zeros((2, 3, 1), np.int64)),
    ],
)
def test_leaves_that_cannot_be(rows, values):
    with pytest.raises(REFUSED):
        TouchedRows(rows, values, 5)
