"""The head by hand, its output bias, and the tail below it."""

import numpy as np
import pytest

from tacit.models.mult_vae.counted_head import most_counted, output_bias, with_tail

COUNTS = np.array([1.0, 9.0, 3.0, 3.0, -2.0])


def test_the_head_by_hand():
    """Items 2 and 3 tie; the first of them comes first."""
    assert most_counted(COUNTS, 3).tolist() == [1, 2, 3]
    assert most_counted(COUNTS, 9).tolist() == [1, 2, 3, 0, 4]


def test_the_bias_by_hand():
    """ln 9, ln 3 and, below the floor of 3, ln 3; their mean is 4/3 ln 3."""
    found = output_bias(COUNTS, np.array([1, 2, 0]), floor=3.0)
    np.testing.assert_allclose(found / np.log(3), [2 / 3, -1 / 3, -1 / 3])


def test_the_tail_follows_by_count():
    found = np.array([[0.5, -0.5], [3.0, 4.0]])
    scores = with_tail(found, np.array([4, 1]), COUNTS)
    np.testing.assert_array_equal(scores[:, [4, 1]], found)
    best = np.argsort(-scores, axis=1)
    assert best.tolist() == [[4, 1, 2, 3, 0], [1, 4, 2, 3, 0]]
    assert scores[:, [0, 2, 3]].max(axis=1) == pytest.approx([-1.7, 1.8], abs=0.21)
