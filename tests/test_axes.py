from __future__ import annotations

import jaxtyping
import numpy as np
import pytest

from tacit.data.features import Numeric
from tacit.errors import BadValue
from tacit.keys import Key


def test_arrays_of_a_wrong_type_are_caught():
    with pytest.raises(jaxtyping.TypeCheckError):
        Numeric(np.zeros(3, np.float64))


def test_axes_of_a_wrong_number_are_caught():
    with pytest.raises(jaxtyping.TypeCheckError):
        Key(np.zeros(3, np.uint64))


def test_the_fixture_switches_the_checks_off(without_axis_checks):
    with pytest.raises(BadValue, match="must be one-dimensional float32"):
        Numeric(np.zeros(3, np.float64))
