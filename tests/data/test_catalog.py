"""Ids lead to places, and a wrong id to a helpful error."""

import numpy as np
import pytest

from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Category, Numeric
from tacit.data.strings import Strings
from tacit.errors import BadValue

CATALOG = Catalog(
    Strings.of(["m1", "m2", "m30"]),
    Strings.of(["Alien", "Brazil", "Alien"]),
    {"genre": Category.of(["horror", "", "horror"])},
)
PROFILES = Profiles(Strings.of(["ann", "bob"]), {"age": Category.of(["25", "50"])})


def test_indices():
    np.testing.assert_array_equal(CATALOG.indices(["m30", "m1", "m30"]), [2, 0, 2])
    assert CATALOG.indices([]).dtype == np.int64
    assert len(CATALOG) == 3


def test_an_unknown_item_is_named_with_near_ones():
    with pytest.raises(BadValue, match=r"^item 'm3' is not known; did you mean 'm30'"):
        CATALOG.indices(["m1", "m3"])
    with pytest.raises(BadValue, match=r"^item 'Alien' is not known"):
        CATALOG.indices(["Alien"])


def test_duplicate_ids_are_refused_where_they_would_be_ambiguous():
    with pytest.raises(BadValue, match="'a'"):
        Catalog.of_ids(["a", "b", "a"]).indices(["b"])


def test_an_unknown_user_is_named_with_near_ones():
    assert PROFILES.index("bob") == 1
    with pytest.raises(BadValue, match=r"^user 'bab' is not known; did you mean 'bob'"):
        PROFILES.index("bab")


def test_take_keeps_columns_together():
    taken = CATALOG.take([2, 1])
    assert list(taken.ids) == ["m30", "m2"]
    assert list(taken.titles) == ["Alien", "Brazil"]
    assert [taken.features["genre"][i] for i in range(2)] == ["horror", ""]
    users = PROFILES.take([True, False])
    assert list(users.ids) == ["ann"]
    assert users.features["age"][0] == "25"


def test_columns_have_a_row_an_id():
    short = Numeric(np.zeros(2, np.float32))
    ids = Strings.of(["a", "b", "c"])
    with pytest.raises(BadValue, match=r"3 ids.*\{'year': 2\}"):
        Catalog(ids, ids, {"year": short})
    with pytest.raises(BadValue, match=r"'titles': 1"):
        Catalog(ids, Strings.of(["x"]))
    with pytest.raises(BadValue, match=r"'age': 2"):
        Profiles(ids, {"age": short})
