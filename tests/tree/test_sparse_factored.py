"""Products whose left side is not written out: equal to those of the rows written out.

Whatever the rows are made of, no client gets through a clip with more than its bound.
"""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadValue
from tacit.mechanisms.clipping import SLACK, clip_by_norm, joint_norms
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import Dense, Factored, Grouped, SparseFactored, SparseRests, Tree

REFUSED = (BadValue, jaxtyping.TypeCheckError)  # annotations are checked in tests
CLIENTS, ROWS, COLUMNS = 5, 9, 3


def leaf_of(columns, factors, *, weights, common, seed=0):
    """A leaf of clients that name these columns."""
    rests = SparseRests(
        np.cumsum([0, *map(len, columns)]),
        np.concatenate([np.asarray(some, np.int64) for some in columns]),
        np.asarray(weights, float),
        np.asarray(common, float),
        np.asarray(factors, float),
    )
    draws = np.random.default_rng(seed)
    return SparseFactored(rests, draws.normal(size=(len(columns), 1, COLUMNS)))


def by_hand(leaf):
    """The left side, one client after another."""
    rests = leaf.rests
    out = np.zeros((len(rests), len(rests.weights)))
    for client, (shrink, shift) in enumerate(rests.factors):
        own = rests.columns[rests.offsets[client] : rests.offsets[client + 1]]
        out[client] = -shift * rests.common
        out[client, own[own >= 0]] += shrink * rests.weights[own[own >= 0]]
    return out


@st.composite
def leaves(draw, largest=3.0):
    """A leaf in which everyone names some columns, nobody all of them twice."""
    draws = np.random.default_rng(draw(st.integers(0, 999)))
    lengths = draws.integers(0, ROWS + 1, CLIENTS)
    columns = [draws.permutation(ROWS)[:n] for n in lengths]
    for some in columns:
        some[draws.random(len(some)) < 0.2] = -1
    sizes = 10.0 ** draws.uniform(-largest, largest, (CLIENTS, 2))
    common = draws.normal(size=ROWS) * 10.0 ** draws.uniform(-3, 0, ROWS)
    weights = draws.normal(size=ROWS)
    return leaf_of(columns, sizes, weights=weights, common=common)


@given(leaves())
def test_it_equals_the_rows_written_out(leaf):
    left = by_hand(leaf)
    size = np.abs(left).max(initial=1.0) * np.abs(leaf.rests.factors).max()
    twin = Factored(left[:, None], leaf.right)
    np.testing.assert_allclose(leaf.left, left[:, None], rtol=1e-12, atol=1e-12 * size)
    assert (leaf.shape, leaf.stored) == (twin.shape, twin.stored)
    assert leaf.total_type == twin.total_type
    norms = leaf.squared_norms()
    np.testing.assert_allclose(norms, twin.squared_norms(), rtol=1e-12)
    np.testing.assert_allclose(leaf.sum(), twin.sum(), rtol=1e-12, atol=1e-12 * size)
    total = np.ones(leaf.shape)
    leaf.add_to(total)
    expected = 1 + twin.sum()
    np.testing.assert_allclose(total, expected, rtol=1e-12, atol=1e-12 * size)
    np.testing.assert_allclose(leaf.gram(), twin.gram(), rtol=1e-9, atol=1e-9 * size**2)
    factors = np.arange(5.0)
    scaled, whole = leaf.scale(factors), twin.scale(factors).dense().values
    assert isinstance(scaled, SparseFactored)
    tolerance = {"rtol": 1e-12, "atol": 1e-12 * size}
    np.testing.assert_allclose(scaled.dense().values, whole, **tolerance)
    matrix = np.random.default_rng(1).normal(size=(4, 2))
    found = leaf.rests.times(matrix)
    np.testing.assert_allclose(found, left[:, :4] @ matrix, rtol=1e-9, atol=1e-9 * size)


@given(leaves())
def test_what_changes_the_left_side_writes_it_out(leaf):
    tree, dense = Tree({"w": leaf}), leaf.dense().values
    for changed, rows in (
        (tree.select([3, 1]), [3, 1]),
        (Tree.concatenate([tree, tree.select([0])]), [0, 1, 2, 3, 4, 0]),
        (Tree({"w": leaf.with_parts(leaf.parts)}), range(5)),
    ):
        assert isinstance(changed.leaves["w"], Factored)
        np.testing.assert_array_equal(changed.to_dense()["w"], dense[[*rows]])
    shares = np.eye(2)[[0, 1, 1, 0, 1]]
    grouped, apart = Grouped(leaf, shares), Grouped(Dense(dense), shares)
    size = np.abs(dense).max(initial=1.0)
    np.testing.assert_allclose(grouped.sum(), apart.sum(), rtol=1e-9, atol=1e-9 * size)
    norms = grouped.squared_norms()
    np.testing.assert_allclose(norms, apart.squared_norms(), rtol=1e-9)


