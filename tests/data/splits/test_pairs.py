from __future__ import annotations

import numpy as np
import pytest
from data.splits.drawn import dataset_of

from tacit.data.splits.pairs import Pairs, portion

# Values are 0, 1, …: user 0 has a (0, 2) and b (1), user 2 has a (3).
PAIRS = Pairs(dataset_of([[(0, 0), (1, 1), (0, 2)], [], [(0, 0)]]).interactions)


def test_pairs_by_user_and_item():
    assert PAIRS.users.tolist() == [0, 0, 2]
    assert PAIRS.per_user.tolist() == [2, 0, 1]
    assert PAIRS.of_events.tolist() == [0, 1, 0, 2]
    assert PAIRS.count(np.array([False, True, True])).tolist() == [1, 0, 1]


def test_one_high_event_is_enough():
    assert PAIRS.reach(2).tolist() == [True, False, True]
    assert PAIRS.reach(-np.inf).all()


def test_places_by_the_last_key_then_the_one_before():
    assert PAIRS.ranks(np.array([5, 4, 3])).tolist() == [1, 0, 0]
    assert PAIRS.ranks(np.array([5, 4, 3]), np.array([1, 1, 0])).tolist() == [1, 0, 0]
    assert PAIRS.ranks(np.array([5, 4, 3]), np.array([0, 1, 0])).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("share", "n", "expected"),
    [(0.1, 30, 3), (0.29, 100, 29), (0.1, 9, 1), (0.5, 5, 2)],
)
def test_a_part_is_rounded_down_to_at_least_one(share, n, expected):
    assert portion(share, np.array([n])).tolist() == [expected]
