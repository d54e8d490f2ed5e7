"""A factored leaf equals its dense twin; sums are exact; rows stay with their owner."""

from itertools import pairwise

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.tree import Dense, Factored, Symmetric, Tree, add, divided, halved, mirrored

REFUSED = (BadValue, jaxtyping.TypeCheckError)  # annotations are checked in tests
CLOSE = {np.float32: 1e-5, np.float64: 1e-12}


def draw(seed, *shape, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@st.composite
def factored(draw_):
    """A small factored leaf: 0 to 5 clients, rank 1 to 3, either float type."""
    seed, dtype = draw_(st.integers(0, 2**32)), draw_(st.sampled_from([*CLOSE]))
    clients, rank = draw_(st.integers(0, 5)), draw_(st.integers(1, 3))
    rows, columns = draw_(st.integers(1, 4)), draw_(st.integers(1, 4))
    left = draw(seed, clients, rank, rows, dtype=dtype)
    return Factored(left, draw(seed + 1, clients, rank, columns, dtype=dtype))


def assert_close(mine, twin, dtype=np.float64):
    assert mine.shape == twin.shape
    np.testing.assert_allclose(mine, twin, rtol=CLOSE[dtype], atol=10 * CLOSE[dtype])


def twins(leaf):
    """The leaf beside an ordinary dense one, and the same tree written out."""
    tree = Tree({"w": leaf, "b": Dense(draw(9, len(leaf), 2))})
    dense = np.zeros((len(leaf), *leaf.shape), leaf.left.dtype)
    for client, rank in np.ndindex(leaf.left.shape[:2]):
        dense[client] += np.outer(leaf.left[client, rank], leaf.right[client, rank])
    return tree, Tree({"w": Dense(dense), "b": tree.leaves["b"]})


@given(factored())
def test_factored_equals_dense(leaf):
    dtype = leaf.left.dtype.type
    tree, twin = twins(leaf)
    factors = draw(5, len(leaf))
    assert tree.leaves["w"].shape == twin.leaves["w"].shape
    assert_close(tree.to_dense()["w"], twin["w"], dtype)
    assert_close(tree.norms(), twin.norms(), dtype)
    assert_close(tree.gram(), twin.gram(), dtype)
    assert_close(tree.sum()["w"], twin.sum()["w"], dtype)
    assert tree.sum()["w"].dtype == (np.float32 if dtype == np.float32 else np.float64)
    scaled = tree.scale(factors)
    assert_close(scaled.to_dense()["w"], twin.scale(factors)["w"], dtype)
    assert scaled.leaves["w"].left.dtype == dtype


@given(factored(), st.data())
def test_rows_of_factored_equal_rows_of_dense(leaf, data):
    dtype = leaf.left.dtype.type
    tree, twin = twins(leaf)
    n = len(leaf)
    rows = data.draw(st.lists(st.integers(0, max(n - 1, 0)), max_size=n and 6))
    assert_close(tree.select(rows).to_dense()["w"], twin.select(rows)["w"], dtype)
    both, pair = Tree.concatenate([tree, tree]), Tree.concatenate([twin, twin])
    assert_close(both.to_dense()["w"], pair["w"], dtype)
    some = sorted(set(rows))
    other = tree.select(some).scale(-2.0)
    replaced = tree.replace_rows(some, other).to_dense()["w"]
    expected = twin["w"].copy()
    expected[some] *= -2 if some else 1
    assert_close(replaced, expected, dtype)


@given(factored())
def test_norms_are_the_diagonal_of_the_gram(leaf):
    tree, _ = twins(leaf)
    assert_close(tree.norms() ** 2, np.diag(tree.gram()), leaf.left.dtype.type)


def test_joint_norms_over_leaves_by_hand():
    tree = Tree(
        {
            "a": Dense(np.array([[3.0, 0.0], [0.0, 0.0]])),
            "b": Dense(np.array([4, 2])),
            "c": Factored(np.array([[[12.0]], [[1.0]]]), np.array([[[1.0]], [[0.0]]])),
        }
    )
    np.testing.assert_array_equal(tree.norms(), [13.0, 2.0])
    np.testing.assert_array_equal(tree.gram(), [[169.0, 8.0], [8.0, 4.0]])


def test_cancelling_products_have_norm_zero():
    x = draw(1, 1, 1, 50)
    leaf = Factored(np.concatenate([x, -x], axis=1), np.concatenate([x, x], axis=1))
    assert 0 <= leaf.squared_norms()[0] < 1e-10


# Sums


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.bool_, np.int32, np.int64])
def test_integers_sum_exactly(dtype):
    values = np.ones((1000, 2), dtype)
    total = Tree.dense(x=values).sum()["x"]
    assert total.dtype == np.int64
    np.testing.assert_array_equal(total, [1000, 1000])


