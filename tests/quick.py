"""What `make test` leaves to `make test-all`: the marker `slow`, and who gets it.

Slow is what is marked so, and what needs real data, which is not in the repository.
Some tests do one thing many times; `make test` does it a few times (`some_or_all`,
`some_of`). The contract's tests of the engine run in `make test` for three subjects,
which have between them all that an engine must carry: a state of the client, factored
leaves, phases, and phases that are chosen as it goes. Where a method stands under the
contract in several forms, one of them is tested whole, and of the others what differs
from form to form.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
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
FORMS = {  # of a method that has another form, which is tested whole
    "methods/gram/test_method.py": "TestBare TestHeadAndTail TestShared TestLocal",
    "methods/fmf_ldp/test_contract.py": "TestBare TestWhole TestPaper",
    "methods/test_privaterec.py": "TestProjection TestBare TestClicks TestLocal "
    "TestEncoder TestPaper TestPublishedGradient TestFilms",
    "methods/test_privaterec_local.py": "TestBare TestLabels TestLaplace TestSensitive",
    "methods/privrec/test_method.py": "TestBare TestPaper",
    "methods/fedvae/test_contract.py": "TestPaper",
    "methods/test_dpvae.py": "TestBare TestVae TestPriors TestPaper TestPublished",
    "methods/rivals/test_dpals.py": "TestBare TestPublished",
    "methods/rivals/test_dpmf.py": "TestBare TestHead",
    "methods/rivals/test_dplcf.py": "TestContract",
}
FURTHER = tuple(f"{file}::{n}" for file, names in FORMS.items() for n in names.split())
OF_EVERY_FORM = (
    "test_a_cohort_equals_one_client_at_a_time",
    "test_reports_survive_the_wire_and_have_their_declared_size",
    "test_a_small_world_with_a_known_answer_is_learnt",
    "test_releases_speak_for_every_unit_and_view",
    "test_the_server_learns_from_the_delivery_alone",
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
    """Mark what needs real data, and what is left out of the contract."""
    from tacit.testing.contract import MethodContract  # after the hook of the axes

    for item in items:
        left_out = _is_left_out(item, inherited=vars(MethodContract))
        if left_out or _needs_real_data(item):
            item.add_marker(slow)


def _needs_real_data(item: pytest.Item) -> bool:
    is_marked = item.get_closest_marker("data") is not None
    return is_marked or "real_data" in getattr(item, "fixturenames", ())


def _is_left_out(item: pytest.Item, *, inherited: Container[str]) -> bool:
    """Whether it tests the engine with another subject, or a further form again."""
    name = getattr(item, "originalname", None)
    if name in ENGINE:
        return not _is_of(item, SUBJECTS)
    is_again = name in inherited and name not in OF_EVERY_FORM
    return is_again and _is_of(item, FURTHER)


def _is_of(item: pytest.Item, classes: Sequence[str]) -> bool:
    return any(f"{name}::" in item.nodeid for name in classes)
