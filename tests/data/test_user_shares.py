"""The share and the number of a user follow from the id alone."""

import numpy as np

from tacit.data.user_shares import key_numbers, share_of

IDS = [f"user {i}" for i in range(3000)]


def test_the_hash_is_a_fixed_one():
    """Another version or machine must find the same: users would move otherwise."""
    assert [share_of(one, parts=5) for one in ("ann", "bob", "é", "")] == [4, 4, 1, 3]
    assert key_numbers(["ann"]).tolist() == [4057620691420329719]


def test_shares_are_about_equally_large():
    """Of 3,000 users a share of four has 750 ± 24; 5 deviations: 1e-6 by chance."""
    counts = np.bincount([share_of(one, parts=4) for one in IDS], minlength=4)
    assert counts.sum() == 3000
    assert (np.abs(counts - 750) < 120).all()


def test_numbers_are_distinct_and_tell_nothing_of_the_share():
    numbers = key_numbers(IDS)
    assert len(np.unique(numbers)) == 3000
    assert numbers.min() >= 0
    shares = np.array([share_of(one, parts=2) for one in IDS])
    agree = int((numbers % 2 == shares).sum())
    assert abs(agree - 1500) < 150
