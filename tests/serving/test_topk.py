from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import some_of

from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.serving.topk import FactorIndex, top_k, top_k_plain

NOTHING = Ragged.of_lengths([0], np.zeros(0, np.int32))


def _seen(rng: np.random.Generator, n_users: int, n_items: int) -> Ragged:
    rows = [
        rng.permutation(n_items)[: rng.integers(0, n_items)] for _ in range(n_users)
    ]
    lengths = [len(row) for row in rows]
    return Ragged.of_lengths(lengths, np.concatenate(rows).astype(np.int32))


def _same(lists, expected):
    for name in ("offsets", "items", "scores"):
        np.testing.assert_array_equal(getattr(lists, name), getattr(expected, name))


def test_best_first_without_the_seen():
    seen = Ragged.of_lengths([1, 0], np.array([0], np.int32))
    lists = top_k(np.array([[9.0, 2, 5], [1, 2, 3]]), seen, k=2)
    assert lists[0].items.tolist() == [2, 1]
    assert lists[0].scores.tolist() == [5.0, 2.0]
    assert lists[1].items.tolist() == [2, 1]
    assert len(lists) == len(list(lists)) == 2
    assert lists[-1].items.tolist() == [2, 1]


def test_of_equal_scores_the_smaller_index_comes_first():
    lists = top_k(np.array([[1.0, 7, 1, 7, 1]]), NOTHING, k=4)
    assert lists[0].items.tolist() == [1, 3, 0, 2]


def test_fewer_unseen_than_asked_gives_what_there_is():
    seen = Ragged.of_lengths([2, 3], np.array([2, 0, 0, 1, 2], np.int32))
    lists = top_k(np.full((2, 3), -np.inf), seen, k=10)
    assert lists[0].items.tolist() == [1]
    assert lists[1].items.tolist() == []


