from __future__ import annotations

import numpy as np

from tacit.data.synthetic.users_and_items import Items, Users
from tacit.keys import Key


def test_popularity_is_a_power_law_with_a_cut_off():
    items = Items(Key.from_seed(3), 50, rank=2, topics=1, exponent=0.5, decay=4.0)
    rank = np.arange(1, 51)
    np.testing.assert_allclose(
        np.sort(np.exp(items.log_popularity))[::-1],
        rank**-0.5 * np.exp(-4.0 * rank / 50),
    )


def test_tastes_and_directions_have_length_one():
    key = Key.from_seed(3)
    items = Items(key, 50, rank=3, topics=4, exponent=0.5, decay=0.0)
    users = Users(key, 40, rank=3, demographics=0.5)
    for rows in (items.directions, users.tastes):
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)


def test_ids_are_as_long_as_the_longest():
    users = Users(Key.from_seed(3), 101, rank=1, demographics=0.0)
    assert [users.ids[0], users.ids[100]] == ["u000", "u100"]
