from __future__ import annotations

from importlib.util import find_spec

import jaxtyping
import numpy as np
import pytest
from axes import CHECKED, checked, where_arrays_are

from tacit.data.features import Numeric
from tacit.errors import BadValue
from tacit.keys import Key


@pytest.mark.parametrize("name", CHECKED)
def test_what_is_to_be_checked_exists(name):
    """A module that was renamed would be checked no more, and nobody would notice."""
    assert find_spec(name) is not None


def test_arrays_of_a_wrong_type_are_caught():
    with pytest.raises(jaxtyping.TypeCheckError):
        Numeric(np.zeros(3, np.float64))


def test_axes_of_a_wrong_number_are_caught():
    with pytest.raises(jaxtyping.TypeCheckError):
        Key(np.zeros(3, np.uint64))


def test_the_fixture_switches_the_checks_off(without_axis_checks):
    with pytest.raises(BadValue, match="must be one-dimensional float32"):
        Numeric(np.zeros(3, np.float64))


Rows = jaxtyping.Float[np.ndarray, "rows columns"]


def _both(one: Rows, other: Rows) -> int:
    return len(one) + len(other)


def _neither(one: int, *others: list[str]) -> dict[str, float]:
    return {other: one for (other,) in others}


def _late(one: NotYet) -> None:
    """Has an annotation whose name nobody knows."""


def test_who_speaks_of_arrays_is_wrapped_and_nobody_else():
    wrap = where_arrays_are(typechecker=checked)
    assert wrap(_neither) is _neither
    assert wrap(_late) is _late
    both = wrap(_both)
    assert both is not _both
    assert both(np.zeros((2, 3)), np.zeros((2, 3))) == 4
    with pytest.raises(jaxtyping.TypeCheckError):
        both(np.zeros((2, 3)), np.zeros((2, 4)))


def test_a_function_inside_of_a_function_is_asked_each_time():
    """It is made anew at each call of what it stands in, and looked at once."""
    wrap = where_arrays_are(typechecker=checked)
    for _ in range(2):

        def within(one: Rows) -> None: ...

        def without(one: int) -> None: ...

        assert wrap(without) is without
        assert wrap(within) is not within
