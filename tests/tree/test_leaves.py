"""A grouped leaf equals its dense twin; so do short ways of the factored one.

Also tests `tacit.tree.dense`, `tacit.tree.factored`, `tacit.tree.grouped` and
`tacit.tree.symmetric`.
"""

import numpy as np
import pytest

from tacit.errors import BadMessage, BadValue
from tacit.keys import Key
from tacit.plans import Plan
from tacit.transport.codec import decode_reports, encode_reports
from tacit.transport.messages import Broadcast, Layout, Reports, Slot
from tacit.tree import Dense, Factored, Grouped, Symmetric, TouchedRows, Tree

SLOTS = {
    "dense": Slot("float64", (3,)),
    "factored": Slot("float64", (4, 2), 2),
    "symmetric": Slot.symmetric("float64", 3),
    "touched": Slot.touched_rows("float64", (5, 2), most=3),
}


def inner(kind, n=7):
    draws = np.random.default_rng(0)
    if kind == "dense":
        return Dense(draws.normal(size=(n, 3)))
    if kind == "factored":
        return Factored(draws.normal(size=(n, 2, 4)), draws.normal(size=(n, 2, 2)))
    if kind == "touched":
        rows = np.sort(draws.integers(-1, 5, (n, 3)), axis=1).astype(np.int32)
        return TouchedRows(rows, draws.normal(size=(n, 3, 2)), 5)
    return Symmetric(draws.normal(size=(n, 1, 3)))


@pytest.fixture(params=[*SLOTS])
def leaf(request):
    shares = np.eye(3)[[0, 2, 2, 0, 2, 0, 0]]  # nobody is in group 1
    shares[6] = [0.5, 0.0, 2.0]  # a liar
    return Grouped(inner(request.param), shares)


def test_it_equals_its_dense_twin(leaf):
    dense = leaf.dense()
    written = leaf.inner.dense().values
    for client, share in enumerate(leaf.shares):
        for group in range(3):
            expected = share[group] * written[client]
            np.testing.assert_allclose(dense.values[client, group], expected)
    assert leaf.shape == dense.shape
    np.testing.assert_allclose(leaf.squared_norms(), dense.squared_norms())
    np.testing.assert_allclose(leaf.gram(), dense.gram(), atol=1e-9)
    np.testing.assert_allclose(leaf.sum(), dense.sum(), atol=1e-12)
    total = np.ones(leaf.shape)
    leaf.add_to(total)
    np.testing.assert_allclose(total, 1 + dense.sum(), atol=1e-12)
    factors = np.arange(7.0)
    np.testing.assert_allclose(
        leaf.scale(factors).dense().values, dense.scale(factors).values
    )


def test_one_number_a_client():
    leaf = Grouped(Dense(np.array([1.0, 2.0, 4.0])), np.eye(2)[[0, 1, 0]])
    total = {"n": np.ones(2)}
    Tree({"n": leaf}).add_to(total)
    assert total["n"].tolist() == [6.0, 3.0]


def test_rows_stay_with_their_group(leaf):
    tree = Tree({"w": leaf})
    both = Tree.concatenate([tree.select([5, 1]), tree.select([0])])
    np.testing.assert_array_equal(both.to_dense()["w"], tree.to_dense()["w"][[5, 1, 0]])
    changed = tree.replace_rows([2], tree.select([6])).to_dense()["w"]
    np.testing.assert_array_equal(changed[2], tree.to_dense()["w"][6])


@pytest.mark.parametrize("kind", [*SLOTS])
def test_it_survives_the_wire(kind):
    slot = SLOTS[kind].grouped(3)
    assert slot.shape == (3, *SLOTS[kind].shape)
    layout = Layout({"w": slot})
    reports = Reports(
        Tree({"w": Grouped(inner(kind), np.eye(3)[[0, 1, 2, 0, 1, 2, 0]])})
    )
    layout.check(reports)
    broadcast = Broadcast(0, Plan(7).digest, {})
    received = decode_reports(broadcast, encode_reports(broadcast, reports), layout)
    np.testing.assert_array_equal(
        received.tree.to_dense()["w"], reports.tree.to_dense()["w"]
    )
    assert layout.zeros()["w"].shape == slot.shape
    with pytest.raises(BadMessage, match="declared"):
        Layout({"w": SLOTS[kind]}).check(reports)


def test_what_cannot_be():
    with pytest.raises(BadValue, match="needed are"):
        Grouped(inner("dense"), np.ones((6, 3)))
    with pytest.raises(BadValue, match=r"use Slot\.grouped"):
        Slot("float64", (3, 2), groups=4)
    with pytest.raises(BadValue, match="a factored leaf has rows"):
        Slot("float64", (3, 2), 1, groups=3)


def test_outer_products_of_rank_one_take_the_short_way():
    draws = Key.from_seed(0).generator()
    leaf = Factored(draws.normal(size=(5, 1, 30)), draws.normal(size=(5, 1, 20)))
    np.testing.assert_allclose(leaf.squared_norms(), leaf.dense().squared_norms())


@pytest.mark.parametrize("shape", [(3, 8), (8, 3)])
def test_scaling_changes_the_shorter_side(shape):
    leaf = Factored(np.ones((2, 1, shape[0])), np.ones((2, 1, shape[1])))
    scaled = leaf.scale(np.array([2.0, 3.0]))
    same, other = (scaled.right, scaled.left)[:: 1 if shape[0] < 8 else -1]
    assert same is (leaf.right if shape[0] < 8 else leaf.left)
    assert other[:, 0, 0].tolist() == [2.0, 3.0]
    np.testing.assert_array_equal(scaled.sum(), np.full(shape, 5.0))
