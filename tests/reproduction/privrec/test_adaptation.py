"""What adapting costs one device: time and memory, by the length of its history."""

import numpy as np

from tacit.reproduction.privrec import adaptation as module
from tacit.reproduction.privrec.adaptation import one_device


def test_a_row_a_length_of_history(tiny, monkeypatch):
    monkeypatch.setattr(module, "EVENTS", (0, 5, 20, 1000))
    (table,) = one_device("quick").tables
    assert [row.label for row in table.rows] == ["0 events", "5 events", "20 events"]
    for row in table.rows:
        assert row.sound is not None
        assert row.beside["kB of taste"] < row.beside["kB of broadcast"]
        assert row.beside["MB at most"] > row.beside["kB of taste"] / 1e3
    nothing, _, many = (row.sound for row in table.rows)
    assert many > nothing  # 20 events are 20 steps, 0 are none


def test_memory_is_of_what_is_held_at_once():
    def one_by_one():
        for _ in range(10):
            np.ones(125_000)

    assert 1e6 <= module._peak(one_by_one) < 1.2e6
