from __future__ import annotations

import numpy as np
import pytest

from tacit.evaluation import heldout_users as users_module
from tacit.evaluation.coverage import coverage


def test_the_share_of_items_that_anyone_is_shown(heldout_of):
    heldout = heldout_of([[0], []], [[3], [3]], 5)
    scores = np.array([[9.0, 8, 7, 1, 0], [9, 8, 7, 1, 0]])
    # First user: 1 and 2; second: 0 and 1.
    assert coverage(lambda _: scores, heldout, k=2) == pytest.approx(3 / 5)


def test_ties_at_the_last_place_count_as_chances(heldout_of):
    heldout = heldout_of([[], []], [[3], [3]], 4)
    scores = np.array([[9.0, 1, 1, 0], [9, 1, 1, 0]])
    # Item 0 surely; 1 and 2 each unless both users miss it; 3 never.
    expected = (1 + 2 * (1 - 0.25)) / 4
    assert coverage(lambda _: scores, heldout, k=2) == pytest.approx(expected)


def test_a_list_longer_than_the_candidates_shows_them_all(heldout_of, monkeypatch):
    heldout = heldout_of([[0, 1]], [[3]], 4)
    assert coverage(lambda _: np.zeros((1, 4)), heldout, k=10) == 0.5


def test_chunks_do_not_change_it(crowd, monkeypatch):
    heldout = crowd(20, 30, 0)
    scores = np.random.default_rng(0).integers(0, 5, 30).astype(float)

    def score(history):
        return np.tile(scores, (len(history), 1))

    whole = coverage(score, heldout, k=4)
    monkeypatch.setattr(users_module, "_NUMBERS_AT_ONCE", 90)
    assert coverage(score, heldout, k=4) == pytest.approx(whole, abs=1e-12)
