from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.reproduction.fmf_ldp.subsets import Subset, first, restricted


def test_a_person_has_the_same_number_in_every_cell(tiny):
    few, all_ = tiny.few.split(), tiny.many.split()
    assert (len(few.users), len(all_.users)) == (40, 160)
    assert list(few.profiles.ids) == list(all_.profiles.ids)[:40]
    assert list(few.catalog.ids) == list(all_.catalog.ids)
    for person in range(5):
        held = [split.test.history.histories[person] for split in (few, all_)]
        np.testing.assert_array_equal(*held)


def test_items_are_the_most_popular_or_drawn(tiny):
    whole = Subset("tiny").split().catalog
    popular = replace(tiny.many, choice="popular").split().catalog
    drawn = tiny.many.split().catalog
    assert len(popular) == len(drawn) == 160
    assert {*popular.ids} != {*drawn.ids}
    assert {*drawn.ids} < {*whole.ids}


def test_the_most_popular_are_those_that_most_people_have(tiny):
    from reproduction.fmf_ldp.conftest import DATASET

    log, catalog = DATASET.interactions, DATASET.catalog
    kept = catalog.indices(
        list(replace(tiny.many, choice="popular").split().catalog.ids)
    )
    left = np.setdiff1d(np.arange(log.n_items), kept)
    assert log.per_item[kept].min() >= log.per_item[left].max()


def test_the_latest_item_is_the_latest(tiny):
    split = replace(tiny.many, which="latest").split()
    heard = split.test.history.times
    assert heard is not None
    last = heard[split.test.history.offsets[1:] - 1]
    assert (split.test.targets.times >= last).all()


def test_the_first_people():
    from reproduction.fmf_ldp.conftest import DATASET

    from tacit.data.splits import leave_one_out
    from tacit.keys import Key

    people = leave_one_out(DATASET, which="random", key=Key.from_seed(0)).test
    some = first(people, 7)
    assert some.users.tolist() == people.users[:7].tolist()
    assert len(some.history) == len(some.targets) == 7
    assert len(first(people, 10**6).users) == len(people.users)
    lacks = 260 - people.history.lengths - 1
    bound = int(np.median(lacks))
    roomy = first(people, 10**6, free=bound)
    assert roomy.users.tolist() == people.users[lacks >= bound].tolist()
    assert 0 < len(roomy.users) < len(people.users)


def test_restricted_keeps_who_has_what():
    from reproduction.fmf_ldp.conftest import DATASET

    people, items = np.array([5, 2]), np.array([0, 3, 9])
    part = restricted(DATASET, people, items)
    whole = DATASET.interactions.matrix().toarray()
    expected = whole[np.ix_(people, items)]
    np.testing.assert_array_equal(part.interactions.matrix().toarray(), expected)
    assert list(part.catalog.ids) == [DATASET.catalog.ids[i] for i in items]


def test_more_than_there_is_is_refused(tiny):
    with pytest.raises(BadValue, match=r"people=1,000 must be <= 160"):
        replace(tiny.many, people=1_000).split()


def test_a_cell_says_what_it_is(tiny):
    assert str(tiny.few) == "40 people × 160 items"
    assert str(tiny.popular) == "160 people × 160 most popular items, not filtered"
