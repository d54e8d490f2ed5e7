from __future__ import annotations

import numpy as np
import pytest
from mechanisms.local_audit import DRAWS, assert_no_louder, clients

from tacit.accounting.epsilon import epsilon as account
from tacit.errors import BadValue
from tacit.mechanisms.one_bit import OneBit
from tacit.mechanisms.published import PublishedBits

VECTOR = np.array([1.0, -1.0, 0.5, 0.0])


def test_by_hand():
    assert PublishedBits(2.5, 5000, 100).scale == pytest.approx(5894.2549, abs=5e-4)
    paper = PublishedBits(2.5, 5000, 100)
    assert paper.total_epsilon() == 250
    assert paper.total_epsilon(epochs=20) == 5000


def test_one_report_is_unbiased_and_several_are_not():
    """Within 5 s.e. of count times the vector, and far from the vector itself."""
    values = np.tile(VECTOR, (DRAWS, 1))
    for count in (1, 3):
        paper = PublishedBits(2.0, 4, count)
        found = paper.estimate(paper.privatize(values, clients(count)))
        error = np.sqrt(count * 4 * (paper.scale / 4) ** 2 / DRAWS)
        assert (np.abs(found - count * VECTOR) < 5 * error).all()
    assert abs(found[0] - VECTOR[0]) > 50 * error
    sound = OneBit(2.0, 4, 3)
    right = sound.estimate(sound.privatize(values, clients(9)))
    assert np.abs(right - VECTOR).max() < 5 * error


def test_coordinates_repeat():
    reports = PublishedBits(1.0, 4, 3).privatize(np.zeros((500, 4)), clients(1, 500))
    assert any(len(set(row)) < 3 for row in reports.coordinates.tolist())


def test_count_epsilon_is_kept():
    """The claim of a report is right. False alarm 3e-5."""
    paper = PublishedBits(0.6, 2, 2)
    yes = paper.privatize(np.ones((DRAWS, 2)), clients(1)).bits.all(axis=1)
    no = paper.privatize(-np.ones((DRAWS, 2)), clients(2)).bits.all(axis=1)
    assert_no_louder(yes, no, paper.total_epsilon())
    found = account(paper.event, delta=0.0, adjacency="replace_one").value
    assert found == pytest.approx(1.2, abs=1e-3)


def test_nonsense_is_refused():
    with pytest.raises(BadValue):
        PublishedBits(0.0, 4, 1)
    with pytest.raises(BadValue):
        PublishedBits(1.0, 4, 0)
