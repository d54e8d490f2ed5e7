"""What clients learn from: shapes, empty places, the padding news."""

import numpy as np
import pytest

from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.models.news_encoders import NO_NEWS, Batch, as_rows, last_read, with_padding
from tests.models.news_encoders.small import N_NEWS, batch

READ = Ragged.of_lengths([3, 0, 1], np.array([4, 5, 6, 7]))


def test_the_last_news_of_each_history_stay():
    assert [row.tolist() for row in last_read(READ, 2)] == [[5, 6], [], [7]]
    assert [row.tolist() for row in last_read(READ, 9)] == [[4, 5, 6], [], [7]]


def test_rows_have_one_width_and_the_padding_news_where_it_was_drawn():
    drawn = np.array([True, False, False, True])
    rows = as_rows(with_padding(READ, drawn, n_news=20), 4)
    none = NO_NEWS
    assert rows.tolist() == [[20, 5, 6, none], [none] * 4, [20, none, none, none]]


def test_blocks_are_the_same_clients_in_order():
    whole = batch()
    parts = [*whole.blocks(2)]
    assert [len(part) for part in parts] == [2, 2, 1]
    for name in ("histories", "candidates", "labels", "noise"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))


@pytest.mark.parametrize(
    ("candidates", "labels", "said"),
    [
        ([[[0, 1]]], [[2]], "labels"),
        ([[[0, NO_NEWS]]], [[1]], "empty place"),
    ],
)
def test_labels_that_cannot_be_are_refused(candidates, labels, said):
    with pytest.raises(BadValue, match=said):
        Batch(np.zeros((1, 2), np.int64), np.array(candidates), np.array(labels))


def test_numbers_beyond_the_catalog_are_refused():
    batch().check(N_NEWS)
    with pytest.raises(BadValue, match="histories"):
        batch().check(N_NEWS - 1)
    own = Batch(np.array([[0]]), np.array([[[N_NEWS]]]), np.array([[0]]))
    with pytest.raises(BadValue, match="candidates"):
        own.check(N_NEWS)  # the padding news is never shown
