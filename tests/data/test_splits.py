from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.sources.synthetic import World, checkerboard
from tacit.data.splits import Heldout, leave_one_out, new_users
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(3)

# Histories as lists of (item, time); items repeat, times tie.
Histories = list[list[tuple[int, int]]]
histories = st.lists(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4)), max_size=12),
    min_size=1,
    max_size=8,
)


def dataset_of(people: Histories, *, with_times: bool = True) -> Dataset:
    events = [(u, i, t) for u, held in enumerate(people) for i, t in held]
    users, items, times = np.array(events, np.int64).reshape(-1, 3).T
    log = Interactions.of_columns(
        users,
        items,
        values=np.arange(len(users)),
        times=times if with_times else None,
        n_users=len(people),
        n_items=8,
    )
    ids = Strings.of(f"u{n}" for n in range(len(people)))
    return Dataset("drawn", log, Catalog.of_ids("abcdefgh"), Profiles(ids))


def rows(shards: Shards) -> list[list[int]]:
    return [row.tolist() for row in shards.histories]


def found(held: Heldout) -> dict[int, list[int]]:
    """The targets of each person."""
    return dict(zip(held.users.tolist(), rows(held.targets), strict=True))


def check_heldout(dataset: Dataset, held: Heldout, *, hidden: list[set[int]]) -> None:
    """History and targets share nothing and together are what the person has."""
    log = dataset.interactions
    own = rows(Shards.of(log))
    assert len(held.users) == len(held.history) == len(held.targets)
    for place, user in enumerate(held.users):
        history = held.history.histories[place].tolist()
        targets = held.targets.histories[place].tolist()
        assert targets
        assert len(targets) == len(set(targets))
        assert not set(history) & set(targets)
        away = set(targets) | hidden[place]
        assert history == [item for item in own[user] if item not in away]
        first = [own[user].index(item) + log.offsets[user] for item in targets]
        begin, end = held.targets.offsets[place : place + 2]
        assert held.targets.values[begin:end].tolist() == log.values[first].tolist()


@given(histories, st.sampled_from(["random", "latest"]), st.integers(0, 9))
def test_leave_one_out_is_disjoint_and_complete(people, which, seed):
    dataset = dataset_of(people)
    distinct = [len({i for i, _ in held}) for held in people]
    if max(distinct) < 3:
        with pytest.raises(BadValue, match="nobody has 3 distinct items"):
            leave_one_out(dataset, which=which, key=Key.from_seed(seed))
        return
    split = leave_one_out(dataset, which=which, key=Key.from_seed(seed))
    chosen = [u for u, n in enumerate(distinct) if n >= 3]
    assert split.validation.users.tolist() == split.test.users.tolist() == chosen
    validation, test = (rows(h.targets) for h in (split.validation, split.test))
    assert all(len(row) == 1 for row in validation + test)
    check_heldout(dataset, split.validation, hidden=[set(row) for row in test])
    check_heldout(dataset, split.test, hidden=[set()] * len(test))
    # Everyone with an event trains, on the history that validation starts from.
    assert split.users.tolist() == [u for u, held in enumerate(people) if held]
    train = dict(zip(split.users.tolist(), rows(split.train), strict=True))
    seen = dict(zip(chosen, rows(split.validation.history), strict=True))
    own = rows(Shards.of(dataset.interactions))
    assert train == {u: seen.get(u, own[u]) for u in train}


@given(histories, st.integers(0, 9))
def test_latest_leaves_out_the_most_recent(people, seed):
    dataset = dataset_of([[(0, 0), (1, 1), (2, 2)], *people])
    split = leave_one_out(dataset, which="latest", key=Key.from_seed(seed))
    before = found(split.validation)
    everyone = [[(0, 0), (1, 1), (2, 2)], *people]
    for user, (test,) in found(split.test).items():
        last: dict[int, int] = {}
        for item, time in everyone[user]:
            last[item] = max(time, last.get(item, time))
        ordered = sorted(last.values(), reverse=True)
        assert last[test] == ordered[0]
        assert last[before[user][0]] == ordered[1]