@pytest.mark.parametrize("dtype", [np.int8, np.bool_])
def test_factored_integers_sum_exactly(dtype):
    high = np.iinfo(dtype).max if dtype is np.int8 else 1
    leaf = Factored(
        np.full((300, 2, 1), high, dtype), np.full((300, 2, 1), high, dtype)
    )
    assert leaf.sum().dtype == np.int64
    assert leaf.sum().item() == 300 * 2 * high**2
    assert leaf.dense().sum().item() == 300 * 2 * high**2
    assert leaf.squared_norms()[0] == (2 * high**2) ** 2


def test_large_integers_do_not_pass_through_floats():
    big = 2**53 + 1
    assert Tree.dense(x=np.array([big, 0])).sum()["x"] == big


def test_one_number_a_client_sums_to_an_array():
    total = Tree.dense(x=np.array([1.5, 2.0])).sum()["x"]
    assert isinstance(total, np.ndarray)
    assert total == 3.5


@given(st.lists(st.integers(0, 12), max_size=4), st.integers(0, 2**32))
def test_any_chunks_give_the_same_sum(cuts, seed):
    tree = Tree(
        {
            "count": Dense(np.arange(24, dtype=np.int8).reshape(12, 2)),
            "x": Dense(draw(seed, 12, 3)),
            "w": Factored(draw(seed, 12, 2, 3), draw(seed + 1, 12, 2, 4)),
        }
    )
    edges = [0, *sorted(cuts), 12]
    chunks = (tree.select(slice(a, b)) for a, b in pairwise(edges))
    total, whole = add(chunk.sum() for chunk in chunks), tree.sum()
    np.testing.assert_array_equal(total["count"], whole["count"], strict=True)
    for name in ("x", "w"):
        np.testing.assert_allclose(total[name], whole[name], rtol=1e-9, atol=1e-12)


def test_float32_dense_sums_in_float64():
    values = np.full((10_000, 1), 0.1, np.float32)
    exact = 10_000 * float(np.float32(0.1))
    assert Tree.dense(x=values).sum()["x"].item() == pytest.approx(exact, rel=1e-13)


def test_float32_factors_sum_as_accurately_as_documented():
    """Each entry within 1e-6 of the sum of its terms' sizes: 2,000 clients, rank 2."""
    left, right = (draw(i, 2000, 2, 20, dtype=np.float32) for i in (1, 2))
    exact = Factored(left.astype(np.float64), right.astype(np.float64)).sum()
    sizes = Factored(np.abs(left), np.abs(right)).sum()
    error = np.abs(Factored(left, right).sum() - exact) / sizes
    assert error.max() < 1e-6


def test_add():
    assert add([]) == {}
    one = {"x": np.array([1, 2])}
    np.testing.assert_array_equal(add([one, one, one])["x"], [3, 6])
    np.testing.assert_array_equal(one["x"], [1, 2])


@pytest.mark.parametrize("other", [{"y": np.zeros(2)}, {"x": np.zeros(1)}, {}])
def test_add_refuses_totals_of_another_shape(other):
    with pytest.raises(BadValue, match="totals differ"):
        add([{"x": np.zeros(2)}, other])


# Scaling


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scale_keeps_the_type_of_floats(dtype):
    tree = Tree.dense(x=np.ones((2, 3), dtype)).scale(np.array([0.5, 2.0]))
    assert tree["x"].dtype == dtype
    np.testing.assert_array_equal(tree["x"], [[0.5] * 3, [2.0] * 3])


def test_scale_makes_integers_floats_and_takes_one_number_for_all():
    tree = Tree.dense(x=np.array([1, 2, 3], np.int8)).scale(0.5)
    np.testing.assert_array_equal(tree["x"], np.array([0.5, 1.0, 1.5]), strict=True)


@pytest.mark.parametrize("factors", [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]]])
def test_scale_wants_one_factor_a_client(factors):
    with pytest.raises(BadValue, match="2 clients"):
        Tree.dense(x=np.ones((2, 3))).scale(factors)


# Rows


