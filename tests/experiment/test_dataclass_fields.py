from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from tacit import check
from tacit.errors import BadValue
from tacit.experiment.dataclass_fields import Problems, convert


@dataclass(frozen=True)
class Sample:
    size: int
    rate: float = 0.5
    name: str | None = None
    kinds: tuple[str, ...] = ()
    shares: Mapping[str, float] | None = None
    mode: Literal["sound", "paper"] = "sound"

    def __post_init__(self) -> None:
        check.positive(rate=self.rate)


def read(table: object) -> tuple[Sample | None, list[str]]:
    problems = Problems()
    return problems.read(Sample, table, "sample"), problems.found


def test_a_table_becomes_the_dataclass():
    table = {"size": 3, "rate": 1, "kinds": ["a"], "shares": {"x": 1}, "mode": "paper"}
    made, problems = read(table)
    assert problems == []
    assert made == Sample(3, 1.0, None, ("a",), {"x": 1.0}, "paper")


def test_every_problem_is_found_in_one_reading():
    table = {"rate": "x", "kinds": "a", "mode": "loud", "sise": 3, "shares": {"x": "y"}}
    made, problems = read(table)
    assert made is None
    text = "\n".join(problems)
    assert "did you mean 'size'" in text
    assert "sample.size is missing" in text
    assert "sample.rate must be a number, not 'x'" in text
    assert "sample.kinds must be a list" in text
    assert "'sound', 'paper'" in text
    assert "sample.shares must be a number" in text


def test_what_the_constructor_refuses_is_a_problem_with_its_place():
    made, problems = read({"size": 1, "rate": -1})
    assert made is None
    assert problems == ["sample: rate=-1.0 must be > 0"]


@pytest.mark.parametrize("table", [None, 3, "text", [1]])
def test_a_section_that_is_no_table_is_a_problem(table):
    assert read(table)[1] == [f"sample must be a table, not {table!r}"]


@pytest.mark.parametrize(
    ("value", "hint"),
    [(True, int), (1, bool), (1.0, int), (3, str), ("x", Path | int), (None, str)],
)
def test_nothing_is_guessed(value, hint):
    if hint == Path | int:
        assert convert(value, hint) == Path("x")
    else:
        with pytest.raises(BadValue):
            convert(value, hint)


def test_a_type_that_no_file_can_hold_says_so():
    with pytest.raises(BadValue, match="in Python"):
        convert({"a": 1}, object)
