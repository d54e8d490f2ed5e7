"""A data set is consistent, and filtering it equals the slow literal procedure."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.impressions import Impressions, clicks
from tacit.data.interactions import Interactions
from tacit.data.ragged import Ragged
from tacit.data.strings import Strings
from tacit.errors import BadValue

N_USERS, N_ITEMS = 4, 5
event = st.tuples(
    st.integers(0, N_USERS - 1), st.integers(0, N_ITEMS - 1), st.integers(1, 5)
)


def dataset_of(rows):
    users, items, values = zip(*rows, strict=True) if rows else [()] * 3
    ids = [f"i{i}" for i in range(N_ITEMS)]
    return Dataset(
        "toy",
        Interactions.of_columns(
            list(users),
            list(items),
            values=list(values),
            n_users=N_USERS,
            n_items=N_ITEMS,
        ),
        Catalog(Strings.of(ids), Strings.of(ids), {"twin": Category.of(ids)}),
        Profiles(Strings.of([f"u{u}" for u in range(N_USERS)])),
    )


def told(data):
    """Who took what, by the ids that the tables give."""
    log = data.interactions
    pairs = zip(log.users.tolist(), log.items.tolist(), log.values, strict=True)
    return [(data.profiles.ids[u], data.catalog.ids[i], v) for u, i, v in pairs]


def filtered_slowly(rows, min_value, min_interactions):
    """User by user and pair by pair; also who and what is left."""
    rows = [row for row in rows if min_value is None or row[2] >= min_value]
    distinct = {u: {i for v, i, _ in rows if v == u} for u in range(N_USERS)}
    users = [u for u in range(N_USERS) if len(distinct[u]) >= min_interactions]
    events = [row for u in users for row in rows if row[0] == u]
    items = sorted({i for _, i, _ in events})
    named = [(f"u{u}", f"i{i}", v) for u, i, v in events]
    return named, [f"u{u}" for u in users], [f"i{i}" for i in items]


@given(
    st.lists(event, max_size=20),
    st.sampled_from([None, 1, 3, 4.5, 6]),
    st.integers(0, 4),
)
def test_filtered_equals_the_literal_procedure(rows, min_value, min_interactions):
    events, users, items = filtered_slowly(rows, min_value, min_interactions)
    options = {"min_value": min_value, "min_interactions": min_interactions}
    if not users or not items:
        with pytest.raises(BadValue, match="leaves nobody; lower them"):
            dataset_of(rows).filtered(**options)
        return
    left = dataset_of(rows).filtered(**options)
    assert told(left) == events
    assert list(left.profiles.ids) == users
    assert list(left.catalog.ids) == items
    assert [left.catalog.features["twin"][i] for i in range(len(items))] == items


def test_filtering_leaves_the_original_alone():
    rows = [(0, 0, 5), (0, 1, 1), (1, 4, 5)]
    data = dataset_of(rows)
    data.filtered(min_value=4)
    assert told(data) == [("u0", "i0", 5), ("u0", "i1", 1), ("u1", "i4", 5)]


@pytest.mark.parametrize("bad", [-1, float("nan")])
def test_a_count_of_interactions_is_not_negative(bad):
    with pytest.raises(ValueError, match="min_interactions"):
        dataset_of([(0, 0, 1)]).filtered(min_interactions=bad)


def test_no_value_is_above_nan():
    with pytest.raises(BadValue, match="min_value=nan"):
        dataset_of([(0, 0, 1)]).filtered(min_value=float("nan"))


def test_tables_and_log_agree():
    data = dataset_of([(0, 0, 1)])
    with pytest.raises(BadValue, match="4 users and 5 items, the tables list 4 and 2"):
        Dataset("toy", data.interactions, data.catalog.take([0, 1]), data.profiles)
    with pytest.raises(BadValue, match="toy: the log speaks of"):
        Dataset("toy", data.interactions, data.catalog, data.profiles.take([0]))
    assert np.isfinite(data.interactions.values).all()


def shown_to(users, shown, history):
    """A data set of impressions: each shows items, the first of which is clicked."""
    flat = np.array([i for row in shown for i in row], np.int32)
    lengths = [len(row) for row in shown]
    first = np.cumsum(lengths) - lengths
    impressions = Impressions.of_columns(
        users,
        Ragged.of_lengths(lengths, flat),
        clicked=np.isin(np.arange(len(flat)), first),
        histories=Ragged.of_lengths([1] * len(users), np.array(history, np.int32)),
        history_of=np.arange(len(users)),
        n_users=N_USERS,
        n_items=N_ITEMS,
    )
    whole = dataset_of([])
    return replace(whole, interactions=clicks(impressions), impressions=impressions)


def test_filtering_keeps_impressions_and_all_they_name():
    data = shown_to([0, 2, 2], [[1, 0], [3, 4], [1, 4]], [3, 3, 3])
    left = data.filtered(min_interactions=2)
    assert list(left.profiles.ids) == ["u0", "u2"]
    assert list(left.catalog.ids) == ["i0", "i1", "i3", "i4"]  # i0, i4 only shown
    slates = left.impressions.slates
    named = [[left.catalog.ids[i] for i in row] for row in slates.shown]
    assert named == [["i1", "i0"], ["i3", "i4"], ["i1", "i4"]]
    assert slates.users.tolist() == [0, 1, 1]
    fewer = data.filtered(min_interactions=2).filtered(min_interactions=0)
    assert len(fewer.impressions) == 3
    with pytest.raises(BadValue, match="leaves nobody"):
        data.filtered(min_interactions=3)


def test_clicks_cannot_be_filtered_by_value():
    data = shown_to([0], [[1, 0]], [3])
    assert len(data.filtered(min_value=1.0).interactions) == 2
    with pytest.raises(BadValue, match="min_value=2 would drop clicks"):
        data.filtered(min_value=2)


def test_impressions_and_log_agree():
    data = shown_to([0], [[1, 0]], [3])
    with pytest.raises(BadValue, match="impressions speak of 1 users and 5 items"):
        replace(data, impressions=data.impressions.take_users([0]))


# A list of items that does not follow from the events


def listing(data, *more):
    ids = ["before", *data.catalog.ids, *more]
    return replace(data, listed=Catalog(Strings.of(ids), Strings.of(ids)))


@given(st.lists(event, min_size=1, max_size=20), st.integers(0, 4))
def test_keeping_items_makes_a_filter_a_matter_of_each_user(rows, least):
    """Whoever stays has the same events, and items the same places, whoever goes."""
    data = dataset_of(rows)
    _, users, _ = filtered_slowly(rows, None, least)
    if not users:
        return
    left = data.filtered(min_interactions=least, keep_items=True)
    assert list(left.profiles.ids) == users
    assert list(left.catalog.ids) == list(data.catalog.ids)
    kept = {f"u{u}" for u in range(N_USERS)} & set(users)
    assert told(left) == [one for one in told(data) if one[0] in kept]


def test_the_declared_items_are_all_that_are_listed():
    data = listing(dataset_of([(0, 3, 5), (2, 1, 1)]), "after")
    cut = data.filtered()
    assert list(cut.catalog.ids) == ["i1", "i3"]
    whole = cut.declared()
    assert list(whole.catalog.ids) == ["before", "i0", "i1", "i2", "i3", "i4", "after"]
    assert told(whole) == told(cut)
    assert whole.filtered(keep_items=True).catalog.ids == whole.catalog.ids


def test_without_a_list_nothing_is_declared():
    with pytest.raises(BadValue, match="toy has no list of items"):
        dataset_of([(0, 0, 1)]).declared()


def test_impressions_follow_to_the_declared_items():
    data = listing(shown_to([0, 2, 2], [[1, 0], [3, 4], [1, 4]], [3, 3, 3]))
    whole = data.filtered(min_interactions=2).declared()
    slates = whole.impressions.slates
    named = [[whole.catalog.ids[i] for i in row] for row in slates.shown]
    assert named == [["i1", "i0"], ["i3", "i4"], ["i1", "i4"]]
    assert slates.n_items == 6
