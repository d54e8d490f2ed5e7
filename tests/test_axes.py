from __future__ import annotations

from importlib.util import find_spec

import jaxtyping
import numpy as np
import pytest
from axes import CHECKED

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
