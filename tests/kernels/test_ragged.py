"""Rows copied end to end."""

import numpy as np

from tacit.data.ragged import offsets_of
from tacit.kernels.ragged import gather


def test_rows_are_copied_in_the_order_asked_for():
    values, starts = np.arange(100, 120), np.array([10, 0, 7, 10])
    lengths = np.array([3, 0, 5, 1])
    offsets = offsets_of(lengths)
    out = np.full(offsets[-1], -1)
    gather(values, starts, offsets, out)
    rows = [values[s : s + n] for s, n in zip(starts, lengths, strict=True)]
    assert out.tolist() == np.concatenate(rows).tolist()
