from __future__ import annotations

import numpy as np
import pytest

from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.errors import BadValue
from tacit.evaluation.user_groups import by_activity, by_gap


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


def _timed(times):
    """One user for each list of times, each of another item."""
    owners = np.repeat(np.arange(len(times)), [len(row) for row in times])
    items, when = np.arange(len(owners)), np.concatenate(times)
    log = Interactions.of_columns(
        owners, items, times=when, n_users=len(times), n_items=20
    )
    return Shards.of(log)


def test_gaps_are_from_the_last_event_to_the_first_target():
    history = _timed([[0, 100], [100], [0, 3, 100], [100], [100]])
    targets = _timed([[100], [101, 9_999], [3_699], [3_700], [99_999]])
    groups = by_gap(Heldout(np.arange(5), history, targets))
    assert groups.labels == (
        "in the same second",
        "within an hour",
        "an hour or more later",
    )
    assert groups.member_of.tolist() == [0, 1, 1, 2, 2]


def test_gaps_need_times():
    one = Shards.of_history([1], n_items=3)
    with pytest.raises(BadValue, match="need times"):
        by_gap(Heldout(np.arange(1), one, one))
