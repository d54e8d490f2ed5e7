from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from data.splits.drawn import (
    check_heldout,
    check_users,
    dataset_of,
    found,
    histories,
    rows,
    without_some_events_of_others,
)
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.shards import Shards
from tacit.data.splits import adapt_half, new_users
from tacit.data.synthetic.world import World, checkerboard
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(3)


@given(histories, st.sampled_from([0.1, 0.2, 0.5, 0.999]), st.integers(0, 9))
def test_new_users_are_disjoint_and_complete(users, share, seed):
    anybody = [[(0, 0), (1, 0)], [(2, 0), (2, 1), (3, 1)], [(4, 0)]]
    dataset = dataset_of([*anybody, *users])
    split = new_users(
        dataset, n_validation=1, n_test=1, target_share=share, key=Key.from_seed(seed)
    )
    check_users(dataset, split)
    own = rows(Shards.of(dataset.interactions))
    for held in (split.validation, split.test):
        check_heldout(dataset, held, hidden=[set()])
        for user, targets in zip(held.users, rows(held.targets), strict=True):
            n = len(set(own[user]))
            assert n >= 2
            assert len(targets) == max(1, int(share * n))


def test_sizes_are_kept_and_the_whole_catalog_stays():
    dataset = checkerboard(20, 12, 3)
    split = new_users(dataset, n_validation=4, n_test=6, key=KEY)
    assert (len(split.users), len(split.validation.users)) == (10, 4)
    assert len(split.test.users) == 6
    assert (np.diff(split.test.users) > 0).all()
    assert split.catalog is dataset.catalog
    assert split.profiles is dataset.profiles


