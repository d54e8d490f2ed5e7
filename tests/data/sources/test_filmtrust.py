from __future__ import annotations

import numpy as np
import pytest
from data.sources.releases import FILMTRUST, edited, parsed, write

from tacit.data.sources import load
from tacit.errors import BadData


@pytest.mark.parametrize("packed", [True, False])
def test_repeats_are_kept_in_the_order_of_the_file(packed, tmp_path):
    write("filmtrust", tmp_path, FILMTRUST, packed=packed)
    found = load("filmtrust", where=tmp_path, cache=tmp_path / "cache")
    log = found.interactions
    assert list(found.profiles.ids) == ["1", "3"]
    assert list(found.catalog.ids) == ["5", "7"]
    assert log.offsets.tolist() == [0, 3, 4]
    assert log.items.tolist() == [0, 1, 0, 0]
    assert log.values.tolist() == [2, 4, 0.5, 3.5]
    assert len(log.distinct()) == 3


def test_whom_people_trust(tmp_path):
    trusts = parsed("filmtrust", tmp_path).profiles.features["trusts"]
    assert [trusts[row] for row in range(2)] == [(), ("1", "9")]  # 9 rated nothing


@pytest.mark.parametrize(
    ("member", "old", "new", "line", "problem"),
    [
        ("ratings.txt", b"7 4", b"7 4.5", 2, "rating 4.5 must be in 0.5, 1, …, 4"),
        ("ratings.txt", b"7 4", b"7 0", 2, "rating 0 must be in"),
        ("ratings.txt", b"7 4", b"7 3.7", 2, "rating 3.7 must be in"),
        ("ratings.txt", b"7 4", b"7 nan", 2, "rating='nan' must be a number"),
        ("ratings.txt", b"1 7 4", b"1 7", 2, "is not 'user item rating'"),
        ("trust.txt", b"3 9 1", b"3 9 2", 2, "trust 2 must be 1"),
        ("trust.txt", b"3 9 1", b"3 9 0", 2, "trust 0 must be 1"),
        ("trust.txt", b"3 9 1", b"3 b 1", 2, "trustee='b' must be a whole"),
    ],
)
def test_odd_input_is_named(member, old, new, line, problem, tmp_path):
    with pytest.raises(BadData) as caught:
        parsed("filmtrust", tmp_path, edited("filmtrust", member, old, new))
    assert problem in str(caught.value)
    assert member in caught.value.file
    assert caught.value.line == line


@pytest.mark.data
def test_the_real_one(real):
    found = real("filmtrust")
    log = found.interactions
    assert (log.n_users, log.n_items, len(log)) == (1508, 2071, 35_497)
    assert len(log.distinct()) == 35_494
    assert np.unique(log.values).tolist() == [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]
    trusts = found.profiles.features["trusts"].codes
    assert (
        len(trusts.values) == 1778
    )  # of 1,853; the others are by users who rated none