def test_replace_rows_leaves_the_original_alone():
    values = np.zeros((3, 2))
    tree = Tree.dense(x=values)
    changed = tree.replace_rows([2, 0], Tree.dense(x=np.array([[1.0, 1], [2, 2]])))
    np.testing.assert_array_equal(changed["x"], [[2, 2], [0, 0], [1, 1]])
    assert not values.any()


def test_a_mask_selects_and_replaces():
    tree = Tree.dense(x=np.arange(4))
    mask = np.array([True, False, False, True])
    np.testing.assert_array_equal(tree.select(mask)["x"], [0, 3])
    changed = tree.replace_rows(mask, Tree.dense(x=np.array([7, 8])))
    np.testing.assert_array_equal(changed["x"], [7, 1, 2, 8])


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ([0, 1], np.zeros((1, 2))),  # numpy would give the one to both
        ([3], np.zeros((1, 2))),
        ([-1], np.zeros((1, 2))),
        ([0], np.zeros((1, 1))),
        ([0], np.zeros((1, 2), complex)),
    ],
)
def test_replace_rows_refuses_what_does_not_fit(rows, values):
    with pytest.raises(BadValue):
        Tree.dense(x=np.zeros((3, 2))).replace_rows(rows, Tree.dense(x=values))


def test_floats_are_not_cut_down_to_integers():
    with pytest.raises(BadValue, match="float64 does not fit into int64"):
        Tree.dense(x=np.arange(3)).replace_rows([0], Tree.dense(x=np.array([0.5])))


def test_trees_of_another_layout_are_not_joined():
    one = Tree({"w": Factored(np.ones((2, 3, 2)), np.ones((2, 3, 2)))})
    rank = Tree({"w": Factored(np.ones((2, 1, 2)), np.ones((2, 1, 2)))})
    for other in (rank, one.to_dense(), Tree({}), Tree.dense(v=np.ones(2))):
        with pytest.raises(BadValue, match="trees differ"):
            Tree.concatenate([one, other])
    with pytest.raises(BadValue, match="trees differ"):
        one.replace_rows([0, 1], rank)  # numpy would repeat the one rank three times
    with pytest.raises(BadValue, match="no tree"):
        Tree.concatenate([])


# Edges


def test_leaves_have_the_same_clients():
    with pytest.raises(BadValue, match=r"\{'a': 2, 'b': 3\}"):
        Tree.dense(a=np.zeros(2), b=np.zeros(3))


def test_names_are_not_taken_for_parts():
    with pytest.raises(BadValue, match="'w#left'"):
        Tree({"w#left": Dense(np.zeros(1))})


def test_clients_who_keep_nothing_stay_so():
    assert len(Tree({}).replace_rows([0, 5], Tree({})).leaves) == 0
    with pytest.raises(BadValue, match="keep nothing"):
        Tree({}).replace_rows([0], Tree.dense(x=np.zeros(1)))


def test_unknown_and_factored_leaves_are_not_read_as_dense():
    tree = Tree({"w": Factored(np.ones((1, 1, 2)), np.ones((1, 1, 2)))})
    with pytest.raises(BadValue, match="no leaf 'v'; known: w"):
        tree["v"]
    with pytest.raises(BadValue, match="'w' is factored"):
        tree["w"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 1, 3), (2, 2, 3)),  # einsum would broadcast the rank
        ((2, 1, 3), (1, 1, 3)),
        ((2, 3), (2, 3)),
    ],
)
def test_factors_agree_on_clients_and_rank(left, right):
    with pytest.raises(REFUSED):
        Factored(np.ones(left), np.ones(right))


def test_a_leaf_has_a_client_axis():
    with pytest.raises(REFUSED):
        Dense(np.array(3.0))


def test_a_tree_without_leaves():
    tree = Tree({})
    assert len(tree) == 0
    assert tree.norms().shape == (0,)
    assert tree.gram().shape == (0, 0)
    assert tree.sum() == {}
    assert len(tree.scale(np.zeros(0)).select([])) == 0


def test_nobody():
    tree = Tree(
        {
            "a": Dense(np.zeros((0, 2, 3), np.float32)),
            "b": Dense(np.zeros(0, np.int8)),
            "c": Factored(np.zeros((0, 2, 3)), np.zeros((0, 2, 4))),
        }
    )
    assert tree.norms().shape == (0,)
    assert tree.gram().shape == (0, 0)
    sums = tree.scale([]).sum()
    assert {name: total.shape for name, total in sums.items()} == {
        "a": (2, 3),
        "b": (),
        "c": (3, 4),
    }
    assert not any(total.any() for total in sums.values())
    assert len(tree.select([])) == len(Tree.concatenate([tree, tree])) == 0