def test_one_third_of_fifteen_items_is_five_not_four():
    dataset = checkerboard(4, 15, 1)
    split = new_users(dataset, n_validation=1, n_test=1, target_share=1 / 3, key=KEY)
    assert len(split.test.targets.items) == 5
    assert len(split.test.history.items) == 10


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ({"n_validation": 5, "n_test": 16}, "20 of 20 users can be held out"),
        ({"n_validation": 10, "n_test": 10}, "leave somebody to train on"),
        ({"n_validation": 0, "n_test": 1}, "n_validation=0 must be >= 1"),
        ({"n_validation": 1, "n_test": -1}, "n_test=-1 must be >= 1"),
        ({"n_validation": 1, "n_test": 1, "target_share": 0.0}, "target_share=0.0"),
        ({"n_validation": 1, "n_test": 1, "target_share": 1.0}, "target_share=1.0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes, problem):
    with pytest.raises(BadValue, match=problem):
        new_users(checkerboard(20, 12, 3), key=KEY, **sizes)


def test_users_with_one_item_train_even_if_others_must_be_many():
    users = [[(0, 0), (0, 1)]] * 5 + [[(1, 0), (2, 0)]] * 2
    split = new_users(dataset_of(users), n_validation=1, n_test=1, key=KEY)
    assert split.users.tolist() == [0, 1, 2, 3, 4]


def test_the_catalog_of_training_users_by_hand():
    # Whoever is held out, item 6 is theirs alone if they are user 0, and so on.
    users = [[(0, 0), (1, 0), (2, 0), (6 - u % 2, 0)] for u in range(2)] * 2
    users += [[(0, 0), (1, 0), (2, 0), (3, 0)]] * 3
    dataset = dataset_of(users)
    split = new_users(dataset, n_validation=2, n_test=2, catalog="training", key=KEY)
    kept = sorted({item for u in split.users for item, _ in users[u]})
    assert list(split.catalog.ids) == ["abcdefgh"[item] for item in kept]
    assert "h" not in split.catalog.ids
    shards = (split.train, split.test.history, split.test.targets)
    assert {s.n_items for s in shards} == {len(kept)}


@given(histories, st.integers(0, 9))
def test_items_that_nobody_trains_on_are_dropped(users, seed):
    several = [(0, 0), (1, 0), (2, 1), (3, 1)]
    users = [*[several] * 5, *[[*several, *held] for held in users]]
    dataset, key = dataset_of(users), Key.from_seed(seed)
    whole = new_users(dataset, n_validation=2, n_test=2, key=key)
    split = new_users(dataset, n_validation=2, n_test=2, catalog="training", key=key)
    own = rows(Shards.of(dataset.interactions))
    kept = sorted({item for u in split.users for item in own[u]})
    ids = dataset.catalog.ids
    assert list(split.catalog.ids) == [ids[item] for item in kept]
    assert split.users.tolist() == whole.users.tolist()
    assert [[kept[i] for i in row] for row in rows(split.train)] == rows(whole.train)
    for held, before in (
        (split.validation, whole.validation),
        (split.test, whole.test),
    ):
        left = {u: [i for i in own[u] if i in kept] for u in before.users.tolist()}
        assert held.users.tolist() == [u for u in left if len(set(left[u])) >= 2]
        for place, user in enumerate(held.users.tolist()):
            seen = [kept[i] for i in held.history.histories[place]]
            wanted = [kept[i] for i in held.targets.histories[place]]
            assert seen == [i for i in left[user] if i not in wanted]
            assert len(wanted) == len(set(wanted)) == max(1, len(set(left[user])) // 5)


def test_held_out_users_without_known_items_are_refused():
    users = [[(2 * u, 0), (2 * u + 1, 0)] for u in range(3)]
    with pytest.raises(BadValue, match="use catalog='all'"):
        new_users(
            dataset_of(users), n_validation=1, n_test=1, catalog="training", key=KEY
        )


def test_an_unknown_catalog_is_refused():
    with pytest.raises(BadValue, match="known: all, training"):
        new_users(
            checkerboard(20, 12, 3),
            n_validation=1,
            n_test=1,
            catalog="everything",  # type: ignore[arg-type]
            key=KEY,
        )


@given(
    histories,
    st.sampled_from([None, 0.0, 6.0, 12.0]),
    st.sampled_from([(0.8, 0.05), (0.6, 0.2)]),
    st.integers(0, 9),
)
def test_halves_are_disjoint_and_complete(users, least, shares, seed):
    users = [*[[(i, i) for i in range(5)] for _ in range(12)], *users]
    dataset = dataset_of(users)
    train, validate = shares
    split = adapt_half(
        dataset,
        train_share=train,
        validation_share=validate,
        min_target_value=least,
        key=Key.from_seed(seed),
    )
    check_users(dataset, split)
    n = sum(1 for held in users if held)
    assert len(split.users) == round(train * n)
    assert len(split.validation.users) == max(1, round(validate * n))
    values = dict[tuple[int, int], float]()  # the largest of each user and item
    log = dataset.interactions
    for pair in zip(log.users.tolist(), log.items.tolist(), log.values, strict=True):
        values[pair[:2]] = max(pair[2], values.get(pair[:2], -1.0))
    for held in (split.validation, split.test):
        assert held.disliked is not None
        disliked = [set(row) for row in rows(held.disliked)]
        check_heldout(dataset, held, hidden=disliked)
        for user, wanted, other in zip(
            held.users.tolist(), rows(held.targets), disliked, strict=True
        ):
            distinct = {i for i, _ in users[user]}
            assert len(wanted) + len(other) == len(distinct) // 2
            assert all(least is None or values[user, i] >= least for i in wanted)
            assert all(values[user, i] < (least or 0.0) for i in other)


def test_users_with_nothing_to_find_train():
    liking = [[(0, 0), (1, 0)]] * 8  # events 0 to 15
    users = [*liking, *[[(2, 0), (3, 0)]] * 2]  # the last two like everything
    split = adapt_half(
        dataset_of(users),
        train_share=0.8,
        validation_share=0.1,
        min_target_value=16,
        key=KEY,
    )
    assert split.users.tolist() == list(range(8))
    held = [*split.validation.users.tolist(), *split.test.users.tolist()]
    assert sorted(held) == [8, 9]


def test_every_item_is_equally_often_hidden():
    """400 of 800 users with four items, two of them hidden: Binomial(400, 1/2) each.

    By Hoeffding four counts are all within 50 of 200 but for a chance of
    8 exp(-2 * 50**2 / 400) < 3e-5.
    """
    users = [[(item, item) for item in range(4)]] * 800
    split = adapt_half(
        dataset_of(users), train_share=0.4, validation_share=0.1, key=KEY
    )
    assert len(split.test.users) == 400
    counts = np.bincount(split.test.targets.items, minlength=4)
    assert counts.sum() == 800
    assert (abs(counts - 200) < 50).all()


@pytest.mark.parametrize(
    ("shares", "problem"),
    [
        ({"train_share": 0.9, "validation_share": 0.1}, "leave none of 20 users"),
        ({"train_share": 1.0}, "train_share=1.0"),
        ({"validation_share": 0.0}, "validation_share=0.0"),
        ({"min_target_value": 6.0}, "0 of 20 users can be held out"),
    ],
)
def test_shares_that_do_not_fit_are_refused(shares, problem):
    with pytest.raises(BadValue, match=problem):
        adapt_half(checkerboard(20, 12, 3), key=KEY, **shares)


def test_draws_do_not_depend_on_others():
    world = World(users=30, items=40, events_per_user=8).dataset()
    other = without_some_events_of_others(world, until=9)
    for divide in (
        partial(new_users, n_validation=9, n_test=9),
        partial(adapt_half, train_share=0.4, validation_share=0.3),
    ):
        mine, same = (found(divide(d, key=KEY).test) for d in (world, other))
        assert mine.keys() == same.keys()
        assert all(mine[u] == same[u] for u in mine if u >= 9)
        assert any(u >= 9 for u in mine)


@given(histories, st.integers(0, 5))
def test_the_latest_share_is_what_came_last(users, seed):
    """Of the same users as at random, and nothing in the history came later."""
    dataset = dataset_of([*users, *[[(i, i) for i in range(8)]] * 3])
    key = Key.from_seed(seed)
    hold = {"n_validation": 1, "n_test": 1, "target_share": 0.4, "key": key}
    latest = new_users(dataset, targets="latest", **hold)
    random = new_users(dataset, **hold)
    for one, other in zip(
        (latest.validation, latest.test), (random.validation, random.test), strict=True
    ):
        assert one.users.tolist() == other.users.tolist()
        assert one.targets.lengths.tolist() == other.targets.lengths.tolist()
        last = {}
        history = one.history
        for item, time in zip(history.items, history.times, strict=True):
            last[item] = max(time, last.get(item, time))
        whole = dataset.interactions.take_users(one.users)
        ends = {
            item: whole.times[whole.items == item].max() for item in one.targets.items
        }
        assert max(last.values()) <= min(ends.values())
