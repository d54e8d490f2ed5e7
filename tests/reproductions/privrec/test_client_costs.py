"""What adapting costs one client: a row for each length of its history."""

from __future__ import annotations

import numpy as np
import pytest
from tacit_study_privrec import client_costs as module


@pytest.mark.slow
def test_a_row_a_length_of_history(reproduced):
    """The invented world has 110 items; nobody has 500 of them."""
    (table,) = reproduced("adaptation").tables
    labels = [row.label for row in table.rows]
    assert labels == ["0 events", "10 events", "50 events", "100 events"]
    for row in table.rows:
        assert row.sound is not None
        assert row.beside["MB at most"] > row.beside["kB of taste"] / 1e3
        assert row.beside["kB of broadcast"] > 0


def test_a_longer_history_takes_more_steps(films, monkeypatch):
    """Counted, not timed: a time says as much of the machine as of the method."""
    from tacit.models.feature_mlp import Cohort

    n_examples, taste = [], Cohort.taste

    def counted(self, state, shards, how, keys):
        n_examples.append(len(shards.items))
        return taste(self, state, shards, how, keys)

    monkeypatch.setattr(Cohort, "taste", counted)
    monkeypatch.setattr(module, "EVENTS", (0, 20))
    module.costs(films)
    assert sorted(set(n_examples)) == [0, 20]
    assert n_examples.count(0) == n_examples.count(20) == 2 + module._RUNS


def test_memory_is_of_what_is_held_at_once():
    def one_by_one():
        for _ in range(10):
            np.ones(125_000)

    assert 1e6 <= module.peak(one_by_one) < 1.2e6
