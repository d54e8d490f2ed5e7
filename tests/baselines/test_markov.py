"""Transitions by hand, and the three ways to weigh a history."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.markov import Markov
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(0)
TRAIN = Shards.of_histories([[0, 1, 2], [0, 1, 1, 3], [2, 3], [0, 2]], n_items=5)


def test_chances_are_counted_transitions_and_popularity():
    """After 0 came 1 twice and 2 once; of eleven events four are of 0 or 4."""
    fitted = Markov(2.0).fit(TRAIN, key=KEY)
    shares = np.array([3, 3, 3, 2, 0]) / 11
    after_0 = (np.array([0, 2, 1, 0, 0]) + 2 * shares) / (3 + 2)
    after_1 = (np.array([0, 0, 1, 1, 0]) + 2 * shares) / (2 + 2)
    one, nothing, both = fitted.score(Shards.of_histories([[0], [], [0, 1]], n_items=5))
    np.testing.assert_allclose(one, after_0, rtol=1e-6)
    np.testing.assert_allclose(nothing, shares, rtol=1e-6)
    np.testing.assert_allclose(both, after_1 + after_0 / 2, rtol=1e-6)
    assert one.sum() == pytest.approx(1)


def test_the_order_of_a_history_counts_and_for_any_list_it_does_not():
    there, back = (Shards.of_histories([h], n_items=5) for h in ([0, 1], [1, 0]))
    chain, bag = (Markov(list_for=w).fit(TRAIN, key=KEY) for w in ("session", "any"))
    assert (chain.score(there) != chain.score(back)).any()
    np.testing.assert_allclose(bag.score(there), bag.score(back), rtol=1e-6)


def test_for_a_visit_what_is_old_counts_less():
    days = 86_400 * np.array([0, 30])
    log = Interactions.of_columns([0, 0], [0, 1], times=days, n_users=1, n_items=5)
    fitted = Markov(2.0, list_for="visit").fit(TRAIN, key=KEY)
    first, second = fitted.score(Shards.of_histories([[0], [1]], n_items=5))
    own = fitted.score(Shards.of(log))[0]
    np.testing.assert_allclose(own, first / 2 + second, rtol=1e-6)


@pytest.mark.parametrize("settings", [{"smoothing": 0.0}, {"list_for": "later"}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(BadValue):
        Markov(**settings)
