from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from data.splits.drawn import (
    check_heldout,
    dataset_of,
    found,
    histories,
    rows,
    without_some_events_of_others,
)
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.shards import Shards
from tacit.data.sources import load
from tacit.data.splits import (
    global_cut,
    leave_last_visit_out,
    leave_one_out,
    new_users,
    ratio,
)
from tacit.data.synthetic.world import World, checkerboard
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(3)


@given(histories, st.sampled_from(["random", "latest"]), st.integers(0, 9))
def test_leave_one_out_is_disjoint_and_complete(users, which, seed):
    dataset = dataset_of(users)
    distinct = [len({i for i, _ in held}) for held in users]
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
    assert split.users.tolist() == [u for u, held in enumerate(users) if held]
    train = dict(zip(split.users.tolist(), rows(split.train), strict=True))
    seen = dict(zip(chosen, rows(split.validation.history), strict=True))
    own = rows(Shards.of(dataset.interactions))
    assert train == {u: seen.get(u, own[u]) for u in train}


@given(histories, st.integers(0, 9))
def test_latest_leaves_out_the_most_recent(users, seed):
    dataset = dataset_of([[(0, 0), (1, 1), (2, 2)], *users])
    split = leave_one_out(dataset, which="latest", key=Key.from_seed(seed))
    before = found(split.validation)
    everyone = [[(0, 0), (1, 1), (2, 2)], *users]
    for user, (test,) in found(split.test).items():
        last: dict[int, int] = {}
        for item, time in everyone[user]:
            last[item] = max(time, last.get(item, time))
        ordered = sorted(last.values(), reverse=True)
        assert last[test] == ordered[0]
        assert last[before[user][0]] == ordered[1]


def test_the_last_event_counts_not_the_first():
    users = [[(0, 0), (1, 1), (2, 2), (0, 3)]]
    split = leave_one_out(dataset_of(users), which="latest", key=KEY)
    assert rows(split.test.targets) == [[0]]
    assert rows(split.validation.targets) == [[2]]
    assert rows(split.train) == [[1]]


def test_ties_in_time_are_broken_evenly():
    """500 users with four tied items, each left out with probability 1/4.

    Counts are Binomial(500, 1/4); by Hoeffding 8 of them (test and validation) are all
    within 60 of 125 but for a chance of 16 exp(-2 * 60**2 / 500) < 1e-5.
    """
    users = [[(item, 0) for item in range(4)]] * 500
    split = leave_one_out(dataset_of(users), which="latest", key=KEY)
    for held in (split.validation, split.test):
        counts = np.bincount(held.targets.items, minlength=4)
        assert (abs(counts - 125) < 60).all()


def test_latest_needs_times():
    dataset = dataset_of([[(0, 0), (1, 0), (2, 0)]], with_times=False)
    with pytest.raises(BadValue, match="has no times of events"):
        leave_one_out(dataset, which="latest", key=KEY)
    assert len(leave_one_out(dataset, which="random", key=KEY).test.users) == 1


def test_an_unknown_way_is_refused():
    dataset = dataset_of([[(0, 0), (1, 0), (2, 0)]])
    with pytest.raises(BadValue, match="known: latest, random"):
        leave_one_out(dataset, which="newest", key=KEY)  # type: ignore[arg-type]


@given(
    histories,
    st.sampled_from([(0.8, 0.1, 0.1), (0.5, 0.25, 0.25), (0.05, 0.05, 0.9)]),
    st.integers(0, 9),
)
def test_ratio_is_disjoint_and_complete(users, shares, seed):
    users = [[(0, 0), (1, 1), (2, 2)], *users]
    dataset = dataset_of(users)
    split = ratio(dataset, shares=shares, key=Key.from_seed(seed))
    distinct = [len({i for i, _ in held}) for held in users]
    chosen = [u for u, n in enumerate(distinct) if n >= 3]
    assert split.validation.users.tolist() == split.test.users.tolist() == chosen
    test, validation = found(split.test), found(split.validation)
    check_heldout(dataset, split.validation, hidden=[set(t) for t in test.values()])
    check_heldout(dataset, split.test, hidden=[set()] * len(chosen))
    assert split.users.tolist() == [u for u, held in enumerate(users) if held]
    train = dict(zip(split.users.tolist(), rows(split.train), strict=True))
    seen = dict(zip(chosen, rows(split.validation.history), strict=True))
    own = rows(Shards.of(dataset.interactions))
    assert train == {u: seen.get(u, own[u]) for u in train}
    for user in chosen:
        n = distinct[user]
        assert len(test[user]) == min(max(1, int(shares[2] * n + 1e-9)), n - 2)
        left = n - 1 - len(test[user])
        assert len(validation[user]) == min(max(1, int(shares[1] * n + 1e-9)), left)
        assert train[user]


def test_ten_items_are_divided_eight_one_one():
    split = ratio(checkerboard(4, 30, 1), key=KEY)
    assert split.train.lengths.tolist() == [24] * 4
    assert split.validation.targets.lengths.tolist() == [3] * 4
    assert split.test.targets.lengths.tolist() == [3] * 4


