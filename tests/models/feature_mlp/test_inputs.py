"""Every kind of feature as rows of the table, and what is refused."""

import numpy as np
import pytest

from tacit.data.features import Categories, Category, Numeric, Text
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.models.feature_mlp import Fields
from tacit.models.feature_mlp.inputs import kinds

FEATURES = {
    "maker": Category.of(["b", "", "a"]),
    "genres": Categories.of([["x", "z"], [], ["y"]]),
    "year": Numeric(np.array([3.0, np.nan, -1.0], np.float32)),
}
FIELDS = Fields.of(FEATURES, ("maker", "genres", "year"), first=10)


def encode(columns, n=3):
    return FIELDS.encode(columns, n, rows=15, dtype=np.float64)


def test_kinds_of_columns_by_hand():
    """One label is a row, several are its mean, unknown is nothing, a number itself."""
    found = encode(FEATURES)
    wanted = np.zeros((6, 15))
    wanted[0, 11] = 1.0  # thing 0, maker b
    wanted[1, [12, 14]] = 0.5  # thing 0, genres x and z
    wanted[4, 10] = 1.0  # thing 2, maker a
    wanted[5, 13] = 1.0  # thing 2, genre y
    np.testing.assert_array_equal(found.shares.toarray(), wanted)
    np.testing.assert_array_equal(found.numbers, [[3.0], [0.0], [-1.0]])
    assert FIELDS.width(64) == 2 * 64 + 1


def test_what_a_device_keeps_reads_the_same():
    kept = FIELDS.columns(FEATURES, 3)
    assert {name: value.dtype.kind for name, value in kept.items()} == {
        "maker": "i",
        "genres": "u",
        "year": "f",
    }
    found, expected = encode(kept), encode(FEATURES)
    np.testing.assert_array_equal(found.shares.toarray(), expected.shares.toarray())
    np.testing.assert_array_equal(found.numbers, expected.numbers)


def test_a_feature_that_is_not_there_is_unknown():
    for columns in ({}, FIELDS.columns({}, 3)):
        found = encode(columns)
        assert found.shares.nnz == 0
        assert not found.numbers.any()


def test_things_are_taken_in_order():
    found = encode(FEATURES).take([2, 0, 2])
    whole = encode(FEATURES).shares.toarray().reshape(3, 2, 15)
    np.testing.assert_array_equal(
        found.shares.toarray(), whole[[2, 0, 2]].reshape(6, 15)
    )
    assert len(encode(FEATURES).take([])) == 0


def test_things_of_the_same_inputs_are_one_kind():
    twice = {name: column.take([0, 1, 0, 2, 1]) for name, column in FEATURES.items()}
    of, first = kinds(encode(twice, 5))
    assert of.tolist() == [0, 1, 0, 2, 1]
    assert first.tolist() == [0, 1, 3]


def test_a_label_of_one_field_is_not_that_of_another():
    """Same rows held by other fields: maker b and no genre, or the reverse."""
    one = Fields({"a": 2, "b": 2}, 0)
    codes = {"a": np.array([0, -1], np.int32), "b": np.array([-1, 0], np.int32)}
    same = Fields({"a": 2, "b": 2}, 0).encode(codes, 2, rows=4, dtype=np.float64)
    assert kinds(same)[0].tolist() == [0, 1]
    assert one.categories == {"a": 0, "b": 2}


def test_refusals():
    text = Text(Strings.of(["a", "b", "c"]))
    with pytest.raises(BadValue, match="feature 'plot' is text; name categories"):
        Fields.of({"plot": text}, ("plot",), first=0)
    with pytest.raises(BadValue, match="'yaer' is not known; did you mean 'year'"):
        Fields.of(FEATURES, ("yaer",), first=0)
    with pytest.raises(BadValue, match="'maker' has 2 labels, 3 were agreed on"):
        Fields({"maker": 3}).columns(FEATURES, 3)
    with pytest.raises(BadValue, match="'year' has 0 labels, 4 were agreed on"):
        Fields({"year": 4}).encode(FEATURES, 3, rows=4, dtype=np.float64)
    with pytest.raises(BadValue, match="labels of maker=-1 must be >= 0"):
        Fields({"maker": -1})
