"""What adapting costs one device: time and memory, by the length of its history."""

import numpy as np

from tacit.models.feature_mlp import cohort
from tacit.reproduction.privrec import adaptation as module
from tacit.reproduction.privrec.adaptation import one_device


def test_a_row_a_length_of_history(tiny, monkeypatch):
    monkeypatch.setattr(module, "EVENTS", (0, 5, 20, 1000))
    learnt, train = [], cohort.train

    def counted(network, start, examples, *, schedule, **others):
        learnt.append(len(examples.items) * schedule.epochs)
        return train(network, start, examples, schedule=schedule, **others)

    monkeypatch.setattr(devices, "train", counted)
    (table,) = one_device("quick").tables
    assert [row.label for row in table.rows] == ["0 events", "5 events", "20 events"]
    for row in table.rows:
        assert row.sound is not None
        assert row.beside["kB of taste"] < row.beside["kB of broadcast"]
        assert row.beside["MB at most"] > row.beside["kB of taste"] / 1e3
        assert row.sound > 0
    # How long it takes is what the table says, and is not compared: the machine may be
    # busy. What it takes is: nothing to learn from, or each event and its negatives.
    nothing, few, many = learnt[:: len(learnt) // 3]
    assert nothing == 0
    assert few >= 5
    assert many >= 20


def test_memory_is_of_what_is_held_at_once():
    def one_by_one():
        for _ in range(10):
            np.ones(125_000)

    assert 1e6 <= module._peak(one_by_one) < 1.2e6