def test_every_item_is_equally_often_left_out():
    """600 users with five items, one of which tests: counts are Binomial(600, 1/5).

    By Hoeffding 10 of them (test and validation) are all within 65 of 120 but for a
    chance of 20 exp(-2 * 65**2 / 600) < 2e-5.
    """
    users = [[(item, item) for item in range(5)]] * 600
    split = ratio(dataset_of(users), key=KEY)
    for held in (split.validation, split.test):
        counts = np.bincount(held.targets.items, minlength=5)
        assert (abs(counts - 120) < 65).all()


@pytest.mark.parametrize(
    ("shares", "problem"),
    [
        ((0.8, 0.1, 0.2), "must sum to 1, not 1.1"),
        ((0.9, 0.1, 0.0), r"test=0.0 must be in \(0, 1\)"),
        ((8.0, 1.0, 1.0), r"train=8.0 must be in \(0, 1\)"),
    ],
)
def test_shares_that_are_none_are_refused(shares, problem):
    with pytest.raises(BadValue, match=problem):
        ratio(checkerboard(4, 30, 1), shares=shares, key=KEY)


def test_nobody_to_divide_is_refused():
    with pytest.raises(BadValue, match="nobody has 3 distinct items"):
        ratio(dataset_of([[(0, 0), (1, 0), (0, 1)]]), key=KEY)


@pytest.mark.parametrize(
    "divide",
    [
        partial(leave_one_out, which="random"),
        partial(leave_one_out, which="latest"),
        ratio,
    ],
)
def test_draws_do_not_depend_on_others(divide):
    world = World(users=30, items=40, events_per_user=8).dataset()
    other = without_some_events_of_others(world, until=9)
    for held in ("validation", "test"):
        mine, same = (found(getattr(divide(d, key=KEY), held)) for d in (world, other))
        assert {u: mine[u] for u in mine if u >= 9} == {
            u: same[u] for u in same if u >= 9
        }


DAY = 86_400
VISITS = [(0, 0), (1, 5), (2, 9), (3, 20), (4, 30), (5, DAY + 30), (6, 3 * DAY)]


def test_the_last_visit_tests_and_the_one_before_validates():
    """Three visits: a day between is one that begins, a second less is not."""
    split = leave_last_visit_out(dataset_of([VISITS, [(0, 0), (1, 9 * DAY)]]))
    assert split.users.tolist() == [0, 1]
    assert rows(split.train) == [[0, 1, 2, 3, 4], [0, 1]]  # the second has too little
    assert (found(split.validation), found(split.test)) == ({0: [5]}, {0: [6]})
    assert rows(split.validation.history) == [[0, 1, 2, 3, 4]]
    assert rows(split.test.history) == [[0, 1, 2, 3, 4, 5]]
    near = [*VISITS[:-1], (6, 2 * DAY + 29), (7, 4 * DAY + 29)]
    split = leave_last_visit_out(dataset_of([VISITS, near]))
    assert found(split.validation) == {0: [5], 1: [5, 6]}


def test_a_visit_is_as_far_from_the_last_as_is_asked():
    dataset = dataset_of([VISITS])
    split = leave_last_visit_out(dataset, gap=10 / DAY)
    assert (found(split.test), found(split.validation)) == ({0: [6]}, {0: [5]})
    with pytest.raises(BadValue, match="before a visit that could be held out"):
        leave_last_visit_out(dataset, gap=4.0)
    with pytest.raises(BadValue, match="must be > 0"):
        leave_last_visit_out(dataset, gap=0)


@given(histories)
def test_a_visit_is_held_out_whole_and_nothing_of_it_is_seen(users):
    """An item goes with its last event, and whoever is tested has five before."""
    apart = [[(i, t * DAY) for i, t in held] for held in users]
    dataset = dataset_of([*apart, VISITS])
    split = leave_last_visit_out(dataset)
    last = {
        u: dict(sorted(h, key=lambda e: e[1])) for u, h in enumerate([*apart, VISITS])
    }
    for user, targets in found(split.test).items():
        end = max(last[user].values())
        first = min(last[user][item] for item in targets)
        assert {i for i, t in last[user].items() if t >= first} == set(targets)
        assert all(t < first for i, t in last[user].items() if i not in targets)
        assert len(last[user]) - len(targets) >= 5
        assert end in {last[user][item] for item in targets}
    later = found(split.test)
    hidden = [set(later.get(u, [])) for u in split.validation.users.tolist()]
    check_heldout(dataset, split.validation, hidden=hidden)
    check_heldout(dataset, split.test, hidden=[set()] * len(split.test.users))


@pytest.mark.parametrize("divide", [
    leave_last_visit_out,
    partial(leave_one_out, which="latest", key=KEY),
    partial(new_users, n_validation=1, n_test=1, targets="latest", key=KEY),
    partial(global_cut, validation_from=1, test_from=2),
])  # fmt: skip
def test_data_without_times_are_refused_in_one_sentence(divide):
    dataset = dataset_of([[(i, 0) for i in range(8)]] * 4, with_times=False)
    with pytest.raises(BadValue, match=r"^drawn has no times of events, so nothing"):
        divide(dataset)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["filmtrust", "lastfm", "steam-200k", "citeulike-a", "frappe"]
)
def test_of_real_sets_those_without_times_are_refused(name, real_data):
    with pytest.raises(BadValue, match="has no times of events"):
        leave_last_visit_out(load(name, where=real_data))
