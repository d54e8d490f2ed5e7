"""Memory is handed out again only when nothing refers to it any more."""

import sys

import numpy as np
import pytest

from tacit import buffers
from tacit.buffers import empty

LARGE = (512, 600)  # 2.4 MB of doubles


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setattr(buffers, "_kept", [])


def place(array):
    return array.__array_interface__["data"][0]


def test_it_is_an_array_of_the_shape_and_type_asked_for():
    for shape, kind in [(LARGE, "float64"), ((3,), "float32"), ((0, 4), "int64")]:
        made = empty(shape, kind)
        assert (made.shape, made.dtype) == (shape, np.dtype(kind))
        assert made.flags.c_contiguous
        assert made.flags.writeable
        assert made.flags.aligned


def test_memory_comes_back_once_nobody_has_it():
    one = empty(LARGE, "float64")
    first = place(one)
    del one
    assert place(empty(LARGE, "float64")) == first
    assert place(empty((1024, 600), "float32")) == first  # as many bytes


@pytest.mark.parametrize(
    "held",
    [
        lambda a: a,
        lambda a: a[3:],
        lambda a: a[1:].T[:5],
        lambda a: a.view(np.int64)[0],
        lambda a: memoryview(a),
        lambda a: np.asarray(a).ravel(),
        lambda a: {"checkpoint": (a[:1],)},
    ],
    ids=["itself", "slice", "transposed", "other type", "buffer", "flat", "nested"],
)
def test_whoever_holds_any_part_keeps_all_of_it(held):
    one = empty(LARGE, "float64")
    first, kept = place(one), held(one)
    del one
    other = empty(LARGE, "float64")
    assert place(other) != first
    del kept
    assert place(empty(LARGE, "float64")) == first


def test_a_tensor_holds_it_too():
    torch = pytest.importorskip("torch")
    one = empty(LARGE, "float64")
    first, tensor = place(one), torch.from_numpy(one)[2:]
    del one
    assert place(empty(LARGE, "float64")) != first
    del tensor
    assert place(empty(LARGE, "float64")) == first


def test_two_that_are_alive_never_share_memory():
    rng, alive = np.random.default_rng(0), []
    for step in range(200):
        made = empty(LARGE, "float64")
        made[0, 0] = step
        alive.append((step, made))
        if len(alive) > 5:
            del alive[rng.integers(len(alive))], made
        assert all(array[0, 0] == number for number, array in alive)
    assert len(buffers._kept) <= 8


def test_free_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(buffers, "_MOST", 5 * 2**20)
    sizes = [2**20 + 8 * n for n in range(20)]
    for size in sizes:  # never the same size again
        empty((size,), "uint8")
    free = [a for a in buffers._kept if sys.getrefcount(a) == 3]  # list, loop, call
    assert sum(a.nbytes for a in free) <= 6 * 2**20 + 8 * 20
