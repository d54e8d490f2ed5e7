"""What is left to `make test-all`: the names are right, and something stays here."""

from __future__ import annotations

from pathlib import Path

import pytest
import quick

from tacit.testing.contract import MethodContract

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", quick.ENGINE + quick.OF_EVERY_FORM)
def test_the_tests_that_are_named_are_the_contracts(name: str) -> None:
    assert callable(getattr(MethodContract, name))


@pytest.mark.parametrize("subject", quick.SUBJECTS + quick.FURTHER)
def test_the_subjects_that_are_named_exist(subject: str) -> None:
    file, name = subject.split("::")
    assert f"class {name}(" in (HERE / file).read_text("utf-8")


class Item:
    """As much of a collected test as the hook looks at."""

    def __init__(self, nodeid: str, *, fixtures: tuple[str, ...] = ()) -> None:
        self.nodeid, self.fixturenames = nodeid, fixtures
        self.originalname = nodeid.split("::")[-1]
        self.marks: list[str] = []

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


KILLED = "test_killed_between_the_steps_of_a_round"
EMPTY = "test_an_empty_cohort_is_refused_by_name"
LEARNT = "test_a_small_world_with_a_known_answer_is_learnt"


@pytest.mark.parametrize(
    ("item", "is_slow"),
    [
        (Item(f"tests/testing/test_contract.py::TestToy::{KILLED}"), False),
        (Item(f"tests/methods/gram/test_method.py::TestBare::{KILLED}"), True),
        (Item("tests/methods/gram/test_method.py::TestBare::test_other"), False),
        (Item(f"tests/methods/gram/test_method.py::TestBare::{EMPTY}"), True),
        (Item(f"tests/methods/gram/test_method.py::TestCentral::{EMPTY}"), False),
        (Item(f"tests/methods/gram/test_method.py::TestBare::{LEARNT}"), False),
        (Item("tests/test_any.py::test_real", fixtures=("real_data",)), True),
        (Item("tests/test_any.py::test_invented", fixtures=("tmp_path",)), False),
    ],
)
def test_who_is_marked(item: Item, is_slow: bool) -> None:
    quick.pytest_collection_modifyitems([item])
    assert ("slow" in item.marks) is is_slow


def test_some_run_at_once_and_all_later() -> None:
    few, many = quick.some_or_all("kills", 4, 15).args[1]
    assert (few.values, [*few.marks]) == ((4,), [])
    assert (many.values, [mark.name for mark in many.marks]) == ((15,), ["slow"])


@pytest.mark.parametrize("values", [[1, 2, 3], [(1, "a"), (2, "b"), (3, "c")]])
def test_the_first_of_some_run_at_once(values: list[object]) -> None:
    first, *rest = quick.some_of(values, 1)
    assert first == values[0]
    flat = [v if isinstance(v, tuple) else (v,) for v in values[1:]]
    assert [one.values for one in rest] == flat
    assert all(mark.name == "slow" for one in rest for mark in one.marks)
