from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.recent_popularity import RecentPopularity
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

HOUR = 3600


def fitted_on(users, items, times, **settings):
    log = Interactions.of_columns(users, items, times=times, n_users=3, n_items=4)
    return RecentPopularity(**settings).fit(Shards.of(log), key=Key.from_seed(0))


def test_an_event_counts_half_after_its_half_life():
    """Item 0 now and an hour ago, item 1 two hours ago, item 2 long ago."""
    times = [100 * HOUR, 99 * HOUR, 98 * HOUR, -1]
    fitted = fitted_on([0, 1, 2, 2], [0, 0, 1, 2], times, half_life=1.0)
    history = Shards.of_history([1], n_items=4)
    found = fitted.score(history)[0]
    np.testing.assert_allclose(found, [1.5, 0.25, 0.0, 0.0], atol=1e-6)


def test_repeats_of_a_user_count_once_and_the_latest_counts():
    fitted = fitted_on([0, 0, 0], [3, 3, 3], [0, 5 * HOUR, 2 * HOUR], half_life=1.0)
    assert fitted.counts.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_nobody_has_anything():
    assert not fitted_on([], [], np.zeros(0, np.int64)).counts.any()


def test_refuses():
    with pytest.raises(BadValue, match="half_life"):
        RecentPopularity(half_life=0.0)
    with pytest.raises(BadValue, match="use popularity"):
        fitted_on([0], [1], None)
