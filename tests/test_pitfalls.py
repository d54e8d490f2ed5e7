"""Every pitfall names the tests that guard it, and they are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "pitfalls.md"
PITFALL = re.compile(r"^\*\*(?P<name>[^*]+)\*\*", re.MULTILINE)
GUARD = re.compile(r"^- `(?P<file>[\w./]+\.py)::(?P<test>test_\w+)`$", re.MULTILINE)


def pitfalls(text: str) -> dict[str, list[tuple[str, str]]]:
    """Each pitfall of a page with its guards, as file and test."""
    starts = [*PITFALL.finditer(text)]
    ends = [m.start() for m in starts[1:]] + [len(text)]
    return {
        start["name"]: GUARD.findall(text, start.start(), end)
        for start, end in zip(starts, ends, strict=True)
    }


@cache
def functions_of(file: Path) -> frozenset[str]:
    """The names of all functions of a file, those of classes too."""
    tree = ast.parse(file.read_text("utf-8"))
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))


def missing(guards: list[tuple[str, str]]) -> list[str]:
    """The guards that do not exist."""
    return [
        f"{file}::{test}"
        for file, test in guards
        if not (ROOT / file).is_file() or test not in functions_of(ROOT / file)
    ]


FOUND = pitfalls(PAGE.read_text("utf-8"))


@pytest.mark.parametrize("name", FOUND)
def test_a_pitfall_has_guards_that_exist(name: str) -> None:
    assert FOUND[name], f"no test guards '{name}'"
    assert missing(FOUND[name]) == []


def test_every_line_of_the_page_that_names_a_test_is_read() -> None:
    named = re.findall(r"::test_\w+", PAGE.read_text("utf-8"))
    assert len(named) == sum(map(len, FOUND.values()))
    assert len(FOUND) >= 40


def test_a_guard_that_is_not_there_is_found() -> None:
    here = "tests/test_pitfalls.py"
    text = f"""
**One.** Guarded.

- `{here}::test_a_guard_that_is_not_there_is_found`
- `{here}::test_of_nothing`

**Two.** Not guarded.

**Three.** In a file that is not there.

- `tests/test_nothing.py::test_of_nothing`
"""
    found = pitfalls(text)
    assert missing(found["One."]) == [f"{here}::test_of_nothing"]
    assert found["Two."] == []
    assert missing(found["Three."]) == ["tests/test_nothing.py::test_of_nothing"]
