"""What numpy would silently bend is refused."""

import jaxtyping
import numpy as np
import pytest

from tacit import arrays
from tacit.errors import BadValue

# Tests check annotations at run time; without that, the code's own check says no.
REFUSED = (BadValue, jaxtyping.TypeCheckError)


@pytest.mark.parametrize("value", [3.0, "3", None, [3], np.float64(3)])
def test_integer_takes_whole_numbers_only(value):
    with pytest.raises(BadValue, match=r"n=.* must be a whole number"):
        arrays.integer(value, "n", below=5)


def test_integer_limits():
    assert arrays.integer(np.int8(4), "n", below=5) == 4
    for value in (-1, 5):
        with pytest.raises(BadValue, match=rf"n={value} must be in \[0, 5\)"):
            arrays.integer(value, "n", below=5)


@pytest.mark.parametrize(
    "bad", [[0.0], ["1"], [None], [[1]], [True], [np.nan], [2**70], np.zeros((0, 2))]
)
def test_integers_takes_lists_of_whole_numbers_only(bad):
    with pytest.raises(BadValue, match="items must be a list of whole numbers"):
        arrays.integers(bad, "items", below=10)


def test_integers_limits():
    largest = np.array([0, 2**64 - 1], np.uint64)
    np.testing.assert_array_equal(
        arrays.integers(largest, "x", below=2**64), largest, strict=True
    )
    with pytest.raises(BadValue, match=r"x: 18446744073709551615 is not in"):
        arrays.integers(largest, "x", below=2**63)
    with pytest.raises(BadValue, match=r"x: -3 is not in \[-2, 9\)"):
        arrays.integers([5, -3], "x", least=-2, below=9)
    assert arrays.integers([], "x", below=0).dtype == np.int64


def test_rows_are_places_or_a_mask():
    np.testing.assert_array_equal(arrays.rows([2, 0, 2], 3), [2, 0, 2])
    np.testing.assert_array_equal(arrays.rows([True, False, True], 3), [0, 2])
    assert arrays.rows([], 0).dtype == np.int64
    for bad in ([3], [-1], [True, False], [0.0], 1):
        with pytest.raises(REFUSED):
            arrays.rows(bad, 3)


def test_typed_names_the_column():
    arrays.typed(np.int32, a=np.zeros(2, np.int32))
    for bad in (np.zeros(2), np.zeros((2, 2), np.int32), np.array(1, np.int32)):
        with pytest.raises(BadValue, match="b must be one-dimensional int32"):
            arrays.typed(np.int32, a=np.zeros(2, np.int32), b=bad)
