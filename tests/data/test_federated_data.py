from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.data.catalog import Profiles
from tacit.data.features import Category
from tacit.data.federated_data import FederatedData
from tacit.data.impressions import Impressions


def test_clients_hold_the_histories_and_the_catalog_the_features() -> None:
    histories = np.array([[1, 0, 1], [0, 0, 1]], np.uint8)
    genre = Category.of(["a", "b", "a"])
    data = FederatedData.of_matrix(histories, {"genre": genre})
    assert [*data.catalog.ids] == ["0", "1", "2"]
    assert data.catalog.features == {"genre": genre}
    assert len(data.profiles) == 2
    assert data.profiles.features == {}
    assert data.shards.lengths.tolist() == [2, 1]
    assert data.shards.items.tolist() == [0, 2, 2]
    assert FederatedData.of_matrix(histories).catalog.features == {}


def test_histories_keep_their_order_and_repetitions() -> None:
    data = FederatedData.of_histories([[2, 0, 2], [], [1]], n_items=4)
    assert data.shards.lengths.tolist() == [3, 0, 1]
    assert data.shards.items.tolist() == [2, 0, 2, 1]
    assert [*data.profiles.ids] == ["user 0", "user 1", "user 2"]
    assert len(data.catalog) == 4


def test_more_clients_repeat_the_few_in_turn() -> None:
    more = FederatedData.of_histories([[2, 0], [1]], n_items=3).repeated(5)
    assert more.shards.lengths.tolist() == [2, 1, 2, 1, 2]
    assert [*more.profiles.ids][:3] == ["user 0", "user 1", "user 0"]


def test_all_clients_hold_the_given_items_and_keep_their_profiles() -> None:
    some = FederatedData.of_histories([[2, 0], [1]], n_items=3)
    kind = {"kind": Category.of(["x", "y"])}
    some = FederatedData(some.catalog, Profiles(some.profiles.ids, kind), some.shards)
    same = some.all_holding([0, 1], 3)
    assert same.shards.items.tolist() == [0, 1] * 3
    assert same.catalog is some.catalog
    assert same.profiles.features["kind"].codes.tolist() == [0, 1, 0]


def test_clients_who_hold_something_clicked_it_where_there_are_impressions():
    data = FederatedData.of_histories([[0], [1, 2]], n_items=4)
    assert data.all_holding([1, 3], 2).shards.impressions is None
    none = Impressions.none(2, 4)
    known = replace(data, shards=replace(data.shards, impressions=none))
    found = known.all_holding([3, 1], 5).shards
    assert [row.tolist() for row in found.histories] == [[3, 1]] * 5
    slates = found.impressions.slates
    assert slates.users.tolist() == [0, 1, 2, 3, 4]
    assert [row.tolist() for row in slates.shown] == [[1, 3, 0]] * 5
    assert found.impressions.clicked.tolist() == [True, True, False] * 5
    assert slates.history_lengths.tolist() == [0] * 5


def test_nothing_known_of_impressions_is_none_of_anybody():
    shards = FederatedData.of_histories([[0], [1, 2]], n_items=4).shards
    none = shards.known_impressions
    assert len(none) == 0
    assert none.per_user.tolist() == [0, 0]
    assert len(none.take_users([1]).users) == 0
    held = replace(shards, impressions=none)
    assert held.known_impressions is none
