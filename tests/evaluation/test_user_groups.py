from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.evaluation.user_groups import by_activity


def test_tertiles_with_their_bounds():
    groups = by_activity(np.array([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    assert groups.labels == ("few (0-3)", "some (4-6)", "many (7+)")
    assert groups.member_of.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_given_edges():
    groups = by_activity(np.array([0, 9, 10, 99]), edges=(10,))
    assert groups.labels == ("0-9", "10+")
    assert groups.member_of.tolist() == [0, 0, 1, 1]


def test_equal_lengths_stay_together():
    groups = by_activity(np.array([4, 4, 4, 4, 9]))
    assert groups.labels == ("0-4", "5+")
    assert groups.member_of.tolist() == [0, 0, 0, 0, 1]
    assert by_activity(np.array([4, 4])).labels == ("0+",)


@pytest.mark.parametrize("edges", [(5, 5), (9, 3), (0, 4)])
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(BadValue, match="must be > 0 and rise"):
        by_activity(np.array([1, 2]), edges=edges)
