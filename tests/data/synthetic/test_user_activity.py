from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from tacit.data.synthetic.world import LIKE_MOVIELENS_1M, LIKE_MOVIELENS_20M, World
from tacit.testing.statistics import assert_distribution


def counts(world: World) -> np.ndarray:
    return world._activity.counts(world._users.keys)


def test_activity_is_log_normal():
    """With a mean of 10,000 rounding does not show, and no count is clipped.

    False alarm below 1e-9 if the seed were drawn anew; sees a spread 20 % off.
    """
    world = World(
        users=20_000, items=10**6, events_per_user=10_000, activity_spread=0.8
    )
    found = (np.log(counts(world) / 10_000) + 0.8**2 / 2) / 0.8
    assert_distribution(found, norm.cdf, false_alarm=1e-9)


def test_nobody_has_too_few_or_more_than_half():
    world = World(users=2_000, items=60, activity_spread=2.0, events_per_user=20)
    assert {5, 30} == {int(counts(world).min()), int(counts(world).max())}


@pytest.mark.parametrize(
    ("world", "total", "median"),
    [(LIKE_MOVIELENS_1M, 1_000_209, 96), (LIKE_MOVIELENS_20M, 20_000_263, 68)],
)
def test_as_active_as_movielens(world, total, median):
    """The published totals and medians; at least 20 ratings each."""
    found = counts(world)
    assert found.sum() == pytest.approx(total, rel=0.01)
    assert np.median(found) == pytest.approx(median, abs=1)
    assert found.min() == 20
