"""The checks of arrays that run beside the tests, and the part of them that has any.

With `ARRAY_CHECKS=off` nothing is checked, and what tests the checks is skipped.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from axes import CHECKED, checked, where_arrays_are

from tacit.data.features import Numeric
from tacit.errors import BadValue
from tacit.keys import Key

ROOT = Path(__file__).parents[1]
are_checked = pytest.mark.skipif(
    os.environ.get("ARRAY_CHECKS") == "off", reason="ARRAY_CHECKS=off"
)


def part() -> list[str]:
    """The tests in which `make test` checks arrays, as the Makefile lists them."""
    text = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    [listed] = re.findall(r"^ARRAYS := (.*)$", text, re.MULTILINE)
    return listed.split()


def test_the_part_that_is_checked_exists_and_has_these_tests():
    assert [path for path in part() if not (ROOT / path).exists()] == []
    assert "tests/test_axes.py" in part()


@pytest.mark.parametrize("name", CHECKED)
def test_the_part_that_is_checked_has_tests_of_every_package(name):
    """The tests of a package are its folder, a file in it, or the file of its name."""
    *folders, last = name.split(".")[1:]
    own = ["tests", *folders, last]
    above = {"/".join(own[:n]) for n in range(2, len(own) + 1)}
    file, folder = "/".join(["tests", *folders, f"test_{last}.py"]), "/".join(own) + "/"
    listed = part()
    assert any(path in {file, *above} or path.startswith(folder) for path in listed), (
        name
    )


@pytest.mark.parametrize("name", CHECKED)
def test_what_is_to_be_checked_exists(name):
    """A module that was renamed would be checked no more, and nobody would notice."""
    assert find_spec(name) is not None


@are_checked
def test_arrays_of_a_wrong_type_are_caught():
    with pytest.raises(jaxtyping.TypeCheckError):
        Numeric(np.zeros(3, np.float64))


@are_checked
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