def test_the_last_event_counts_not_the_first():
    people = [[(0, 0), (1, 1), (2, 2), (0, 3)]]
    split = leave_one_out(dataset_of(people), which="latest", key=KEY)
    assert rows(split.test.targets) == [[0]]
    assert rows(split.validation.targets) == [[2]]
    assert rows(split.train) == [[1]]


def test_ties_in_time_are_broken_evenly():
    """500 people with four tied items, each left out with probability 1/4.

    Counts are Binomial(500, 1/4); by Hoeffding 8 of them (test and validation) are all
    within 60 of 125 but for a chance of 16 exp(-2 * 60**2 / 500) < 1e-5.
    """
    people = [[(item, 0) for item in range(4)]] * 500
    split = leave_one_out(dataset_of(people), which="latest", key=KEY)
    for held in (split.validation, split.test):
        counts = np.bincount(held.targets.items, minlength=4)
        assert (abs(counts - 125) < 60).all()


def test_latest_needs_times():
    dataset = dataset_of([[(0, 0), (1, 0), (2, 0)]], with_times=False)
    with pytest.raises(BadValue, match="which='random'"):
        leave_one_out(dataset, which="latest", key=KEY)
    assert len(leave_one_out(dataset, which="random", key=KEY).test.users) == 1


def test_an_unknown_way_is_refused():
    dataset = dataset_of([[(0, 0), (1, 0), (2, 0)]])
    with pytest.raises(BadValue, match="known: latest, random"):
        leave_one_out(dataset, which="newest", key=KEY)  # type: ignore[arg-type]


@given(histories, st.sampled_from([0.1, 0.2, 0.5, 0.999]), st.integers(0, 9))
def test_new_users_are_disjoint_and_complete(people, share, seed):
    anybody = [[(0, 0), (1, 0)], [(2, 0), (2, 1), (3, 1)], [(4, 0)]]
    dataset = dataset_of([*anybody, *people])
    split = new_users(
        dataset, n_validation=1, n_test=1, target_share=share, key=Key.from_seed(seed)
    )
    groups = [split.users, split.validation.users, split.test.users]
    joined = np.concatenate(groups)
    assert len(set(joined.tolist())) == len(joined)
    with_events = np.flatnonzero(dataset.interactions.per_user)
    assert sorted(joined.tolist()) == with_events.tolist()
    own = rows(Shards.of(dataset.interactions))
    assert rows(split.train) == [own[u] for u in split.users]
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
        ({"n_validation": 5, "n_test": 16}, "has 20 people"),
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


def test_people_with_one_item_train_even_if_others_must_be_many():
    people = [[(0, 0), (0, 1)]] * 5 + [[(1, 0), (2, 0)]] * 2
    split = new_users(dataset_of(people), n_validation=1, n_test=1, key=KEY)
    assert split.users.tolist() == [0, 1, 2, 3, 4]


def test_draws_do_not_depend_on_others():
    world = World(users=30, items=40, events_per_user=8).dataset()
    log = world.interactions
    thinner = np.ones(len(log), bool)
    thinner[log.offsets[3] : log.offsets[9] : 2] = False  # others lose events
    other = Dataset("thinner", log.keep(thinner), world.catalog, world.profiles)
    for which in ("random", "latest"):
        a, b = (leave_one_out(d, which=which, key=KEY) for d in (world, other))
        mine, same = (found(s.test) for s in (a, b))
        assert {u: mine[u] for u in mine if u >= 9} == {
            u: same[u] for u in same if u >= 9
        }
    a, b = (new_users(d, n_validation=9, n_test=9, key=KEY) for d in (world, other))
    mine, same = (found(s.test) for s in (a, b))
    assert mine.keys() == same.keys()
    assert all(mine[u] == same[u] for u in mine if u >= 9)
    assert any(u >= 9 for u in mine)


def test_the_key_decides():
    world = World(users=30, items=40, events_per_user=8).dataset()
    draws = [
        rows(leave_one_out(world, which="random", key=Key.from_seed(s)).test.targets)
        for s in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]
