"""Popularity out, taste by directions, popularity back; the tail after the head."""

import numpy as np
import pytest

from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.kernels import dispatch
from tacit.models.histories import rows
from tacit.models.item_relations import Relations, head_of, trust, unit
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


def ranked(known, x, alike=None, *, weight=0.0):
    """The scores of histories over the head, from what the client represents."""
    nothing = np.zeros((len(x), 0))
    parts = known.represent(x.copy(), nothing if alike is None else alike.copy())
    return known.score(*parts.values(), weight=weight)


def with_directions(**more):
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 2)))[0]
    return told(vectors=vectors, strengths=np.array([0.9, 0.5]), **more)


def test_scores_are_the_formula():
    known = with_directions()
    x = np.array([[1.0, 0, 1]])
    r, popular = known.parted(x.copy())
    g = 2 / 3  # two items of the head
    taste = known.vectors @ np.diag([0.9, 0.5]) @ known.vectors.T @ r[0]
    expected = g * (taste + popular[0] * known.popularity)
    expected += (1 - g) * 0.3 * known.popularity
    found = ranked(known, x)
    assert found[0, known.head] == pytest.approx(expected)
    assert found[0, 3:].max() < expected.min()


def test_a_newcomers_score_by_hand():
    """One item, (3, 2, 1) / sqrt 14 popularity, one direction of strength 1/2."""
    known = told(vectors=np.array([[0.0], [0.6], [0.8]]), strengths=np.array([0.5]))
    p = np.array([3, 2, 1]) / 14**0.5
    # y = (0, 0, 1), y·p = .2673, r = (-.2143, -.1429, .9286), V·r = .6571
    taste = 0.5 * (0.6 * -2 / 14 + 0.8 * 13 / 14) * np.array([0, 0.6, 0.8])
    expected = (taste + p / 14**0.5) / 2 + 0.15 * p
    assert expected == pytest.approx([0.2274, 0.2502, 0.2072], abs=1e-4)
    x = np.array([[0.0, 0, 1]])
    assert ranked(known, x)[0, known.head] == pytest.approx(expected)


def test_a_history_is_trusted_by_the_number_of_its_items_not_by_their_weights():
    x = np.array([[0.0, 0, 0], [7, 0, 0], [0.1, 0, 2], [1, 1, 1], [-1, 0, 5]])
    assert trust(x) == pytest.approx([0, 1 / 2, 2 / 3, 3 / 4, 1 / 2])
    known = with_directions()
    assert ranked(known, 1000 * x[:4]) == pytest.approx(ranked(known, x[:4]))


def test_who_has_nothing_gets_popularity_whatever_the_directions():
    known, nobody = with_directions(), np.zeros((1, 3))
    found = ranked(known, nobody)
    assert np.argsort(-found[0]).tolist() == [1, 2, 0, 3, 4]
    assert found[0, known.head] == pytest.approx(0.3 * known.popularity, abs=1e-8)


def test_popularity_never_turns_the_order_of_counts_round():
    """Of two items that noise may have parted, weights lift the less counted one."""
    known = told(popularity=np.array([0.6, 0.5, 0.62]))
    nobody, nothing = np.zeros((1, 3)), np.zeros((1, 0))
    for popular in (0.3, 1.0):
        found = known.score(nothing, np.array([[popular]]), nothing, weight=0.0)
        assert np.argsort(-found[0]).tolist() == [1, 2, 0, 3, 4]
    assert np.argsort(-ranked(known, nobody)[0]).tolist() == [1, 2, 0, 3, 4]
    vectors, offsets = known.item_space()
    assert np.argsort(-(0.3 * vectors[:, -1] + offsets)).tolist() == [1, 2, 0, 3, 4]


def test_likeness_is_trusted_in_the_head_and_orders_the_tail_as_it_is():
    """Somebody who has items of the tail alone: popularity, then what is alike."""
    known = with_directions(lean=np.array([1.0]))
    alike = np.array([[0.1, 0.5, 0.3, 0.2, 0.7]])
    one, nobody = np.array([[1.0, 0, 0]]), np.zeros((1, 3))
    content = ranked(known, one, alike, weight=0.2) - ranked(known, one)
    assert content[0, known.head] == pytest.approx(0.2 * alike[0, known.head] / 2)
    found = ranked(known, nobody, alike, weight=0.2)
    assert found[0, known.head] == pytest.approx(0.3 * known.popularity, abs=1e-8)
    assert np.argsort(-found[0]).tolist() == [1, 2, 0, 4, 3]


def test_reasons_add_up_to_the_taste_part_of_the_score():
    known = with_directions()
    x, items = np.array([[1.0, 0, 1]]), np.array([1, 0, 4])
    loads = known.represent(x.copy(), np.zeros((1, 0)))["loads"]
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
