import numpy as np
import pytest

from tacit.errors import BadMessage, BadValue
from tacit.transport.messages import Broadcast, Layout, Reports, Slot
from tacit.tree import Dense, Factored, Tree

LAYOUT = Layout(
    {
        "V": Slot("float32", (4, 2), rank=1),
        "n": Slot("uint8", ()),
        "b": Slot("bool", (3,)),
    }
)


def reports(**changed) -> Reports:
    leaves = {
        "V": Factored(np.ones((2, 1, 4), np.float32), np.ones((2, 1, 2), np.float32)),
        "n": Dense(np.ones(2, np.uint8)),
        "b": Dense(np.ones((2, 3), bool)),
    }
    kept = {name: leaf for name, leaf in (leaves | changed).items() if leaf is not None}
    return Reports(Tree(kept))


def test_what_is_declared_passes():
    LAYOUT.check(reports())
    LAYOUT.check(Reports.nobody())
    LAYOUT.check(reports().select([1]))


@pytest.mark.parametrize(
    "changed",
    [
        {"n": None},
        {"extra": Dense(np.ones(2))},
        {"n": Dense(np.ones(2, np.int8))},
        {"n": Dense(np.ones((2, 1), np.uint8))},
        {"V": Dense(np.ones((2, 4, 2), np.float32))},
        {"V": Factored(np.ones((2, 2, 4), np.float32), np.ones((2, 2, 2), np.float32))},
    ],
    ids=["missing", "extra", "dtype", "shape", "dense", "rank"],
)
def test_what_is_not_declared_is_refused(changed):
    with pytest.raises(BadMessage, match="declared is V#left: float32"):
        LAYOUT.check(reports(**changed))


@pytest.mark.parametrize(
    ("slots", "size"),
    [
        ({"v": Slot("uint8", (1_000,))}, 1_000),
        ({"v": Slot("float64", (10, 10)), "n": Slot("int32", ())}, 804),
        ({"V": Slot("float32", (100, 20), rank=2)}, 960),  # factors
        ({}, 0),
    ],
)
def test_the_stored_bytes_are_those_of_what_is_sent(slots, size):
    assert Layout(slots).stored_bytes == size


def test_the_sum_of_nobody_has_the_types_of_any_sum():
    zeros, some = LAYOUT.zeros(), reports().tree.sum()
    assert {n: v.dtype for n, v in zeros.items()} == {
        n: v.dtype for n, v in some.items()
    }
    assert {name: (v.dtype.name, v.shape) for name, v in zeros.items()} == {
        "V": ("float32", (4, 2)),
        "n": ("int64", ()),
        "b": ("int64", (3,)),
    }
    assert not any(value.any() for value in zeros.values())


@pytest.mark.parametrize("dtype", ["float", ">f4", "complex64", "object", "int128"])
def test_a_type_that_cannot_travel_is_refused_when_declared(dtype):
    with pytest.raises(BadValue, match="known: bool"):
        Slot(dtype, (2,))


def test_a_factored_slot_has_rows_and_columns():
    with pytest.raises(BadValue, match="rows and columns"):
        Slot("float32", (2, 3, 4), rank=1)


def test_a_name_cannot_pass_for_a_part_of_another_leaf():
    with pytest.raises(BadValue, match="must not have '#'"):
        Layout({"V#left": Slot("float32", (2,))})
    with pytest.raises(BadValue, match="must not have '#'"):
        Tree({"V#left": Dense(np.ones(2))})


@pytest.mark.parametrize("round_", [-1, 2**64, 1.5])
def test_a_round_is_a_count(round_):
    with pytest.raises(BadValue, match="round"):
        Broadcast(round_, bytes(16), {})


@pytest.mark.parametrize("phase", [-1, 2**16, 0.5])
def test_a_phase_is_a_small_count(phase):
    with pytest.raises(BadValue, match="phase"):
        Broadcast(0, bytes(16), {}, phase)
