"""A data set is consistent, and filtering it equals the slow literal procedure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.interactions import Interactions
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


@settings(deadline=None, max_examples=100)
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
