from __future__ import annotations

import numpy as np
import pytest

from tacit.data.contrasts import contrasts
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.keys import Key


def impressions(labels: list[str], users: list[int]) -> Impressions:
    """Items are numbered along: `0100` shows four, the second is clicked."""
    flat = np.array([c == "1" for row in labels for c in row], bool)
    return Impressions.of_columns(
        users,
        Ragged.of_lengths([len(r) for r in labels], np.arange(len(flat), dtype="i4")),
        clicked=flat,
        histories=Ragged.of_lengths([0], np.zeros(0, np.int32)),
        history_of=np.zeros(len(labels), np.int64),
        n_users=max(users) + 1,
        n_items=len(flat),
    )


def drawn(made: Impressions, k: int, seed: int = 1):
    return contrasts(
        made, k=k, keys=Key.from_seed(seed).each(np.arange(made.slates.n_users))
    )


def test_a_click_stands_beside_unclicked_candidates_of_its_impression():
    found = drawn(impressions(["01010", "11", "000", "100"], [0, 0, 1, 1]), 2)
    assert found.clicked.tolist() == [1, 3, 10]  # "11" and "000" teach nothing
    assert found.impressions.tolist() == [0, 0, 3]
    for others, allowed in zip(
        found.others, ({0, 2, 4}, {0, 2, 4}, {11, 12}), strict=True
    ):
        assert len(set(others.tolist())) == 2
        assert set(others.tolist()) <= allowed


def test_too_few_are_repeated_evenly():
    found = drawn(impressions(["001"], [0]), 5)
    assert sorted(found.others[0].tolist()) == [0, 0, 0, 1, 1]


def test_every_set_is_equally_likely():
    """4,000 draws of 2 of 4; false alarm below 12 exp(-2 * 4000 * 0.04**2) < 4e-5."""
    found = drawn(impressions(["10000"] * 4000, list(range(4000))), 2)
    pairs = np.sort((found.others - 1) % 5, axis=1)
    counts = np.unique(pairs[:, 0] * 5 + pairs[:, 1], return_counts=True)[1]
    assert len(counts) == 6
    assert np.abs(counts / 4000 - 1 / 6).max() < 0.04


def test_a_device_draws_the_same_alone():
    whole = impressions(["0100100", "1000", "00010"], [0, 1, 2])
    keys = Key.from_seed(3).each(np.arange(3))
    alone = contrasts(whole.take_users([1]), k=2, keys=keys[[1]])
    both = contrasts(whole, k=2, keys=keys)
    np.testing.assert_array_equal(alone.others, both.others[both.impressions == 1])


def test_k_is_at_least_one():
    with pytest.raises(BadValue, match="k=0 must be >= 1"):
        drawn(impressions(["01"], [0]), 0)
