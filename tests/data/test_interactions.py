"""The log: grouped by user, ordered by time, and nothing bent on the way in."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.errors import BadValue

REFUSED = (BadValue, jaxtyping.TypeCheckError)  # annotations are checked in tests

N_USERS, N_ITEMS = 4, 5
event = st.tuples(
    st.integers(0, N_USERS - 1),
    st.integers(0, N_ITEMS - 1),
    st.integers(-2, 5),
    st.integers(-3, 3),
)
events = st.lists(event, max_size=15)


def log_of(rows, *, timed=True):
    users, items, values, times = zip(*rows, strict=True) if rows else [()] * 4
    return Interactions.of_columns(
        list(users),
        list(items),
        values=np.array(values, np.float64),
        times=list(times) if timed else None,
        n_users=N_USERS,
        n_items=N_ITEMS,
    )


def rows_of(log):
    """Back to (user, item, value, time), in the order of the log."""
    times = [0] * len(log) if log.times is None else log.times.tolist()
    columns = (log.users.tolist(), log.items.tolist(), log.values.tolist(), times)
    return list(zip(*columns, strict=True))


@given(events)
def test_order_is_user_then_time_then_file(rows):
    by_user_and_time = sorted(rows, key=lambda row: (row[0], row[3]))  # stable
    assert rows_of(log_of(rows)) == by_user_and_time
    by_user = [(*row[:3], 0) for row in sorted(rows, key=lambda row: row[0])]
    assert rows_of(log_of(rows, timed=False)) == by_user


@given(events)
def test_counts(rows):
    log = log_of(rows)
    assert len(log) == len(rows)
    assert log.n_users == N_USERS
    for user in range(N_USERS):
        assert log.per_user[user] == sum(row[0] == user for row in rows)
    for item in range(N_ITEMS):
        assert log.per_item[item] == sum(row[1] == item for row in rows)
    assert log.per_item.dtype == log.per_user.dtype == np.int64
    assert (log.offsets.dtype, log.items.dtype) == (np.int64, np.int32)
    assert (log.values.dtype, log.times.dtype) == (np.float32, np.int64)


@given(events, st.data())
def test_keep(rows, data):
    log = log_of(rows)
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    kept = log.keep(np.array(mask, bool))
    pairs = zip(rows_of(log), mask, strict=True)
    assert rows_of(kept) == [row for row, is_kept in pairs if is_kept]
    assert kept.n_users == N_USERS


@given(events, st.lists(st.integers(0, N_USERS - 1), max_size=6))
def test_take_users_permuted_and_repeated(rows, users):
    log = log_of(rows)
    taken = log.take_users(users)
    expected = [
        (place, *row[1:])
        for place, user in enumerate(users)
        for row in rows_of(log)
        if row[0] == user
    ]
    assert rows_of(taken) == expected
    assert (taken.n_users, taken.n_items) == (len(users), N_ITEMS)


@given(events)
def test_distinct_keeps_the_first(rows):
    log = log_of(rows)
    first = {}
    for row in rows_of(log):
        first.setdefault(row[:2], row)
    assert rows_of(log.distinct()) == list(first.values())


@given(events)
def test_matrix_has_a_one_for_every_pair(rows):
    expected = np.zeros((N_USERS, N_ITEMS), np.float32)
    for user, item, *_ in rows:
        expected[user, item] = 1
    made = log_of(rows).matrix()
    np.testing.assert_array_equal(made.toarray(), expected)
    assert made.dtype == np.float32
    assert made.has_sorted_indices
    assert made.nnz == expected.sum()


def test_without_values_each_event_counts_one():
    log = Interactions.of_columns([1, 0], [0, 0], n_users=3, n_items=1)
    np.testing.assert_array_equal(log.values, np.ones(2, np.float32))
    assert log.times is None
    np.testing.assert_array_equal(log.per_user, [1, 1, 0])


def test_nobody_and_nothing():
    log = Interactions.of_columns([], [], values=[], times=[], n_users=0, n_items=0)
    assert len(log) == log.n_users == log.distinct().n_users == 0
    assert log.matrix().shape == (0, 0)
    users = Interactions.of_columns([], [], n_users=3, n_items=2)
    assert users.take_users([2, 2]).n_users == 2
    assert users.take_users([]).n_users == 0
    assert users.matrix().nnz == 0


def test_read_only_and_memory_mapped_columns(tmp_path):
    log = log_of([(0, 1, 1, 5), (2, 3, 4, 1), (0, 1, 2, 3), (0, 0, 1, 3)])
    columns = {}
    for name in ("offsets", "items", "values", "times"):
        np.save(tmp_path / name, getattr(log, name))
        columns[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    mapped = Interactions(**columns, n_items=N_ITEMS)
    assert rows_of(mapped) == rows_of(log)
    assert rows_of(mapped.distinct()) == rows_of(log.distinct())
    assert rows_of(mapped.take_users([2, 0])) == rows_of(log.take_users([2, 0]))
    np.testing.assert_array_equal(mapped.matrix().toarray(), log.matrix().toarray())
    again = Interactions.of_columns(
        mapped.users, mapped.items, times=mapped.times, n_users=4, n_items=N_ITEMS
    )
    np.testing.assert_array_equal(again.items, log.items)


def test_sixty_four_bit_times_are_kept():
    times = [2**62, -(2**62), 0]
    log = Interactions.of_columns(
        [0, 0, 0], [0, 1, 2], times=times, n_users=1, n_items=3
    )
    np.testing.assert_array_equal(log.times, sorted(times))


# Refusals


@pytest.mark.parametrize(
    ("column", "bad"),
    [
        ("users", [0, 4]),
        ("users", [0, -1]),
        ("users", [0.0, 1.0]),
        ("users", ["0", "1"]),
        ("users", [0, None]),
        ("users", [[0, 1]]),
        ("items", [0, 5]),
        ("items", [0, -1]),
        ("items", np.array([0, 2**32 + 1])),  # wraps around to 1 in int32
        ("items", np.array([0, 2**64 - 1], np.uint64)),
        ("items", [0, np.nan]),
        ("items", np.array([0, 1], object)),
        ("items", [0, 1, 2]),
        ("items", [0]),
        ("values", [1.0, np.nan]),
        ("values", [1.0, np.inf]),
        ("values", [1.0, 1e300]),  # infinite in float32
        ("values", [1.0]),
        ("values", ["1", "2"]),
        ("values", np.array([1, None])),
        ("values", [[1.0, 2.0]]),
        ("times", [1.0, 2.0]),
        ("times", [np.nan, 1]),
        ("times", [1]),
        ("times", np.array(["2020-01-01", "2020-01-02"], "datetime64[s]")),
        ("times", np.array([0, 2**63], np.uint64)),
    ],
)
def test_columns_that_would_be_bent_are_refused(column, bad):
    columns = {"users": [0, 1], "items": [0, 1], "values": [1, 2], "times": [3, 4]}
    columns |= {column: bad}
    with pytest.raises(BadValue, match=column):
        Interactions.of_columns(
            columns["users"],
            columns["items"],
            values=columns["values"],
            times=columns["times"],
            n_users=N_USERS,
            n_items=N_ITEMS,
        )


@pytest.mark.parametrize("sizes", [(-1, 2), (2, -1), (2**31, 2), (2, 2**31)])
def test_sizes_are_counts_in_32_bits(sizes):
    with pytest.raises(BadValue, match=r"n_users|n_items"):
        Interactions.of_columns([], [], n_users=sizes[0], n_items=sizes[1])


GOOD = {
    "offsets": np.array([0, 1, 2]),
    "items": np.array([0, 1], np.int32),
    "values": np.ones(2, np.float32),
    "times": np.array([3, 4]),
    "n_items": 2,
}


@pytest.mark.parametrize(
    "bad",
    [
        {"offsets": np.array([0, 3])},
        {"items": np.array([0, 2], np.int32)},
        {"items": np.array([0, -1], np.int32)},
        {"items": np.array([0, 1])},
        {"values": np.ones(3, np.float32)},
        {"values": np.ones(2)},
        {"values": np.array([1, np.nan], np.float32)},
        {"times": np.array([3])},
        {"times": np.array([3.0, 4.0])},
        {"n_items": 1},
        {"n_items": -1},
        {"n_items": 2.0},
        {"n_items": 2**40},
    ],
)
def test_the_constructor_checks_too(bad):
    Interactions(**GOOD)
    with pytest.raises(REFUSED):
        Interactions(**GOOD | bad)


@pytest.mark.parametrize(
    "mask", [np.array([1, 0]), np.array([True]), np.zeros(0, bool)]
)
def test_keep_wants_a_mask(mask):
    with pytest.raises(REFUSED):
        Interactions(**GOOD).keep(mask)


@pytest.mark.parametrize("rows", [[2], [-1], [0.5], ["a"]])
def test_take_users_wants_places(rows):
    with pytest.raises(BadValue):
        Interactions(**GOOD).take_users(rows)


def test_contexts_follow_their_events():
    """Grouping, masks and choices of users move a context with its event."""
    weather = Category.of(["sun", "rain", "", "snow"])
    log = Interactions.of_columns(
        [1, 0, 1, 0],
        [2, 1, 0, 2],
        times=[4, 3, 2, 1],
        contexts={"weather": weather},
        n_users=2,
        n_items=3,
    )
    assert list(log.contexts["weather"]) == ["snow", "rain", "", "sun"]
    kept = log.keep(log.items == 2).take_users([1, 0])
    assert list(kept.contexts["weather"]) == ["sun", "snow"]


def test_a_context_has_a_row_an_event():
    with pytest.raises(BadValue, match="weather"):
        Interactions.of_columns(
            [0], [0], contexts={"weather": Category.of([])}, n_users=1, n_items=1
        )
