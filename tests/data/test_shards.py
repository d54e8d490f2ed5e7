"""What clients hold: a cohort equals its clients one at a time."""

from dataclasses import replace

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.features import Categories
from tacit.data.impressions import Impressions
from tacit.data.interactions import Interactions
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key

REFUSED = (BadValue, jaxtyping.TypeCheckError)  # annotations are checked in tests


def shards_of(lengths, *, timed=True, n_items=6, seed=0):
    rng, n = np.random.default_rng(seed), sum(lengths)
    users = np.repeat(np.arange(len(lengths)), lengths)
    log = Interactions.of_columns(
        users,
        rng.integers(0, n_items, n),
        values=rng.random(n),
        times=rng.integers(0, 9, n) if timed else None,
        n_users=len(lengths),
        n_items=n_items,
    )
    return Shards.of(log)


def client(shards, i):
    """Everything that client i holds, as plain lists."""
    part = slice(shards.offsets[i], shards.offsets[i + 1])
    times = None if shards.times is None else shards.times[part].tolist()
    return shards.items[part].tolist(), shards.values[part].tolist(), times


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.booleans(), st.data())
def test_take_equals_one_at_a_time(lengths, timed, data):
    shards = shards_of(lengths, timed=timed)
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=8))
    taken = shards.take(rows)
    assert len(taken) == len(rows)
    for place, row in enumerate(rows):
        assert client(taken, place) == client(shards, row)
        assert client(shards.take([row]), 0) == client(shards, row)
    np.testing.assert_array_equal(taken.lengths, np.array(lengths)[np.array(rows, int)])
    assert taken.n_items == shards.n_items


def test_a_log_is_handed_out_whole():
    shards = shards_of([2, 0, 3])
    assert len(shards) == 3
    np.testing.assert_array_equal(shards.owners, [0, 0, 2, 2, 2])
    np.testing.assert_array_equal(shards.lengths, [2, 0, 3])
    assert [row.tolist() for row in shards.histories] == [
        client(shards, i)[0] for i in range(3)
    ]


def test_one_device_of_a_history():
    shards = Shards.of_history([4, 0, 4], n_items=5)
    assert client(shards, 0) == ([4, 0, 4], [1.0, 1.0, 1.0], None)
    assert len(Shards.of_history([], n_items=5)) == 1


@pytest.mark.parametrize("items", [[5], [-1], [0.5], ["a"], [2**32], 3])
def test_a_history_names_items(items):
    with pytest.raises(REFUSED, match="items"):
        Shards.of_history(items, n_items=5)


@pytest.mark.parametrize("rows", [[3], [-1], [0.5], [True]])
def test_take_wants_places(rows):
    with pytest.raises(BadValue):
        shards_of([1, 2, 0]).take(rows)


def test_the_constructor_keeps_the_invariants_of_a_log():
    offsets, one = np.array([0, 1]), np.ones(1, np.float32)
    with pytest.raises(BadValue, match="items: 7 is not in"):
        Shards(offsets, np.array([7], np.int32), one, None, 5)
    with pytest.raises(BadValue, match="finite"):
        Shards(offsets, np.array([1], np.int32), one * np.nan, None, 5)


@given(st.lists(st.integers(0, 8), max_size=6), st.integers(0, 5))
def test_at_most_keeps_first_events_of_so_many_distinct_items(lengths, most):
    shards = shards_of(lengths, seed=3)
    keys = Key.from_seed(2).each(range(len(lengths)))
    kept = shards.at_most(most, keys)
    for i in range(len(lengths)):
        items, values, times = client(shards, i)
        firsts = [items.index(item) for item in dict.fromkeys(items)]
        events = [(items[j], values[j], times[j]) for j in firsts]
        mine = list(zip(*client(kept, i), strict=True))
        assert len(mine) == min(most, len(firsts))
        assert [event for event in events if event in mine] == mine
        alone = shards.take([i]).at_most(most, keys[[i]])
        assert client(alone, 0) == client(kept, i)


def test_at_most_keeps_the_items_with_the_least_draws():
    """Each event has a draw of its own, whether anybody has to leave items out."""
    lengths, most = [9, 2, 30, 0, 7], 4
    shards = shards_of(lengths, n_items=12)
    keys = Key.from_seed(5).each(range(len(lengths)))
    kept = shards.at_most(most, keys)
    for i, n in enumerate(lengths):
        items, draws = client(shards, i)[0], keys[[i]].uniform(n)[0]
        firsts = [items.index(item) for item in dict.fromkeys(items)]
        least = sorted(firsts, key=lambda place: draws[place])[:most]
        assert client(kept, i)[0] == [items[place] for place in sorted(least)]


def test_at_most_needs_one_key_per_device():
    shards = shards_of([1, 2])
    with pytest.raises(BadValue, match="1 keys for 2"):
        shards.at_most(5, Key.from_seed(0).each([0]))


def test_contexts_stay_with_their_device():
    tags = Categories.of([["a"], [], ["b", "c"]])
    log = Interactions.of_columns(
        [0, 1, 1], [0, 1, 1], contexts={"tags": tags}, n_users=2, n_items=2
    )
    shards = Shards.of(log)
    assert list(shards.take([1, 0]).contexts["tags"]) == [(), ("b", "c"), ("a",)]
    bounded = shards.at_most(1, Key.from_seed(0).each([0, 1]))
    assert list(bounded.contexts["tags"]) == [("a",), ()]
    assert list(shards.log.contexts["tags"]) == [("a",), (), ("b", "c")]


