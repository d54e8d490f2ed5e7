"""Methods and baselines by name."""

import pytest

from tacit.errors import BadValue
from tacit.experiment.registry import (
    baseline,
    baseline_names,
    method_class,
    method_names,
)
from tacit.method import Method
from tacit.methods import METHODS


def test_every_method_of_ours_is_found_and_is_one():
    assert {*METHODS} <= {*method_names()}
    for name in METHODS:
        assert issubclass(method_class(name), Method)


def test_names_are_sorted_and_none_occurs_twice():
    for names in (method_names(), baseline_names()):
        assert names == sorted({*names})


@pytest.mark.parametrize("name", ["popularity", "ease"])
def test_a_baseline_comes_with_its_defaults(name):
    assert name in baseline_names()
    assert callable(baseline(name).fit)
    assert baseline(name) == type(baseline(name))()


@pytest.mark.parametrize("find", [method_class, baseline])
def test_an_unknown_name_is_shown(find):
    with pytest.raises(BadValue, match="gramm"):
        find("gramm")
