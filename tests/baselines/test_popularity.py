from __future__ import annotations

from tacit.baselines.popularity import Popularity
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.keys import Key


def test_counts_users_not_events():
    users, items = [0, 0, 0, 1, 2], [2, 2, 2, 0, 0]
    log = Interactions.of_columns(users, items, n_users=3, n_items=4)
    fitted = Popularity().fit(Shards.of(log), key=Key.from_seed(0))
    history = Shards.of_history([1], n_items=4)
    assert fitted.score(history).tolist() == [[2.0, 0.0, 1.0, 0.0]]
