"""Rows by hand: once, by value, by its logarithm, by age."""

import numpy as np
import pytest

from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.models.histories import latest_events, log_counts, recency, rows

DAY = 86_400


@pytest.fixture
def shards():
    log = Interactions.of_columns(
        [0, 0, 0, 2, 2],
        [1, 1, 3, 0, 3],
        values=[2, 3, 4, -1, 5],
        times=[0, 10 * DAY, 20 * DAY, 5 * DAY, 5 * DAY],
        n_users=3,
        n_items=4,
    )
    return Shards.of(log)


def test_an_item_counts_once(shards):
    expected = [[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]]
    np.testing.assert_array_equal(rows(shards), expected)


def test_values_add_up_and_are_never_negative(shards):
    expected = [[0, 5, 0, 4], [0, 0, 0, 0], [0, 0, 0, 5]]
    np.testing.assert_array_equal(rows(shards, weighting="values"), expected)
    found = rows(shards, weighting="log")
    np.testing.assert_allclose(found, np.log1p(expected))


def test_an_event_counts_half_after_its_half_life(shards):
    found = rows(shards, half_life=10.0)
    np.testing.assert_allclose(found, [[0, 0.5, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]])


def test_some_items_in_their_order(shards):
    whole = rows(shards, weighting="values")
    chosen = np.array([3, 1])
    found = rows(shards, items=chosen, weighting="values")
    np.testing.assert_array_equal(found, whole[:, chosen])


def test_nobody():
    log = Interactions.of_columns([], [], n_users=0, n_items=3)
    assert rows(Shards.of(log), half_life=1.0).shape == (0, 3)


def test_what_noise_may_have_made_is_no_count():
    """Of two rounds with noise of 5 each: 7.07, or 1 without any."""
    counts = np.array([70.0, 4.0, 0.5, -9.0])
    noisy = log_counts(counts, floor=5.0 * np.sqrt(2))
    assert noisy[1] == noisy[2] == noisy[3] == pytest.approx(np.log(50) / 2)
    assert noisy[0] == pytest.approx(np.log(70))
    bare = log_counts(counts, floor=0.0)
    assert bare.tolist() == pytest.approx([np.log(70), np.log(4), 0, 0])


def test_the_latest_event_of_an_item_stands_for_it(shards):
    assert latest_events(shards).tolist() == [1, 2, 3, 4]
    assert not len(latest_events(shards.take([1])))


def test_a_session_counts_the_items_that_came_later():
    """Repeats count by their last event, and ties in time weigh the same."""
    log = Interactions.of_columns(
        *([0, 0, 0, 0, 1], [5, 1, 5, 2, 3]),
        times=[10, 20, 30, 30, 7],
        n_users=3,
        n_items=6,
    )
    timed = recency(Shards.of(log), "session")
    assert timed.tolist() == [1 / 4, 1 / 3, 1, 1, 1]
    untimed = Shards.of_histories([[5, 1, 5, 2], [3], []], n_items=6)
    assert recency(untimed, "session").tolist() == [1 / 4, 1 / 3, 1 / 2, 1, 1]
    assert len(recency(untimed.take([2]), "session")) == 0


def test_rows_are_weighed_by_what_the_list_is_for(shards):
    """A repeat counts by its latest event, and values are weighed on top."""
    found = rows(shards, list_for="session")
    np.testing.assert_allclose(found, [[0, 0.5, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]])
    found = rows(shards, list_for="visit", items=np.array([3, 1]))
    np.testing.assert_allclose(found, [[1, 2 ** (-1 / 3)], [0, 0], [1, 0]])
    found = rows(shards, list_for="session", weighting="values")
    np.testing.assert_allclose(found, [[0, 2.5, 0, 4], [0, 0, 0, 0], [0, 0, 0, 5]])
    np.testing.assert_array_equal(rows(shards, list_for="any"), rows(shards))


def test_the_latest_of_the_items_asked_for_weighs_one():
    """Two years older than the rest, they would be lost as rounding."""
    log = Interactions.of_columns(
        [0, 0, 0], [0, 1, 2], times=[0, 30 * DAY, 900 * DAY], n_users=1, n_items=3
    )
    found = rows(Shards.of(log), list_for="visit", items=np.array([0, 1]))
    np.testing.assert_allclose(found, [[0.5, 1]])


def test_of_histories_without_events_nothing_is_weighed():
    nobody = Shards.of_histories([[], []], n_items=3)
    assert recency(nobody, "session").shape == (0,)
    assert rows(nobody, list_for="session").tolist() == [[0, 0, 0]] * 2


def test_a_visit_halves_what_is_thirty_days_old_if_there_are_times():
    days = 86_400 * np.array([0, 30, 60])
    log = Interactions.of_columns(
        [0, 0, 0], [0, 1, 2], times=days, n_users=1, n_items=3
    )
    assert recency(Shards.of(log), "visit").tolist() == [0.25, 0.5, 1]
    untimed = Shards.of_histories([[0, 1, 2]], n_items=3)
    assert recency(untimed, "visit").tolist() == [1, 1, 1]
    assert recency(Shards.of(log), "any").tolist() == [1, 1, 1]
