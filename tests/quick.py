"""What `make test` leaves to `make test-all`: the marker `slow`, and who gets it.

Slow is what is marked so, and what needs real data, which is not in the repository.
Some tests do one thing many times; `make test` does it a few times (`some_or_all`,
`some_of`). The contract's tests of the engine run in `make test` for three subjects,
which have between them all that an engine must carry: a state of the client, factored
leaves, phases, and phases that are chosen as it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

slow = pytest.mark.slow
Value = TypeVar("Value")

ENGINE = (  # the contract's tests whose subject is the runtime, whatever the method
    "test_the_same_through_two_processes",
    "test_no_broadcast_silences_anybody",
    "test_killed_anywhere_and_resumed_equals_uninterrupted",
    "test_killed_between_the_steps_of_a_round",
)
SUBJECTS = (
    "testing/test_contract.py::TestToy",
    "methods/gram/test_method.py::TestCentral",
    "test_next_phase.py::TestContract",
)


def some_or_all(name: str, some: Value, every: Value) -> pytest.MarkDecorator:
    """Run a test with `some` in `make test`, and with `every` in `make test-all`."""
    few, many = pytest.param(some, id="some"), pytest.param(every, id="all", marks=slow)
    return pytest.mark.parametrize(name, [few, many])


def some_of(values: Sequence[object], few: int) -> list[object]:
    """The parameters of a test of which the first `few` run in `make test`."""
    rest = [v if isinstance(v, tuple) else (v,) for v in values[few:]]
    return [*values[:few], *(pytest.param(*value, marks=slow) for value in rest)]


@pytest.hookimpl(tryfirst=True)  # before those that are marked are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs real data, and tests of the engine but for three subjects."""
    for item in items:
        if _needs_real_data(item) or _is_of_the_engine(item):
            item.add_marker(slow)


def _needs_real_data(item: pytest.Item) -> bool:
    is_marked = item.get_closest_marker("data") is not None
    return is_marked or "real_data" in getattr(item, "fixturenames", ())


def _is_of_the_engine(item: pytest.Item) -> bool:
    """Whether it is a test of the engine whose subject is none of the three."""
    is_chosen = any(f"{subject}::" in item.nodeid for subject in SUBJECTS)
    return getattr(item, "originalname", None) in ENGINE and not is_chosen
