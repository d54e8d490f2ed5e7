"""Rows copied end to end, and the first of each kind in a row."""

import numpy as np

from tacit.data.interactions import Interactions
from tacit.data.ragged import offsets_of
from tacit.data.shards import Shards
from tacit.kernels import dispatch
from tacit.kernels.ragged import firsts, gather


def test_rows_are_copied_in_the_order_asked_for():
    values, starts = np.arange(100, 120), np.array([10, 0, 7, 10])
    lengths = np.array([3, 0, 5, 1])
    offsets = offsets_of(lengths)
    out = np.full(offsets[-1], -1)
    gather(values, starts, offsets, out)
    rows = [values[s : s + n] for s, n in zip(starts, lengths, strict=True)]
    assert out.tolist() == np.concatenate(rows).tolist()


def test_the_first_of_each_kind_in_its_row():
    offsets, values = np.array([0, 4, 4, 6]), np.array([2, 0, 2, 2, 2, 0])
    assert firsts(offsets, values, 3).tolist() == [True, True, False, False, True, True]


def test_both_twins_keep_the_same_events(monkeypatch):
    rng = np.random.default_rng(0)
    log = Interactions.of_columns(
        rng.integers(7, size=90), rng.integers(9, size=90), n_users=7, n_items=9
    )
    shards, twin = Shards.of(log), dispatch.TABLE["ragged.firsts"]
    found = []
    for smallest in (1, 10**9):
        monkeypatch.setitem(dispatch.TABLE, "ragged.firsts", twin.at(smallest))
        found.append(shards._is_first())
    assert np.array_equal(*found)
    assert 0 < found[0].sum() < len(found[0])
