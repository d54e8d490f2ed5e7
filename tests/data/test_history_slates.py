"""Slates that clients make of their histories, where nothing was shown to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.federated_data import FederatedData
from tacit.data.history_slates import NEGATIVES, impressions_of
from tacit.data.impressions import Impressions
from tacit.keys import Key

HISTORIES = [[], [4], [3, 3, 7, 3], [*range(20)], [5, 1, 9, 2, 8], [*range(0, 20, 2)]]


def world() -> FederatedData:
    return FederatedData.of_histories(HISTORIES, n_items=20)


def keys(n: int = len(HISTORIES)):
    return Key.from_seed(0).each(np.arange(n))


def test_positives_are_held_and_negatives_are_not():
    found = impressions_of(world().shards, keys())
    slates = found.slates
    assert found.per_user.tolist() == [0, 0, 1, 0, 2, 5]  # half of what is held
    for place, user in enumerate(slates.users):
        row, held = slates.shown[place], set(HISTORIES[user])
        assert len(row) == 1 + NEGATIVES
        assert row[0] in held
        assert not held & set(row[1:].tolist())
    assert found.n_clicked.tolist() == [1] * len(slates)
    assert found.clicked[slates.shown.offsets[:-1]].all()


def test_the_history_is_what_is_not_a_positive():
    found = impressions_of(world().shards, keys())
    slates = found.slates
    for user in (2, 4, 5):
        own = np.flatnonzero(slates.users == user)
        positives = {int(slates.shown[place][0]) for place in own}
        read = set(slates.histories[slates.history_of[own[0]]].tolist())
        assert positives | read == set(HISTORIES[user])
        assert not positives & read


def test_for_counting_everything_held_is_a_positive():
    found = impressions_of(world().shards, keys(), has_history=False)
    assert found.per_user.tolist() == [0, 1, 2, 0, 5, 10]
    assert not found.slates.history_lengths.any()


@pytest.mark.parametrize("most", [1, 3])
def test_there_are_no_more_than_asked_for(most):
    found = impressions_of(world().shards, keys(), most=most)
    assert found.per_user.max() == most


def test_a_client_alone_makes_the_same_slates():
    shards = world().shards
    whole = impressions_of(shards, keys())
    for user in range(len(shards)):
        alone = impressions_of(shards.take([user]), keys()[[user]])
        own = whole.take_users([user])
        np.testing.assert_array_equal(
            alone.slates.shown.values, own.slates.shown.values
        )
        np.testing.assert_array_equal(alone.clicked, own.clicked)


def test_impressions_that_are_known_stay_as_they_are():
    data = world()
    nothing = Impressions.none(len(data.shards), 20)
    shards = replace(data.shards, impressions=nothing)
    assert impressions_of(shards, keys()) is nothing