@pytest.mark.parametrize("dtype", some_of([np.float32, np.float64], 1))
@pytest.mark.parametrize("k", [1, 7, 50])
def test_the_row_scan_equals_its_plain_twin(monkeypatch, dtype, k):
    rng = np.random.default_rng(k)
    scores = rng.integers(-3, 4, (30, 40)).astype(dtype)  # many ties
    scores[scores == -3] = -np.inf
    seen = _seen(rng, 30, 40)
    expected = top_k(scores, seen, k=k)
    monkeypatch.setitem(TABLE, "topk.scan_rows", TABLE["topk.scan_rows"].at(0))
    _same(top_k(scores, seen, k=k), expected)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.sampled_from([1, 5, 300, 5000]),
    n_factors=st.sampled_from([1, 3, 64, 65, 200]),
    spread=st.sampled_from([0.0, 1.0, 3.0]),
    scale=st.sampled_from([1e-30, 1.0, 1e15]),
)
def test_the_coarse_scan_is_exact(seed, n_items, n_factors, spread, scale):
    """Bit for bit, whatever the sizes of the vectors; every third item has a double."""
    rng = np.random.default_rng(seed)
    sizes = scale * np.exp(spread * rng.normal(size=(n_items, 1)))
    items = (rng.normal(size=(n_items, n_factors)) * sizes).astype(np.float32)
    items[: n_items // 3] = items[-(n_items // 3) - 1 : -1]
    users = (rng.normal(size=(4, n_factors)) * scale).astype(np.float32)
    users[3] = 0
    seen = _seen(rng, 4, n_items)
    index = FactorIndex.of(items)
    expected = top_k_plain(index.scores(users), seen, k=10)
    _same(index.top_k(users, seen, k=10), expected)
    for user in range(4):
        best = index.best(users[user], seen[user], k=10)
        assert best.items.tolist() == expected[user].items.tolist()
        assert best.scores.tolist() == expected[user].scores.tolist()


def test_items_that_differ_by_less_than_a_step_are_told_apart():
    """The query is whole, so that only the rounding of items has to be made up for."""
    rng = np.random.default_rng(0)
    items = (1 + 0.003 * rng.normal(size=(3000, 16))).astype(np.float32)
    users = np.array([[31.0] * 16, [31.0, -31.0] * 8], np.float32)
    seen = Ragged.of_lengths([0, 0], np.zeros(0, np.int32))
    index = FactorIndex.of(items)
    expected = top_k_plain(index.scores(users), seen, k=10)
    _same(index.top_k(users, seen, k=10), expected)


@pytest.mark.parametrize("n_factors", [8, 64, 500, 8000])
def test_the_largest_coarse_scores_do_not_overflow(n_factors):
    """All codes at their ends and all of one sign, as far as sixteen bits reach."""
    items = np.ones((3, n_factors), np.float32)
    items[1] *= -1
    items[2, 0] = 0.0  # just behind the first
    index = FactorIndex.of(items)
    for sign in (1, -1):
        best = index.best(np.full(n_factors, sign, np.float32), [], k=3)
        assert best.items.tolist() == [0, 2, 1][::sign]
        assert best.scores[0] == n_factors


def test_the_codes_rule_out_nearly_everything():
    """Otherwise the scan is exact but slow: margins stay near the size of a step."""
    from tacit.kernels import topk as kernels

    rng = np.random.default_rng(0)
    items = rng.normal(size=(5000, 64)).astype(np.float32)
    user = rng.normal(size=64).astype(np.float32)
    index = FactorIndex.of(items)
    query, step, for_error, for_norm = kernels._coarse_query(user, 64)
    coarse = np.einsum("tfi,f->ti", index.codes.astype(int), query).reshape(-1)[:5000]
    hidden = index.errors * for_error + index.norms * for_norm
    unit = np.abs(items).max() / 127
    at_most = (index.sizes * coarse + hidden) * step * unit
    exact = index.scores(user[None])[0]
    assert (at_most >= exact).all()
    assert (at_most > np.sort(exact)[-10]).sum() < 30


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 50))
def test_the_lists_of_all_items_are_those_of_a_full_sort(seed, n_items, k):
    """Whole numbers, so that many scores are equal, and sums are exact."""
    rng = np.random.default_rng(seed)
    index = FactorIndex.of(rng.integers(-1, 2, size=(n_items, 3)).astype(np.float32))
    users = rng.integers(-1, 2, size=(4, 3)).astype(np.float32)
    lists = index.of_all(users, k=k)
    order = np.argsort(-index.scores(users), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(lists.items, order)
    assert len(lists) == len(list(lists)) == 4
    assert lists[3].items.tolist() == order[3].tolist()
    few = lists.beginnings(np.array([3, 0]), 2)
    np.testing.assert_array_equal(few.items, order[[3, 0], :2])
    expected = np.take_along_axis(index.scores(users), order, axis=1)
    np.testing.assert_array_equal(few.scores, expected[[3, 0], :2])


def test_bad_input_is_refused():
    with pytest.raises(BadValue, match="8001 factors must be <= 8000"):
        FactorIndex.of(np.ones((1, 8001), np.float32))
    index = FactorIndex.of(np.ones((3, 2), np.float32))
    user = np.ones(2, np.float32)
    with pytest.raises(BadValue, match="user in row 0 has a NaN score"):
        top_k(np.array([[np.nan, 1.0]]), NOTHING, k=1)
    with pytest.raises(BadValue, match="k=0 must be >= 1"):
        top_k(np.ones((1, 2)), NOTHING, k=0)
    with pytest.raises(BadValue, match="seen items of 1 users, scores of 2"):
        top_k(np.ones((2, 2)), NOTHING, k=1)
    with pytest.raises(BadValue, match=r"seen items must be in \[0, 2\)"):
        top_k(np.ones((1, 2)), Ragged.of_lengths([1], np.array([2], np.int32)), k=1)
    with pytest.raises(BadValue, match="have 3 factors, the items 2"):
        index.best(np.ones(3, np.float32), [])
    with pytest.raises(BadValue, match="not finite"):
        index.best(user * np.nan, [])
    with pytest.raises(BadValue, match="must be finite"):
        FactorIndex.of(np.full((3, 2), np.nan))
