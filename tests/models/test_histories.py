"""Rows by hand: once, by value, by its logarithm, by age."""

import numpy as np
import pytest

from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.models.histories import log_counts, rows

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
