"""After clipping no norm is above its clip, whatever came in."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadValue
from tacit.mechanisms.clipping import (
    SLACK,
    clip_by_l1_norm,
    clip_by_norm,
    joint_l1_norms,
    joint_norms,
)
from tacit.tree import Dense, Factored, Tree

BAD = (math.nan, math.inf, -math.inf)


def written_out(tree, order=2):
    """The norms of what leaves, in float64, client by client."""
    leaves = [leaf.dense().values.astype(np.float64) for leaf in tree.leaves.values()]
    flat = np.concatenate([x.reshape(len(x), -1) for x in leaves], axis=1)
    return np.linalg.norm(flat, order, axis=1)


def draw(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


# By hand


def test_the_whole_tree_shares_one_factor():
    tree = Tree.dense(a=np.array([[3.0, 0.0]]), b=np.array([[4.0]]))
    clipped = clip_by_norm(tree, 1.0)
    np.testing.assert_allclose(clipped["a"], [[0.6, 0.0]], rtol=1e-15)
    np.testing.assert_allclose(clipped["b"], [[0.8]], rtol=1e-15)


def test_the_l1_norm_is_joint_too():
    tree = Tree.dense(a=np.array([[3.0, 0.0]]), b=np.array([[-5.0]]))
    clipped = clip_by_l1_norm(tree, 2.0)
    np.testing.assert_allclose(clipped["a"], [[0.75, 0.0]])
    np.testing.assert_allclose(clipped["b"], [[-1.25]])


@pytest.mark.parametrize("clip", [clip_by_norm, clip_by_l1_norm])
def test_what_is_within_stays_bit_for_bit(clip):
    x = np.array([[0.3, -0.4], [0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(clip(Tree.dense(x=x), 1.0)["x"], x)


def test_each_client_may_have_a_clip():
    tree = Tree.dense(x=np.full((3, 1), 10.0))
    clipped = clip_by_norm(tree, np.array([1.0, 2.0, 20.0]))
    np.testing.assert_array_equal(clipped["x"], [[1.0], [2.0], [10.0]])


@pytest.mark.parametrize("clip", [clip_by_norm, clip_by_l1_norm])
def test_nobody_and_nothing_can_be_clipped(clip):
    assert clip(Tree({}), 1.0).leaves == {}
    assert len(clip(Tree.dense(x=np.zeros((0, 3))), 1.0)) == 0
    assert clip(Tree.dense(x=np.zeros((2, 0))), 1.0)["x"].shape == (2, 0)


@pytest.mark.parametrize(
    "clip", [0.0, -1.0, *BAD, np.array([1.0, 0.0]), np.array([1.0, math.nan])]
)
def test_nonsense_is_refused(clip):
    with pytest.raises(BadValue, match="must be finite and > 0"):
        clip_by_norm(Tree.dense(x=np.zeros((2, 1))), clip)


def test_clips_for_other_clients_are_refused():
    with pytest.raises(BadValue, match=r"shape \(3,\) for 2 clients"):
        clip_by_norm(Tree.dense(x=np.zeros((2, 1))), np.ones(3))


# Types


def test_floats_keep_their_type_but_for_halves():
    made = {
        dtype: clip_by_norm(Tree.dense(x=np.ones((1, 9), dtype)), 0.1)["x"].dtype
        for dtype in (np.float16, np.float32, np.float64, np.int64, np.bool_)
    }
    assert made == {
        np.float16: np.float32,
        np.float32: np.float32,
        np.float64: np.float64,
        np.int64: np.float64,
        np.bool_: np.float64,
    }


def test_the_type_says_nothing_about_the_data():
    for value in (0, 1, 10**6):
        tree = Tree.dense(x=np.full((1, 2), value))
        assert clip_by_norm(tree, 5.0)["x"].dtype == np.float64
        assert clip_by_l1_norm(tree, 5.0)["x"].dtype == np.float64


def test_factored_leaves_stay_factored():
    leaf = Factored(draw(2, 1, 3), draw(2, 1, 4))
    clipped = clip_by_norm(Tree({"V": leaf}), 0.01).leaves["V"]
    assert isinstance(clipped, Factored)
    assert clipped.left.shape == leaf.left.shape


# What is not finite


@pytest.mark.parametrize("clip", [clip_by_norm, clip_by_l1_norm])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", ["a", "left", "right"])
def test_a_broken_update_is_nothing_at_all(clip, bad, place):
    """In any leaf and factor; the other clients are as if it were not there."""
    parts = {"a": draw(3, 2), "left": draw(3, 1, 2), "right": draw(3, 1, 4)}
    whole = Tree({"a": Dense(parts["a"]), "V": Factored(parts["left"], parts["right"])})
    spoiled = {name: part.copy() for name, part in parts.items()}
    spoiled[place][1].flat[-1] = bad
    tree = Tree(
        {"a": Dense(spoiled["a"]), "V": Factored(spoiled["left"], spoiled["right"])}
    )
    found, expected = clip(tree, 1.0).to_dense(), clip(whole, 1.0).to_dense()
    for name in ("a", "V"):
        assert not found[name][1].any()
        np.testing.assert_array_equal(found[name][[0, 2]], expected[name][[0, 2]])


def test_an_infinity_that_meets_a_zero_is_caught():
    leaf = Factored(np.array([[[math.inf, 1.0]]]), np.zeros((1, 1, 2)))
    clipped = clip_by_norm(Tree({"V": leaf}), 1.0).leaves["V"]
    assert not clipped.left.any()


@pytest.mark.parametrize("clip", [clip_by_norm, clip_by_l1_norm])
def test_what_overflows_is_nothing_at_all(clip):
    huge = Tree({"V": Factored(np.full((1, 1, 2), 1e200), np.full((1, 1, 2), 1e200))})
    assert not clip(huge, 1.0).to_dense()["V"].any()


def test_the_input_is_left_alone():
    x = np.array([[math.nan, 1.0], [100.0, 0.0]])
    before = x.copy()
    clip_by_norm(Tree.dense(x=x), 1.0)
    np.testing.assert_array_equal(x, before)


# The bound itself

# Sizes and clips up to 1e30 apart: beyond, float32 has no factor and all is zero.
sizes = st.integers(-15, 15).map(lambda e: 10.0**e)
floats = st.sampled_from([np.float32, np.float64])


@given(seed=st.integers(0, 2**32), size=sizes, clip=sizes, dtype=floats)
def test_norms_are_within_and_reach_the_clip(seed, size, clip, dtype):
    leaf = Factored(
        (size * draw(4, 2, 5, seed=seed)).astype(dtype),
        draw(4, 2, 3, seed=seed + 1).astype(dtype),
    )
    x = (size * draw(4, 7, seed=seed + 2)).astype(dtype)
    tree = Tree({"V": leaf, "x": Dense(x)})
    before, after = tree.norms(), written_out(clip_by_norm(tree, clip))
    assert (after <= clip * (1 + SLACK)).all()
    np.testing.assert_allclose(after, np.minimum(before, clip), rtol=1e-5)


@given(seed=st.integers(0, 2**32), size=sizes, clip=sizes, dtype=floats)
def test_l1_norms_are_within_and_reach_the_clip(seed, size, clip, dtype):
    tree = Tree.dense(
        x=(size * draw(4, 7, seed=seed)).astype(dtype),
        y=(size * draw(4, 2, 2, seed=seed + 1)).astype(dtype),
    )
    before = joint_l1_norms(tree)
    after = written_out(clip_by_l1_norm(tree, clip), order=1)
    assert (after <= clip * (1 + SLACK)).all()
    np.testing.assert_allclose(after, np.minimum(before, clip), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("off", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 0.0])
def test_products_that_cancel_cannot_hide_a_norm(dtype, off):
    """u ⊗ v - u ⊗ (1 + off) v is small, but its rounding is as large as u ⊗ v.

    The plain norm from factors is zero or noise here: with `tree.norms()` in place of
    `joint_norms` contributions of hundreds of clips would pass.
    """
    u, v = 1e6 * draw(20, 1, 6), 1e6 * draw(20, 1, 5, seed=2)
    other = v * (1 + off * draw(20, 1, 1, seed=3))
    leaf = Factored(
        np.concatenate([u, -u], axis=1).astype(dtype),
        np.concatenate([v, other], axis=1).astype(dtype),
    )
    tree = Tree({"V": leaf})
    assert (joint_norms(tree) >= written_out(tree)).all()
    assert (written_out(clip_by_norm(tree, 1e-2)) <= 1e-2 * (1 + SLACK)).all()


def test_joint_norms_are_exact_where_nothing_cancels():
    tree = Tree({"V": Factored(draw(5, 1, 30), draw(5, 1, 40)), "b": Dense(draw(5, 3))})
    np.testing.assert_allclose(joint_norms(tree), written_out(tree), rtol=1e-12)


def test_a_float32_update_of_the_largest_size_is_still_within():
    x = np.full((1, 4), 3e38, np.float32)
    clipped = clip_by_norm(Tree.dense(x=x), 1e-3)
    assert written_out(clipped)[0] <= 1e-3 * (1 + SLACK)


def test_unevenly_factored_updates_are_within_or_nothing():
    """Left factors so small that scaling them leaves float32's normal range."""
    for power in range(20, 38):
        left = np.full((1, 1, 3), 10.0 ** -(power - 2), np.float32)
        right = np.full((1, 1, 3), 10.0**power, np.float32)
        tree = Tree({"V": Factored(left, right)})
        for clip in (1e-18, 1e-9, 1.0):
            assert written_out(clip_by_norm(tree, clip))[0] <= clip * (1 + SLACK)
