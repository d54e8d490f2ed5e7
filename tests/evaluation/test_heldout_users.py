from __future__ import annotations

import numpy as np
import pytest

from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.evaluation import heldout_users as users_module
from tacit.evaluation.candidate_sets import FullRanking
from tacit.evaluation.heldout_users import chunks, distinct
from tacit.evaluation.ranking import rank


def test_chunks_are_the_same_users_in_order(crowd, monkeypatch):
    heldout = crowd(23, 40, 0)
    monkeypatch.setattr(users_module, "_NUMBERS_AT_ONCE", 5 * 40 + 39)
    parts = list(chunks(heldout, width=40))
    assert [len(part.users) for part in parts] == [5, 5, 5, 5, 3]
    for name in ("history", "targets"):
        rows = [row.tolist() for part in parts for row in getattr(part, name).histories]
        whole = [row.tolist() for row in getattr(heldout, name).histories]
        assert [sorted(row) for row in rows] == [sorted(row) for row in whole]


def test_chunks_keep_what_is_disliked(heldout_of, monkeypatch):
    heldout = heldout_of([[0], [1], []], [[3], [3], [3]], 4, [[1, 2], [], [0]])
    monkeypatch.setattr(users_module, "_NUMBERS_AT_ONCE", 8)
    parts = list(chunks(heldout, width=4))
    rows = [row.tolist() for part in parts for row in part.disliked.histories]
    assert rows == [[1, 2], [], [0]]


def test_one_user_is_the_smallest_chunk(crowd):
    assert len(list(chunks(crowd(3, 40, 0), width=2**30))) == 3


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[3, 1, 3], [], [2]], [[1, 3], [], [2]]),
        ([[1, 3], [0]], [[1, 3], [0]]),
        ([[], []], [[], []]),
    ],
)
def test_distinct_rows_are_sorted_without_repeats(rows, expected):
    items = np.array([item for row in rows for item in row], np.int32)
    found = distinct(Ragged.of_lengths([len(row) for row in rows], items), 4)
    assert [row.tolist() for row in found] == expected


@pytest.mark.parametrize(
    ("history", "targets", "message"),
    [
        ([[0], [0]], [[1], []], "user 101 has no target"),
        ([], [], "nobody is held out"),
        ([[0], [0]], [[0], [1]], "user 100 has a target that is also in the history"),
    ],
)
def test_users_that_cannot_be_judged_are_refused(heldout_of, history, targets, message):
    heldout, full = heldout_of(history, targets, 2), FullRanking()
    with pytest.raises(BadValue, match=message):
        rank(lambda _: np.ones((2, 2)), heldout, candidates=full)
