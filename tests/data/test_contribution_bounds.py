"""DP-VAE's construction: its bound by hand, who is dropped, who is sampled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.data.catalog import Catalog, Profiles
from tacit.data.contribution_bounds import ContributionBounds, best_share, by_recency
from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.strings import Strings
from tacit.errors import BadValue

PRINTED = ContributionBounds()


def dataset(lengths, n_items=20) -> Dataset:
    """Users who have the first so many items."""
    log = Interactions.of_columns(
        np.repeat(np.arange(len(lengths)), lengths),
        np.concatenate([np.arange(n) for n in lengths]),
        n_users=len(lengths),
        n_items=n_items,
    )
    catalog = Catalog.of_ids([f"item {i}" for i in range(n_items)])
    users = Strings.of(f"user {i}" for i in range(len(lengths)))
    return Dataset("small", log, catalog, Profiles(users))


# the bound


def test_the_bound_by_hand():
    """(1682 + ln 10) / 0.05 = 33686.05; one more item: 20 more."""
    assert PRINTED.bound(1.0, n_items=1682) == pytest.approx(33686.05, abs=0.01)
    assert PRINTED.bound(0.001, n_items=1682) == pytest.approx(33.686, abs=0.001)
    one_more = ContributionBounds(adds_one=True)
    assert one_more.bound(1.0, n_items=1682) == pytest.approx(33706.05, abs=0.01)
    other = ContributionBounds(dimension=5, error=0.5, probability=math.exp(-3))
    assert other.bound(0.25, n_items=1682) == pytest.approx(4.0)


def test_the_printed_bound_of_ml_100k_is_none_of_these():
    """Printed is [3, 1772]: a ratio of 591, where p_k from .001 to 1 gives 1000.

    No d makes both ends: 1772 needs d = 86, and 3 needs d = 148. The upper end is what
    1 - ω in place of ω gives; the lower one would then be 1.8.
    """
    assert round(1772 / 3) == 591
    upper, lower = (
        needed * 0.05 / p - math.log(10) for needed, p in ((1772, 1.0), (3, 0.001))
    )
    assert (round(upper), round(lower)) == (86, 148)
    swapped = ContributionBounds(error=0.95)
    assert math.floor(swapped.bound(1.0, n_items=1682)) == 1772
    assert swapped.bound(0.001, n_items=1682) == pytest.approx(1.77, abs=0.01)


# who is left


def test_users_and_items_below_the_bound_are_dropped():
    """Bound 4: the user with 3 goes, and so do items that nobody is left to have."""
    bounds = ContributionBounds(
        0.4, dimension=8, error=0.8, probability=0.99, items=False
    )
    assert bounds.bound(0.4, n_items=20) == pytest.approx(4.0, abs=0.01)
    kept = bounds.of(dataset([3, 5, 6, 0]))
    assert [*kept.profiles.ids] == ["user 1", "user 2"]
    assert kept.interactions.per_user.tolist() == [5, 6]
    assert [*kept.catalog.ids] == [f"item {i}" for i in range(6)]


def test_items_have_the_same_bound():
    """Bound 2.4: the last item of the longest history has one user only."""
    bounds = ContributionBounds(0.25, dimension=8, error=0.85, probability=0.99)
    assert bounds.bound(0.25, n_items=20) == pytest.approx(2.36, abs=0.01)
    kept = bounds.of(dataset([4, 5, 5, 6, 1]))
    assert kept.interactions.per_item.tolist() == [4, 4, 4, 4, 3]
    assert kept.interactions.per_user.tolist() == [4, 5, 5, 5]


def test_above_the_bound_events_are_drawn():
    bounds = ContributionBounds(0.0, dimension=4, error=0.5, probability=0.99)
    assert math.floor(bounds.bound(1.0, n_items=20)) == 8
    kept = bounds.of(dataset([3, 20, 8] + [20] * 60))
    assert kept.interactions.per_user.tolist() == [3, 8, 8] + [8] * 60
    # Anything may be drawn, and what is drawn does not follow the order.
    assert kept.interactions.per_item.min() > 5
    again = bounds.of(dataset([3, 20, 8] + [20] * 60))
    np.testing.assert_array_equal(again.interactions.items, kept.interactions.items)


def test_a_bound_that_nobody_meets_is_refused():
    with pytest.raises(BadValue, match=r"least=0\.5"):
        ContributionBounds(least=0.5).of(dataset([3, 5]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"least": -0.1},
        {"most": 0.0},
        {"error": 0.0},
        {"probability": 1.0},
        {"dimension": 0},
        {"least": 0.5, "most": 0.2},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(BadValue, match=next(iter(wrong))):
        ContributionBounds(**wrong)


# recency, and the search


def test_repeated_ratings_by_hand():
    """1, 2 and 5 stars in this order: (1·1 + 2·2 + 3·5) / 6 = 10/3; 4 and 1: 2."""
    log = Interactions.of_columns(
        [0, 0, 0, 0, 1, 1, 1],
        [7, 3, 7, 7, 7, 7, 3],
        values=[1, 3, 2, 5, 4, 1, 2],
        times=[1, 2, 3, 9, 5, 6, 7],
        n_users=2,
        n_items=8,
    )
    found = by_recency(log)
    assert found.items.tolist() == [3, 7, 7, 3]
    np.testing.assert_allclose(found.values, [3, 10 / 3, 2, 2], rtol=1e-6)
    assert found.times.tolist() == [2, 9, 6, 7]
    assert found.per_user.tolist() == [2, 2]


def test_the_weights_add_up_to_one():
    log = Interactions.of_columns(
        [0] * 9, [0] * 9, values=[3.0] * 9, n_users=1, n_items=1
    )
    assert by_recency(log).values.tolist() == pytest.approx([3.0])


def test_a_log_without_repeats_stays_as_it_is():
    log = dataset([3, 4]).interactions
    assert by_recency(log) is log


def test_the_search_takes_the_first_of_the_best():
    tried = []

    def precision(share):
        tried.append(share)
        return {0.1: 0.2, 0.2: 0.4, 0.5: 0.4}[share]

    assert best_share([0.5, 0.1, 0.2], precision) == (0.2, 0.4)
    assert tried == [0.1, 0.2, 0.5]
    with pytest.raises(BadValue, match="no share"):
        best_share([], precision)
