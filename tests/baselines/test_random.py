from __future__ import annotations

import numpy as np

from tacit.baselines.random import Random
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.keys import Key


def _users() -> Shards:
    users, items = [0, 0, 1, 2, 2], [3, 1, 1, 3, 1]
    return Shards.of(Interactions.of_columns(users, items, n_users=4, n_items=50))


def test_a_user_keeps_an_order_whoever_else_is_scored():
    users = _users()
    fitted = Random().fit(users, key=Key.from_seed(0))
    together = fitted.score(users)
    for row in range(4):
        np.testing.assert_array_equal(fitted.score(users.take([row]))[0], together[row])


def test_different_histories_get_different_orders():
    scores = Random().fit(_users(), key=Key.from_seed(0)).score(_users())
    assert (scores[0] == scores[2]).all()  # the same items, in another order
    assert (scores[0] != scores[1]).all()
    assert (scores[1] != scores[3]).all()


def test_another_key_gives_another_order():
    one, two = (Random().fit(_users(), key=Key.from_seed(s)) for s in (0, 1))
    assert (one.score(_users()) != two.score(_users())).all()
