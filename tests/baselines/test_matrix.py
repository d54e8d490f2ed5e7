from __future__ import annotations

import numpy as np

from tacit.baselines import matrix
from tacit.baselines.matrix import row_blocks, users_by_items
from tacit.data.shards import Shards


def test_repeats_count_once():
    found = users_by_items(Shards.of_history([2, 0, 2], n_items=4))
    assert found.toarray().tolist() == [[1, 0, 1, 0]]


def test_blocks_cover_every_row_once_and_stay_in_bounds(monkeypatch):
    monkeypatch.setattr(matrix, "_NUMBERS_AT_ONCE", 100)
    blocks = list(row_blocks(23, width=10))
    rows = np.concatenate([np.arange(23)[block] for block in blocks])
    assert rows.tolist() == list(range(23))
    assert max(block.stop - block.start for block in blocks) == 10
    assert list(row_blocks(0, width=10)) == [slice(0, 0)]
    assert len(list(row_blocks(3, width=1000))) == 3  # at least one row at a time
