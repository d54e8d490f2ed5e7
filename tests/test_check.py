"""Bad values are refused in one shape: the value, what is allowed, what to do."""

import math

import numpy as np
import pytest

from tacit import check
from tacit.errors import BadValue

NOT_NUMBERS = [math.nan, math.inf, -math.inf, "8", None, True, [1.0], 10**400]


@pytest.mark.parametrize("bad", NOT_NUMBERS)
@pytest.mark.parametrize(
    "rule",
    [
        check.positive,
        check.not_negative,
        lambda **v: check.at_least(1, **v),
        check.count,
        check.rate,
        check.fraction,
    ],
)
def test_only_finite_numbers_pass(rule, bad):
    with pytest.raises(BadValue, match=r"epsilon=.* must be a finite number"):
        rule(epsilon=bad)


@pytest.mark.parametrize(
    ("rule", "good", "bad", "said"),
    [
        (check.positive, [1e-300, 3, np.float32(2)], [0, -1.5], "> 0"),
        (check.not_negative, [0, 0.0, 2], [-1e-300, -1], ">= 0"),
        (lambda **v: check.at_least(2, **v), [2, 2.5], [1, 1.99], ">= 2"),
        (check.count, [1, 10**30, np.int8(2)], [0, -3], ">= 1"),
        (check.count, [5], [1.5, 2.0], "a whole number"),
        (check.rate, [1, 0.5, 1e-9], [0, 1.0001, -0.1], r"in \(0, 1\]"),
        (check.fraction, [0.5, 1e-9], [0, 1, 1.0, -0.1], r"in \(0, 1\)"),
    ],
)
def test_limits(rule, good, bad, said):
    for value in good:
        rule(x=value)
    for value in bad:
        with pytest.raises(BadValue, match=f"x={value} must be {said}$"):
            rule(x=value)


def test_the_second_value_is_checked_too_and_the_remedy_is_told():
    with pytest.raises(BadValue, match=r"^b=-1 must be > 0; use b=1$"):
        check.positive(a=1, b=-1, remedy="use b=1")


def test_numpy_scalars_are_shown_as_numbers():
    with pytest.raises(BadValue, match=r"^x=-1.0 must"):
        check.positive(x=np.float64(-1))


def test_one_of_suggests():
    check.one_of(["sound", "paper"], mode="paper")
    with pytest.raises(BadValue, match=r"mode='papr' .* did you mean 'paper'\?.*; or"):
        check.one_of(["sound", "paper"], mode="papr", remedy="or leave it out")


@pytest.mark.parametrize("value", [None, 3, ["sound"], {"a": 1}])
def test_one_of_refuses_what_is_no_name(value):
    with pytest.raises(BadValue, match="is not known"):
        check.one_of({"sound"}, mode=value)


def test_unknown_lists_at_most_forty():
    said = check.unknown("x", [f"name{i:03}" for i in range(500)])
    assert "name039" in said
    assert "name040" not in said
    assert "500 in all" in said
    assert check.unknown("x", []) == "'x' is not known; known: none"
