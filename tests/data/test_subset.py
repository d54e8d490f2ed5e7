"""A subset: the first users and items of one order, so that cells can be compared."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.subset import Subset, restricted
from tacit.data.synthetic.world import World
from tacit.errors import BadValue

WORLD = World(users=60, items=40, events_per_user=12, popularity_exponent=1.2)
DATASET = WORLD.dataset("tiny")


def test_a_user_has_the_same_number_in_every_subset():
    few, all_ = (Subset(users=n, items=30).of(DATASET) for n in (20, None))
    assert (len(few.profiles), len(all_.profiles)) == (20, 60)
    assert list(few.profiles.ids) == list(all_.profiles.ids)[:20]
    assert list(few.catalog.ids) == list(all_.catalog.ids)
    both = few.interactions.matrix().toarray(), all_.interactions.matrix().toarray()
    np.testing.assert_array_equal(both[0], both[1][:20])
    assert list(few.profiles.ids) != list(DATASET.profiles.ids)[:20]  # drawn


def test_more_items_have_the_fewer_among_them():
    sizes = (10, 25, None)
    few, more, every = ({*Subset(items=n).of(DATASET).catalog.ids} for n in sizes)
    assert (len(few), len(more), len(every)) == (10, 25, 40)
    assert few < more < every


def test_the_most_popular_are_those_that_most_events_have():
    log, catalog = DATASET.interactions, DATASET.catalog
    chosen = Subset(items=15, choose="popular").of(DATASET).catalog
    kept = catalog.indices(list(chosen.ids))
    left = np.setdiff1d(np.arange(log.n_items), kept)
    assert log.per_item[kept].min() >= log.per_item[left].max()
    assert {*chosen.ids} != {*Subset(items=15).of(DATASET).catalog.ids}


def test_restricted_keeps_who_has_what():
    users, items = np.array([5, 2]), np.array([0, 3, 9])
    part = restricted(DATASET, users, items)
    whole = DATASET.interactions.matrix().toarray()
    expected = whole[np.ix_(users, items)]
    np.testing.assert_array_equal(part.interactions.matrix().toarray(), expected)
    assert list(part.catalog.ids) == [DATASET.catalog.ids[i] for i in items]


@pytest.mark.parametrize("size", [{"users": 61}, {"items": 41}])
def test_more_than_there_is_is_refused(size):
    with pytest.raises(BadValue, match=r"must be <= [64]0"):
        Subset(**size).of(DATASET)


@pytest.mark.parametrize("size", [{"users": 0}, {"items": -1}])
def test_nobody_and_nothing_are_refused(size):
    with pytest.raises(BadValue, match="must be"):
        Subset(**size)
