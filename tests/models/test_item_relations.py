"""Popularity out, taste by directions, popularity back; the tail after the head."""

import numpy as np
import pytest

from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.kernels import dispatch
from tacit.models.histories import rows
from tacit.models.item_relations import Relations, head_of, unit
from tacit.tree import SparseFactored

COUNTS = np.array([1.0, 9.0, 4.0, 0.5, -0.2])


def told(**more):
    arrays = {"n_items": np.array([5]), "counts": COUNTS}
    return Relations.from_broadcast(
        arrays | head_of(COUNTS, size=3, exponent=0.5) | more
    )


def test_the_head_by_hand():
    found = head_of(COUNTS, size=3, exponent=0.5)
    assert found["head"].tolist() == [1, 2, 0]
    assert found["weights"] == pytest.approx([1 / 3, 1 / 2, 1])
    assert found["popularity"] == pytest.approx(np.array([3, 2, 1]) / 14**0.5)


def test_what_is_left_of_a_history_is_not_popularity():
    known = told()
    x = np.array([[1.0, 0, 1], [1, 1, 1], [0, 0, 0]])
    r, popular = known.parted(x.copy())
    assert r @ known.popularity == pytest.approx(np.zeros(3), abs=1e-12)
    y = r + popular[:, None] * known.popularity
    assert np.linalg.norm(y, axis=1) == pytest.approx([1, 1, 0])
    roots = known.roots(x.copy(), smoothing=0.0)
    assert np.linalg.norm(roots, axis=1) == pytest.approx([1, 1, 0])


@pytest.mark.parametrize("longer", [1.0, 30.0])
def test_both_twins_make_the_same_unit_vectors_and_tastes(monkeypatch, longer):
    """Of repeated items, empty histories, whole heads and any popularity told."""
    twin = dispatch.TABLE["rows.unit_rests"]
    monkeypatch.setitem(dispatch.TABLE, "rows.unit_rests", twin.at(1))
    rng = np.random.default_rng(0)
    known = told(popularity=longer * rng.random(3))
    lengths = np.array([0, 1, 4, 9, 30])
    owners = np.repeat(np.arange(5), lengths)
    log = Interactions.of_columns(
        owners, rng.integers(5, size=lengths.sum()), n_users=5, n_items=5
    )
    shards, directions = Shards.of(log), rng.normal(size=(2, 2))
    q, t = known.loadings(rows(shards, items=known.head), directions)
    leaf = known.loadings_of(shards, directions)
    assert isinstance(leaf, SparseFactored)
    for one, other in zip((leaf.left, leaf.right), (q, t), strict=True):
        np.testing.assert_allclose(one[:, 0], other, atol=1e-12)
        assert np.linalg.norm(one, axis=2).max() <= 1
    np.testing.assert_allclose(leaf.sum(), q.T @ t, atol=1e-12)
    halved = leaf.scale(np.full(5, 0.5))
    np.testing.assert_allclose(halved.sum(), q.T @ t / 2, atol=1e-12)
    np.testing.assert_allclose(known.roots_of(shards, smoothing=0.0), q, atol=1e-12)


def test_without_directions_everyone_gets_popularity_then_the_tail():
    known = told()
    nothing = np.zeros((1, 0))
    found = known.score(nothing, np.ones((1, 1)), nothing, weight=0.0)
    assert np.argsort(-found[0]).tolist() == [1, 2, 0, 3, 4]


def test_without_a_history_items_go_by_count():
    known, nothing = told(), np.zeros((1, 0))
    found = known.score(nothing, np.zeros((1, 1)), nothing, weight=0.0)
    assert np.argsort(-found[0]).tolist() == [1, 2, 0, 3, 4]


def test_scores_are_the_formula():
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    known = told(vectors=vectors, strengths=np.array([0.9, 0.5]))
    x = np.array([[1.0, 0, 1]])
    r, popular = known.parted(x.copy())
    loads = (r @ known.vectors) * known.strengths
    found = known.score(loads, popular[:, None], np.zeros((1, 0)), weight=0.0)
    expected = vectors @ np.diag([0.9, 0.5]) @ vectors.T @ r[0]
    expected += popular[0] * known.popularity
    assert found[0, known.head] == pytest.approx(expected)
    assert found[0, 3:].max() < expected.min()


def test_reasons_add_up_to_the_taste_part_of_the_score():
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    known = told(vectors=vectors, strengths=np.array([0.9, 0.5]))
    x, items = np.array([[1.0, 0, 1]]), np.array([1, 0, 4])
    r, _ = known.parted(x.copy())
    loads = (r @ known.vectors) * known.strengths
    for target in (1, 2, 0):
        place = known.head.tolist().index(target)
        found = known.reasons(x.copy(), items, target)
        assert found[2] == 0  # of the tail
        assert found.sum() == pytest.approx((loads @ known.vectors.T)[0, place])
    assert known.reasons(x, items, 3).tolist() == [0, 0, 0]


def test_before_anything_is_known_all_items_are_equal():
    known = Relations.from_broadcast({"n_items": np.array([4])})
    r, popular = known.parted(np.zeros((2, 0)))
    found = known.score(r, popular[:, None], np.zeros((2, 0)), weight=0.3)
    assert found.shape == (2, 4)
    assert np.isfinite(found).all()


def test_unit_rows():
    found = unit(np.array([[3.0, 4.0], [0.0, 0.0], [1e-12, 0.0]]))
    assert found == pytest.approx(np.array([[0.6, 0.8], [0, 0], [0, 0]]))
