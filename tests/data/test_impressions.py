"""Impressions keep what belongs together, and make the log by the rule in the docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.features import Category
from tacit.data.impressions import Impressions, clicks
from tacit.data.ragged import Ragged
from tacit.errors import BadValue

N_USERS, N_ITEMS = 4, 6

item = st.integers(0, N_ITEMS - 1)
row = st.tuples(  # user, time, history, candidates with their labels
    st.integers(0, N_USERS - 1),
    st.integers(0, 5),
    st.lists(item, max_size=3),
    st.lists(st.tuples(item, st.booleans()), min_size=1, max_size=4),
)
rows_of = st.lists(row, max_size=8)
Row = tuple[int, int, list[int], list[tuple[int, bool]]]


def ragged(rows: Sequence[Sequence[int]]) -> Ragged:
    flat = np.array([value for row in rows for value in row], np.int32)
    return Ragged.of_lengths([len(row) for row in rows], flat)


def made(rows: Sequence[Row], *, with_times: bool = True) -> Impressions:
    return Impressions.of_columns(
        np.array([row[0] for row in rows], np.int64),
        ragged([[i for i, _ in row[3]] for row in rows]),
        clicked=np.array([c for row in rows for _, c in row[3]], bool),
        histories=ragged([row[2] for row in rows]),
        history_of=np.arange(len(rows)),
        times=np.array([row[1] for row in rows], np.int64) if with_times else None,
        parts=Category.of(["odd" if row[1] % 2 else "even" for row in rows]),
        n_users=N_USERS,
        n_items=N_ITEMS,
    )


def told(impressions: Impressions) -> list[Row]:
    """Back to rows, part and all."""
    slates = impressions.slates
    clicked = Ragged(slates.shown.offsets, impressions.clicked)
    out = []
    for place in range(len(impressions)):
        part = 0 if impressions.parts is None else impressions.parts[place] == "odd"
        time = part if slates.times is None else int(slates.times[place])
        assert part == time % 2
        pairs = zip(slates.shown[place].tolist(), clicked[place].tolist(), strict=True)
        history = slates.histories[int(slates.history_of[place])].tolist()
        out.append((int(slates.users[place]), time, history, list(pairs)))
    return out


@given(rows_of)
def test_rows_are_grouped_by_user_and_time_and_otherwise_unchanged(rows):
    assert told(made(rows)) == sorted(rows, key=lambda row: row[:2])


@given(rows_of)
def test_without_times_the_order_of_the_file_is_kept(rows):
    found = told(made(rows, with_times=False))
    expected = sorted(rows, key=lambda row: row[0])
    assert [r[2:] for r in found] == [r[2:] for r in expected]


@given(rows_of, st.lists(st.integers(0, N_USERS - 1), max_size=5), st.integers(0, 5))
def test_some_users_and_some_impressions(rows, chosen, until):
    whole = made(rows)
    early = whole.keep(whole.slates.times < until)
    ordered = sorted(rows, key=lambda row: row[:2])
    assert told(early) == [row for row in ordered if row[1] < until]
    assert len(early.slates.histories) <= len(early)  # nobody else's are carried along
    taken = whole.take_users(chosen)
    expected = [
        (new, *row[1:])
        for new, user in enumerate(chosen)
        for row in ordered
        if row[0] == user
    ]
    assert told(taken) == expected
    assert taken.slates.n_users == len(chosen)


@given(rows_of)
def test_items_are_renumbered(rows):
    whole = made(rows)
    items = np.flatnonzero(whole.named_items())
    fewer = whole.take_items(items)
    back = [
        (u, t, [int(items[i]) for i in h], [(int(items[i]), c) for i, c in shown])
        for u, t, h, shown in told(fewer)
    ]
    assert back == told(whole)
    assert fewer.slates.n_items == len(items)


def log_slowly(rows: Sequence[Row]) -> list[list[tuple[int, int]]]:
    """Each user's (time, item), by the rule: first history, then what is missing."""
    logs = []
    for user in range(N_USERS):
        mine = sorted((r for r in rows if r[0] == user), key=lambda r: r[1])
        chosen = [(t, i) for _, t, _, shown in mine for i, c in shown if c]
        read = list(mine[0][2]) if mine else []
        known = {*read, *(i for _, i in chosen)}
        for _, _, history, _ in mine[1:]:
            for i in history:
                if i not in known:
                    known.add(i)
                    read.append(i)
        numbered = [(place - len(read), i) for place, i in enumerate(read)]
        logs.append(numbered + chosen)
    return logs


@given(rows_of)
def test_the_log_equals_the_literal_rule(rows):
    log = clicks(made(rows))
    found = [
        list(zip(log.times[a:b].tolist(), log.items[a:b].tolist(), strict=True))
        for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True)
    ]
    assert found == log_slowly(rows)
    assert (log.n_users, log.n_items) == (N_USERS, N_ITEMS)
    assert (log.values == 1).all()


@given(rows_of)
def test_without_times_the_log_has_none_and_the_same_events(rows):
    rows = [(u, 0, h, shown) for u, _, h, shown in rows]
    log, timed = clicks(made(rows, with_times=False)), clicks(made(rows))
    assert log.times is None
    np.testing.assert_array_equal(log.items, timed.items)


def test_a_shared_history_is_kept_once():
    rows = [(0, t, [1, 2], [(3, True)]) for t in range(3)]
    shared = Impressions.of_columns(
        [0, 0, 0],
        ragged([[3]] * 3),
        clicked=np.ones(3, bool),
        histories=ragged([[1, 2]]),
        history_of=[0, 0, 0],
        times=np.arange(3),
        n_users=N_USERS,
        n_items=N_ITEMS,
    )
    assert [r[2:] for r in told(replace(shared, parts=made(rows).parts))] == [
        r[2:] for r in rows
    ]
    assert len(shared.keep(np.array([False, True, True])).slates.histories) == 1
    assert shared.slates.history_lengths.tolist() == [2, 2, 2]
    assert clicks(shared).items.tolist() == [1, 2, 3, 3, 3]


def test_columns_that_do_not_fit_are_refused(without_axis_checks):
    good = made([(0, 0, [1], [(2, True)]), (1, 1, [], [(3, False)])])
    slates = good.slates
    wrong = {
        "grouped by user": {"users": slates.users[::-1]},
        "differ in length": {"times": slates.times[:1]},
        "users: 1 is not in": {"n_users": 1},
        "shown: 3 is not in": {"n_items": 3},
        "history_of: 1 is not in": {"histories": ragged([[1]])},
        "histories: 9 is not in": {"histories": ragged([[9], []])},
        "times must be one-dimensional int64": {"times": np.zeros(2)},
    }
    for problem, change in wrong.items():
        with pytest.raises(BadValue, match=problem):
            replace(slates, **change)
    with pytest.raises(BadValue, match="1 clicks or none for 2 candidates"):
        replace(good, clicked=good.clicked[:1])
    with pytest.raises(BadValue, match="1 parts for 2 impressions"):
        replace(good, parts=Category.of(["x"]))
