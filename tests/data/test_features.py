"""Columns give back the labels and numbers they were made of."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.features import Categories, Category, Numeric, Text, Vectors, take
from tacit.data.ragged import Ragged
from tacit.data.strings import Strings
from tacit.errors import BadValue

REFUSED = (BadValue, jaxtyping.TypeCheckError)  # annotations are checked in tests
labels = st.sampled_from(["", "a", "b", "ü", "z z"])


@given(st.lists(labels, max_size=8))
def test_category_gives_its_values_back(values):
    column = Category.of(values)
    assert [column[i] for i in range(len(column))] == values
    assert list(column.labels) == sorted(set(values) - {""})
    assert ((column.codes == -1) == (np.array(values, object) == "")).all()


@given(st.lists(st.lists(labels, max_size=4), max_size=6))
def test_categories_give_their_values_back(rows):
    column = Categories.of(rows)
    told = [tuple(label for label in row if label) for row in rows]
    assert [column[i] for i in range(len(column))] == told
    indicator = column.indicator()
    assert indicator.shape == (len(rows), len(column.labels))
    for row, label in np.ndindex(indicator.shape):
        assert indicator[row, label] == (column.labels[label] in told[row])


def test_columns_are_taken_together():
    columns = {
        "genre": Category.of(["b", "", "a"]),
        "tags": Categories.of([["x", "y"], [], ["x"]]),
        "year": Numeric(np.array([1979, np.nan, 2001], np.float32)),
        "plot": Text(Strings.of(["one", "two", "three"])),
        "tone": Vectors(np.array([[1, 0], [0, 1], [2, 2]], np.float32)),
    }
    taken = take(columns, [2, 0, 2])
    assert {name: len(column) for name, column in taken.items()} == dict.fromkeys(
        taken, 3
    )
    assert [taken["genre"][i] for i in range(3)] == ["a", "b", "a"]
    assert [taken["tags"][i] for i in range(3)] == [("x",), ("x", "y"), ("x",)]
    assert [taken["year"][i] for i in range(3)] == [2001.0, 1979.0, 2001.0]
    assert [taken["plot"][i] for i in range(3)] == ["three", "one", "three"]
    assert [taken["tone"][i].tolist() for i in range(3)] == [[2, 2], [1, 0], [2, 2]]
    assert taken["genre"].labels is columns["genre"].labels
    masked = take(columns, np.array([False, True, False]))
    assert [len(column) for column in masked.values()] == [1, 1, 1, 1, 1]
    assert masked["tags"][0] == ()
    assert np.isnan(masked["year"][0])
    assert [len(column) for column in take(columns, []).values()] == [0, 0, 0, 0, 0]
    for bad in ([3], [-1], [True]):
        for column in columns.values():
            with pytest.raises(BadValue):
                column.take(bad)


@pytest.mark.parametrize("code", [-2, 2])
def test_codes_name_a_label(code):
    with pytest.raises(BadValue, match=f"codes: {code} is not in"):
        Category(np.array([0, code], np.int32), Strings.of(["a", "b"]))


@pytest.mark.parametrize("code", [-1, 2])
def test_codes_of_several_are_never_unknown(code):
    with pytest.raises(BadValue, match=f"codes: {code} is not in"):
        Categories(
            Ragged.of_lengths([1], np.array([code], np.int32)), Strings.of(["a", "b"])
        )


def test_numbers_are_float32_and_not_infinite():
    with pytest.raises(REFUSED, match="values"):
        Numeric(np.array([1, 2]))
    with pytest.raises(BadValue, match="infinite"):
        Numeric(np.array([1, np.inf], np.float32))


def test_vectors_are_rows_of_float32():
    with pytest.raises(REFUSED, match=r"values|one vector per row"):
        Vectors(np.array([1, 2], np.float32))
    with pytest.raises(REFUSED, match=r"values|one vector per row"):
        Vectors(np.array([[1, 2]]))