@pytest.mark.parametrize("rest", [0.0, 1e-9, 1e-4, 0.1])
def test_norms_keep_their_digits_where_a_history_is_nearly_popularity(rest):
    """Weights that are the common row but for a little, which is all that is left."""
    common = np.array([3.0, 2.0, 1.0, 1e-7])
    weights = common + rest * np.array([1.0, -1.0, 0.0, 0.0])
    columns = [[0, 1, 2], [0, 1, 2, 3], [2]]
    factors = np.array([[1e5, 1e5], [1e5, 1e5], [1.0, 1e-3]])
    leaf = leaf_of(columns, factors, weights=weights, common=common)
    expected = leaf.factored().squared_norms()
    np.testing.assert_allclose(leaf.squared_norms(), expected, rtol=1e-12)


@given(leaves(largest=150.0), st.floats(1e-3, 1e3))
def test_nobody_is_longer_than_the_clip(leaf, clip):
    """Also rows that are so large or so small that floats cannot hold their squares."""
    clipped = clip_by_norm(Tree({"w": leaf}), clip)
    written = clipped.to_dense()["w"].reshape(CLIENTS, ROWS * COLUMNS)
    assert np.isfinite(written).all()
    assert (np.linalg.norm(written, axis=1) <= clip * (1 + 2 * SLACK)).all()


@pytest.mark.parametrize("size", [1e5, 1e15, 1e30, 1e150])
def test_what_cancels_is_no_way_around_the_clip(size):
    """A short row of two long ones, whose rounding would move the sum by far more."""
    common = np.random.default_rng(3).normal(size=4)
    factors = np.array([[size, size * (1 + 1e-15)]])
    leaf = leaf_of([range(4)], factors, weights=common, common=common)
    moved = np.linalg.norm(clip_by_norm(Tree({"w": leaf}), 1.0).sum()["w"])
    assert moved <= 1 + SLACK


@given(leaves(largest=1.0), st.floats(0.1, 10.0))
def test_a_clip_is_that_of_the_rows_written_out(leaf, clip):
    found = clip_by_norm(Tree({"w": leaf}), clip).to_dense()["w"]
    wanted = clip_by_norm(Tree({"w": leaf.factored()}), clip).to_dense()["w"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    assert (
        joint_norms(Tree({"w": leaf})) >= leaf.factored().squared_norms() ** 0.5
    ).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["weights", "common", "factors", "right"])
def test_what_is_not_finite_counts_as_zero(wrong, where):
    """And nobody else is touched, unless the common row is: then everyone is."""
    factors = np.array([[1.0, 0.5], [2.0, 0.0], [0.1, 0.1]])
    named = {"weights": np.ones(4), "common": np.full(4, 0.1)}
    if where == "factors":
        factors[1, 0] = wrong
    elif where != "right":
        named[where][2] = wrong
    leaf = leaf_of([[0, 1], [2], [3, 0]], factors, **named)
    if where == "right":
        leaf.right[1, 0, 0] = wrong
    found = clip_by_norm(Tree({"w": leaf}), 100.0)
    assert np.isfinite(found.sum()["w"]).all()
    is_zero = (found.to_dense()["w"] == 0).all(axis=(1, 2))
    assert is_zero.tolist() == [where == "common", True, where == "common"]


def test_who_names_a_column_twice_counts_as_zero():
    ones = {"weights": np.ones(4), "common": np.zeros(4)}
    leaf = leaf_of([[0, 1, 0], [2]], np.ones((2, 2)), **ones)
    assert np.isnan(leaf.squared_norms()).tolist() == [True, False]
    found = clip_by_norm(Tree({"w": leaf}), 0.1).to_dense()["w"]
    assert (found[0] == 0).all()
    assert np.linalg.norm(found[1]) == pytest.approx(0.1)


def test_layout_and_clip_do_not_write_it_out(monkeypatch):
    leaf = leaf_of([[0], [1, 2]], np.ones((2, 2)), weights=np.ones(4), common=[0.1] * 4)
    monkeypatch.setattr(SparseRests, "written", None)
    tree = Tree({"w": leaf})
    Layout({"w": Slot("float64", (4, COLUMNS), 1)}).check(Reports(tree))
    for bound in (0.1, 100.0):
        clipped = clip_by_norm(tree, bound)
        assert isinstance(clipped.leaves["w"], SparseFactored)
        assert clipped.sum()["w"].shape == (4, COLUMNS)


@pytest.mark.parametrize(
    ("columns", "common", "factors"),
    [
        ([[0, 4]], np.zeros(4), np.ones((1, 2))),  # no such column
        ([[0]], np.zeros(3), np.ones((1, 2))),
        ([[0]], np.zeros(4), np.ones((2, 2))),
    ],
)
def test_what_cannot_be(columns, common, factors):
    with pytest.raises(REFUSED):
        leaf_of(columns, factors, weights=np.ones(4), common=common)


def test_a_right_side_for_everyone():
    rests = leaf_of([[0]], np.ones((1, 2)), weights=np.ones(4), common=np.ones(4)).rests
    with pytest.raises(REFUSED):
        SparseFactored(rests, np.ones((2, 1, 3)))
    with pytest.raises(REFUSED):
        SparseFactored(rests, np.ones((1, 2, 3)))