def test_the_last_item_is_left_out_with_its_repeats():
    log = Interactions.of_columns(
        [0, 0, 0, 1, 1, 3, 4, 4, 4],
        [5, 2, 5, 3, 3, 1, 0, 1, 2],
        times=[1, 2, 3, 1, 2, 1, 9, 8, 7],
        n_users=5,
        n_items=6,
    )
    rest, held = Shards.of(log).leaving_last_out()
    assert held.tolist() == [5, -1, -1, -1, 0]
    kept = [row.tolist() for row in rest.histories]
    assert kept == [[2], [3, 3], [], [1], [2, 1]]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.booleans())
def test_what_is_left_out_depends_on_the_device_alone(lengths, timed):
    shards = shards_of(lengths, timed=timed)
    rest, held = shards.leaving_last_out()
    for row in range(len(shards)):
        alone, own = shards.take([row]).leaving_last_out()
        assert own.tolist() == [held[row]]
        assert client(alone, 0) == client(rest, row)
        assert held[row] not in client(rest, row)[0]


# impressions


def shown_to(lengths, *, n_items=6, seed=0):
    """So many impressions of each client: two candidates, and a history of its own."""
    rng, n = np.random.default_rng(seed), sum(lengths)
    users = np.repeat(np.arange(len(lengths)), lengths)
    return Impressions.of_columns(
        users,
        Ragged.of_lengths([2] * n, rng.integers(0, n_items, 2 * n).astype(np.int32)),
        clicked=rng.random(2 * n) < 0.5,
        histories=Ragged.of_lengths(
            [1] * len(lengths), rng.integers(0, n_items, len(lengths)).astype(np.int32)
        ),
        history_of=users,
        times=np.arange(n),
        n_users=len(lengths),
        n_items=n_items,
    )


def seen(shards, i):
    """Candidates in order, clicks, time and history of each impression of client i."""
    found = shards.impressions
    slates = found.slates
    return [
        (
            slates.shown[place].tolist(),
            found.clicked[slates.shown.places([place])].tolist(),
            int(slates.times[place]),
            slates.histories[int(slates.history_of[place])].tolist(),
        )
        for place in np.flatnonzero(slates.users == i).tolist()
    ]


def with_impressions(lengths, shown):
    return replace(shards_of(lengths), impressions=shown_to(shown))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5),
    st.data(),
)
def test_take_carries_each_clients_impressions_and_nobody_elses(sizes, data):
    lengths, shown = zip(*sizes, strict=True)
    shards = with_impressions(lengths, shown)
    rows = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=6))
    taken = shards.take(rows)
    for place, row in enumerate(rows):
        alone = shards.take([row])
        assert seen(taken, place) == seen(alone, 0) == seen(shards, row)
        assert len(seen(alone, 0)) == shown[row] == len(alone.impressions)
        # Histories of others are private: none is carried along unused.
        assert len(alone.impressions.slates.histories) == min(1, shown[row])
        assert client(taken, place) == client(shards, row)


def test_impressions_are_of_these_clients_and_items():
    with pytest.raises(BadValue, match="impressions of 2 users and 6 items for 3"):
        replace(shards_of([1, 1, 1]), impressions=shown_to([1, 1]))
    with pytest.raises(BadValue, match="2 users and 7 items for 2 clients and 6"):
        replace(shards_of([1, 1]), impressions=shown_to([1, 1], n_items=7))


def test_a_bound_of_events_leaves_impressions_whole():
    shards = with_impressions([5, 0, 4], [2, 1, 0])
    kept = shards.at_most(1, Key.from_seed(0).each(range(3)))
    assert [seen(kept, i) for i in range(3)] == [seen(shards, i) for i in range(3)]


def test_what_tells_the_last_item_is_left_out_with_it():
    """Clicked or read: gone. Shown and not clicked: it tells nothing, and stays."""
    log = Interactions.of_columns([0, 0, 1], [4, 2, 3], n_users=2, n_items=6)
    shown = Impressions.of_columns(
        [0, 0, 0, 1],
        Ragged.of_lengths([2] * 4, np.array([2, 1, 2, 1, 0, 1, 3, 5], np.int32)),
        clicked=np.array([True, False, False, True, True, False, True, False]),
        histories=Ragged.of_lengths([1, 2], np.array([4, 4, 2], np.int32)),
        history_of=[0, 0, 1, 0],
        times=np.arange(4),
        n_users=2,
        n_items=6,
    )
    rest, held = Shards.of(log, shown).leaving_last_out()
    assert held.tolist() == [2, -1]
    assert [time for _, _, time, _ in seen(rest, 0)] == [1]
    assert [time for _, _, time, _ in seen(rest, 1)] == [3]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(0, 9))
def test_which_impressions_are_left_out_depends_on_the_client_alone(lengths, seed):
    shards = replace(
        shards_of(lengths, seed=seed), impressions=shown_to(lengths, seed=seed)
    )
    rest, held = shards.leaving_last_out()
    for row in range(len(shards)):
        alone, _ = shards.take([row]).leaving_last_out()
        assert seen(alone, 0) == seen(rest, row)
        for candidates, clicked, _, history in seen(rest, row):
            assert held[row] not in history
            assert (held[row], True) not in zip(candidates, clicked, strict=True)