def test_arrays_without_entries():
    tree = Tree(
        {
            "a": Dense(np.zeros((2, 0))),
            "c": Factored(np.zeros((2, 1, 0)), np.zeros((2, 1, 3))),
        }
    )
    np.testing.assert_array_equal(tree.norms(), [0, 0])
    assert tree.sum()["c"].shape == (0, 3)


def squares(n=4, rank=2, side=5, seed=0):
    return Symmetric(np.random.default_rng(seed).normal(size=(n, rank, side)))


def whole(leaf):
    return np.einsum("crs,crt->cst", leaf.root, leaf.root)


def test_a_symmetric_leaf_equals_its_dense_twin():
    leaf = squares()
    twin = leaf.dense()
    assert leaf.shape == twin.shape == (15,)
    assert_allclose(leaf.squared_norms(), twin.squared_norms())
    assert_allclose(leaf.squared_norms(), (whole(leaf) ** 2).sum(axis=(1, 2)) / 2)
    assert_allclose(leaf.sum(), twin.sum())
    assert_allclose(leaf.gram(), twin.gram())
    factors = np.array([0.0, 0.5, 1.0, 2.0])
    assert_allclose(leaf.scale(factors).dense().values, twin.scale(factors).values)


def test_a_half_and_its_mirror_are_inverse():
    for side in (1, 2, 3, 8):
        matrix = np.random.default_rng(side).normal(size=(side, side))
        matrix = matrix + matrix.T
        assert_allclose(mirrored(halved(matrix)), matrix)
        assert_allclose((halved(matrix) ** 2).sum(), (matrix**2).sum() / 2)


def test_the_half_of_a_unit_square_never_exceeds_one_over_root_two():
    """Whatever the vector: one corner, all equal, two opposite."""
    for root in (np.eye(6), np.full((1, 6), 6**-0.5), np.array([[1, -1, 0]]) / 2**0.5):
        leaf = Symmetric(np.asarray(root, float)[:, None, :])
        assert_allclose(leaf.squared_norms(), 0.5)


def test_squares_refuse_what_has_no_root():
    with pytest.raises(BadValue, match="negative"):
        squares().scale(np.array([1.0, -1.0, 1.0, 1.0]))
    with pytest.raises(BadValue, match="needed are floats"):
        Symmetric(np.ones((2, 1, 3), np.int64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_norms_are_the_plain_ones(dtype, monkeypatch):
    """To 1e-14 of the square: only the order of additions differs."""
    rows = draw(3, 7, 301, dtype=dtype)
    plain = Dense(rows).squared_norms()
    monkeypatch.setitem(
        TABLE, "squares.squared_rows", TABLE["squares.squared_rows"].at(0)
    )
    np.testing.assert_allclose(Dense(rows).squared_norms(), plain, rtol=1e-14)
    broken = np.where(np.arange(7)[:, None] == [2], np.nan, rows)
    assert np.flatnonzero(np.isnan(Dense(broken).squared_norms())).tolist() == [2]
    strided = rows[:, ::2]
    expected = (strided.astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(Dense(strided).squared_norms(), expected, rtol=1e-14)


def test_a_sparse_left_side_sums_as_a_dense_one(monkeypatch):
    left = draw(1, 9, 2, 40) * (draw(2, 9, 2, 40) > 2)
    leaf = Factored(left, draw(3, 9, 2, 5), is_sparse=True)
    plain = leaf.sum()
    assert 0 < np.count_nonzero(left) < 0.05 * left.size
    monkeypatch.setitem(TABLE, "rows.outer_sum", TABLE["rows.outer_sum"].at(0))
    np.testing.assert_allclose(leaf.sum(), plain, rtol=0, atol=1e-12)
    total = np.ones_like(plain)
    leaf.add_to(total)
    np.testing.assert_allclose(total, plain + 1, rtol=0, atol=1e-12)


def test_a_total_over_a_number_keeps_floats_as_they_are():
    total = {"a": np.ones((2, 2), np.float32), "b": np.array([3, 4])}
    found = divided(total, 2)
    assert {name: value.dtype for name, value in found.items()} == {
        "a": np.float32,
        "b": np.float64,
    }
    assert found["b"].tolist() == [1.5, 2.0]
    assert total["b"].tolist() == [3, 4]
