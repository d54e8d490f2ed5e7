"""Rows that items share: orthonormal, never longer, and led by what is alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.models.content_similarity import Content
from tacit.models.item_bucketing import fold_of
from tacit.models.item_relations import Relations, head_of

ITEMS, ROWS = 12, 4


def content(kinds):
    labels = np.eye(int(max(kinds)) + 1, dtype=np.float32)[np.asarray(kinds, int)]
    return Content(labels, np.zeros((len(kinds), 0), np.float32))


def told(counts, kinds, *, n_rows=ROWS, **more):
    found = head_of(counts, size=len(counts), exponent=0.3)
    fold = fold_of(
        counts[found["head"]],
        found["weights"],
        head=found["head"],
        content=content(kinds),
        n_rows=n_rows,
    )
    shared = {"rows": fold.rows, "shares": fold.shares}
    arrays = {"n_items": np.array([len(counts)]), "counts": counts}
    return Relations.from_broadcast(arrays | found | shared | more)


def matrix(fold):
    P = np.zeros((fold.n_rows, len(fold.rows)))
    P[fold.rows, np.arange(len(fold.rows))] = fold.shares
    return P


counts = arrays(float, ITEMS, elements=st.floats(-5, 1e5))
kinds = st.lists(st.integers(0, 3), min_size=ITEMS, max_size=ITEMS)
histories = arrays(float, (3, ITEMS), elements=st.floats(0, 1e6))


@given(counts, kinds)
def test_rows_are_orthonormal_and_every_row_has_its_own_item(counts, kinds):
    fold = told(counts, kinds).fold
    P = matrix(fold)
    assert fold.rows[:ROWS].tolist() == [*range(ROWS)]
    assert pytest.approx(np.eye(ROWS)) == P @ P.T
    x = np.random.default_rng(0).normal(size=(2, ITEMS))
    assert fold.folded(x) == pytest.approx(x @ P.T)
    assert fold.unfolded(x[:, :ROWS]) == pytest.approx(x[:, :ROWS] @ P)


@given(counts, kinds, histories, st.integers(1, ITEMS - 1))
def test_no_history_and_no_fold_make_a_root_longer_than_one(counts, kinds, x, n_rows):
    """So the half of z zᵀ has norm 1 / sqrt(2) at most: |z|² / sqrt(2)."""
    from tacit.tree import Symmetric

    roots = told(counts, kinds, n_rows=n_rows).roots(x, smoothing=0.0)
    assert roots.shape == (3, n_rows)
    halves = Symmetric(roots[:, None, :]).squared_norms()
    assert (np.sqrt(halves) <= np.sqrt(0.5)).all()


def test_an_item_joins_the_leader_it_is_alike_to():
    """Rows 6 and 7 of eight lead; their kinds are 1 and 0."""
    counts = np.arange(12.0, 0.0, -1.0)
    found = told(counts, [0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0], n_rows=8).fold
    assert found.rows.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 7, 6, 6, 7]
    assert found.shares[:6].tolist() == [1] * 6
    energy = counts * counts**-0.6
    assert found.shares[6] ** 2 == pytest.approx(energy[6] / energy[[6, 9, 10]].sum())


def test_items_alike_to_none_are_spread():
    found = told(np.arange(12.0, 0.0, -1.0), [0] * 8 + [1] * 4, n_rows=8).fold
    assert found.rows[8:].tolist() == [6, 7, 6, 7]


def test_reasons_add_up_to_the_taste_part_of_the_score():
    counts = np.arange(12.0, 0.0, -1.0)
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(ROWS, 2)))[0]
    strengths = np.array([0.9, 0.5])
    known = told(counts, [0, 1] * 6, vectors=vectors, strengths=strengths)
    x = np.zeros((1, 12))
    x[0, [0, 3, 9]] = 1.0
    r, popular = known.parted(x.copy())
    P = matrix(known.fold)
    taste = (P.T @ vectors @ np.diag(strengths) @ vectors.T @ P @ r[0])[None]
    nothing = np.zeros((1, 0))
    loads = known.loads(r)
    found = known.score(loads, popular[:, None], nothing, weight=0.0)
    assert found[:, known.head] == pytest.approx(
        taste + popular[:, None] * known.popularity
    )
    for target in range(12):
        reasons = known.reasons(x.copy(), np.array([0, 3, 9]), target)
        assert reasons.sum() == pytest.approx(3 / 4 * taste[0, target])
