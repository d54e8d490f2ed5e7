from __future__ import annotations

import numpy as np
import pytest
from quick import some_of

from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.evaluation import heldout_users as users_module
from tacit.evaluation import ranking
from tacit.evaluation.candidate_sets import FullRanking
from tacit.evaluation.ranking import Factors, Personal, rank
from tacit.kernels import ranking as kernels
from tacit.kernels.dispatch import TABLE

FULL = FullRanking()


def _assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def _with_repeats(heldout) -> Ragged:
    """The histories twice over, and for the first user a target."""
    rows = [np.tile(row, 2) for row in heldout.history.histories]
    rows[0] = np.append(rows[0], heldout.targets.items[0])
    lengths = [len(row) for row in rows]
    return Ragged.of_lengths(lengths, np.concatenate(rows).astype(np.int32))


def test_counts_by_hand(heldout_of):
    heldout = heldout_of([[0]], [[1, 4]], 6)
    row = np.array([[9.0, 5.0, 7.0, 5.0, 1.0, 5.0]])
    ranks = rank(lambda _: row, heldout, candidates=FULL)
    assert ranks.above.tolist() == [1, 4]  # item 0 is seen and does not count
    assert ranks.tied.tolist() == [3, 1]
    assert ranks.n_candidates.tolist() == [5]
    assert ranks.n_targets.tolist() == [2]


def test_repeats_count_once(heldout_of):
    once = heldout_of([[0]], [[1]], 4)
    often = heldout_of([[0, 0, 0]], [[1, 1]], 4)
    row = np.array([[9.0, 5.0, 7.0, 1.0]])
    first, second = (rank(lambda _: row, h, candidates=FULL) for h in (once, often))
    assert first.above.tolist() == second.above.tolist() == [1]
    assert first.n_candidates.tolist() == second.n_candidates.tolist() == [3]


@pytest.mark.parametrize("dtype", some_of([np.float32, np.float64], 1))
@pytest.mark.parametrize("n_items", [20, 1500])  # below and above one tile
def test_the_kernel_equals_its_plain_twin(crowd, dtype, n_items):
    heldout = crowd(90, n_items, 0)
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 9, (90, n_items)).astype(dtype)  # many ties
    excluded, targets = _with_repeats(heldout), heldout.targets.histories
    plain = ranking.count_ranks_plain(scores, excluded, targets)
    flat = (*ranking._flat(excluded), *ranking._flat(targets))
    _assert_same(kernels.count_ranks(scores, *flat), plain)


@pytest.mark.parametrize("dtype", some_of([np.float32, np.float64], 1))
@pytest.mark.parametrize("n_factors", [1, 5, 8])
def test_the_fused_kernel_equals_its_plain_twin(crowd, dtype, n_factors):
    """Bit for bit: items 0 to 9 are copies of 10 to 19 and must tie exactly."""
    heldout = crowd(90, 1500, 2)
    rng = np.random.default_rng(3)
    users = rng.normal(size=(90, n_factors)).astype(dtype)
    items = rng.normal(size=(n_factors, 1500)).astype(dtype)
    items[:, :10] = items[:, 10:20]
    excluded, targets = _with_repeats(heldout), heldout.targets.histories
    scores = ranking._inner_products(users, items)
    plain = ranking.count_ranks_plain(scores, excluded, targets)
    flat = (*ranking._flat(excluded), *ranking._flat(targets))
    _assert_same(kernels.count_factor_ranks(users, items, *flat), plain)


def test_chunks_and_twins_do_not_change_the_result(crowd, monkeypatch):
    heldout = crowd(50, 30, 4)
    rng = np.random.default_rng(5)
    by_user = rng.normal(size=(50, 3)).astype(np.float32)
    items = rng.normal(size=(30, 3)).astype(np.float32)
    factors = Factors(lambda users, _: by_user[users - 100], items)
    matrix = Personal(
        lambda users, _: ranking._inner_products(by_user[users - 100], items.T)
    )
    whole = rank(factors, heldout, candidates=FULL)
    monkeypatch.setattr(users_module, "_NUMBERS_AT_ONCE", 7 * 30)
    for name in ("ranking.count_ranks", "ranking.count_factor_ranks"):
        monkeypatch.setitem(TABLE, name, TABLE[name].at(0))
    for score in (factors, matrix):
        parts = rank(score, heldout, candidates=FULL)
        for name in ("offsets", "above", "tied", "n_candidates"):
            np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_a_personal_scorer_knows_whom_it_ranks_for(heldout_of):
    heldout = heldout_of([[0], [0]], [[1], [1]], 3)
    score = Personal(lambda users, _: np.array([[0, u, 100.5] for u in users]))
    ranks = rank(score, heldout, candidates=FULL)
    assert ranks.above.tolist() == [1, 0]  # users 100 and 101


def test_integer_scores_are_welcome(heldout_of):
    heldout = heldout_of([[]], [[1]], 3)
    ranks = rank(lambda _: np.array([[3, 2, 1]]), heldout, candidates=FULL)
    assert ranks.above.tolist() == [1]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), "user 101 has a NaN score"),
        (np.ones((2, 3)), r"shape \(2, 3\), expected \(2, 2\)"),
    ],
)
def test_bad_scores_are_refused(heldout_of, scores, message):
    heldout = heldout_of([[], []], [[0], [1]], 2)
    with pytest.raises(BadValue, match=message):
        rank(lambda _: scores, heldout, candidates=FULL)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
def test_bad_factors_are_refused(heldout_of, bad):
    heldout = heldout_of([[], []], [[0], [1]], 2)
    users = np.array([[1.0], [bad]], np.float32)
    factors = Factors(lambda *_: users, np.full((2, 1), 2.0, np.float32))
    with pytest.raises(BadValue, match="user 101 has factors"):
        rank(factors, heldout, candidates=FULL)
