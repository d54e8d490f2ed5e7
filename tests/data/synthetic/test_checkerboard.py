from __future__ import annotations

import pytest

from tacit.data.synthetic.checkerboard import checkerboard
from tacit.errors import BadValue


def test_the_checkerboard_has_exactly_its_squares():
    found = checkerboard(5, 7, 2)
    expected = [[float(u % 2 == i % 2) for i in range(7)] for u in range(5)]
    assert found.interactions.matrix().toarray().tolist() == expected
    assert found.catalog.features["group"][3] == "group 1"
    assert found.profiles.features["group"][4] == "group 0"
    assert found.interactions.times is not None
    with pytest.raises(BadValue, match="users=1 must be >= 2"):
        checkerboard(1, 7, 2)
