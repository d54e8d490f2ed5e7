from __future__ import annotations

import importlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from quick import some_of

from tacit.kernels import implicit_factors, one_bit, ranking, threads, topk
from tacit.kernels.threads import Parallel
from tacit.keys import Key
from tacit.serving.topk import FactorIndex

CALLS = (
    *("places", "bits", "spread", "solve", "count_ranks", "count_factor_ranks"),
    *("scan_rows", "scan_codes_in_runs", "scan_codes_each"),
)


def _layers() -> list[str]:
    """numba's thread pools that work on this machine."""
    found = []
    for layer, module in (("workqueue", "workqueue"), ("omp", "omppool")):
        try:
            importlib.import_module(f"numba.np.ufunc.{module}")
        except ImportError:  # it is there, its library is not
            continue
        found.append(layer)
    return found


def _calls():
    """Each kernel that runs on all cores, with arguments; the results may be given."""
    draw = np.random.default_rng(1)
    words = np.ascontiguousarray(Key.from_seed(2).each(np.arange(300)).words)
    lengths = draw.integers(1, 9, 300)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    events = draw.integers(0, 50, offsets[-1]).astype(np.int32)
    items = draw.normal(size=(50, 4))
    lower = np.tril_indices(4)
    squares = (items[:, :, None] * items[:, None])[:, *lower]
    table = np.concatenate([items, squares], 1)
    common = items.T @ items + np.eye(4)
    places = draw.integers(0, 200, (300, 7)).astype(np.int32)
    vectors, values = np.empty((300, 4)), np.empty((300, 7))
    scores = draw.normal(size=(300, 50)).astype(np.float32)
    doubles = scores.astype(np.float64)
    users, factors = scores[:, :4].copy(), scores[:4].copy()
    flat = (offsets, events, offsets, events)
    seen = np.sort(events[:20])
    index = _index(draw)
    return {
        "places": (one_bit.places, (words, np.arange(6) * 9, np.full(6, 9), _ints())),
        "bits": (
            one_bit.bits,
            (words, doubles[:, :6].copy(), 1.0, 0.2, _bytes()),
        ),
        "solve": (
            implicit_factors.solver(4),
            (offsets, events, table, common, 2.0, places, vectors, values),
        ),
        "spread": (
            implicit_factors.spread,
            (
                offsets,
                events,
                items,
                2.0,
                users.astype(np.float64),
                np.empty((300, 50, 4)),
            ),
        ),
        "count_ranks": (ranking.count_ranks, (scores, *flat)),
        "count_factor_ranks": (ranking.count_factor_ranks, (users, factors, *flat)),
        "scan_rows": (topk.scan_rows, (scores, offsets, np.sort(events), 5)),
        "scan_codes_in_runs": (
            topk.scan_codes_in_runs,
            (3, scores[0, :8].copy(), index, seen, 5),
        ),
        "scan_codes_each": (
            topk.scan_codes_each,
            (scores[:, :8].copy(), index, offsets, np.sort(events), 5),
        ),
    }


def _ints() -> np.ndarray:
    return np.empty((300, 6), np.int32)


def _bytes() -> np.ndarray:
    return np.empty((300, 6), np.uint8)


def _index(draw):
    return FactorIndex.of(draw.normal(size=(4000, 8)))._index


def _outcome(kernel, arguments) -> list[bytes]:
    """What it returns and what it writes into, to the bit."""
    copied = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    found = kernel(*copied)
    returned = found if isinstance(found, tuple) else ()
    arrays = [a for a in (*copied, *returned) if isinstance(a, np.ndarray)]
    return [np.ascontiguousarray(a).tobytes() for a in arrays]


def test_every_kernel_that_runs_on_all_cores_is_guarded():
    guarded = {
        name
        for module in (one_bit, ranking, topk, implicit_factors)
        for name, value in vars(module).items()
        if isinstance(value, Parallel)
    }
    assert guarded | {"solve"} == set(CALLS)
    bare = subprocess.run(
        ["grep", "-rln", "parallel=True", os.path.dirname(threads.__file__)],
        capture_output=True,
        text=True,
        check=True,
    )
    files = {os.path.basename(f) for f in bare.stdout.split() if f.endswith(".py")}
    assert files == {"threads.py"}


@pytest.mark.parametrize("name", some_of(CALLS, 3))  # others compile for seconds
def test_both_forms_give_the_same_bits(name):
    kernel, arguments = _calls()[name]
    assert _outcome(kernel.on_one, arguments) == _outcome(kernel.on_all, arguments)
    assert _outcome(kernel, arguments) == _outcome(kernel.on_all, arguments)


def test_the_two_forms_are_kept_apart_on_the_disk():
    one, every = one_bit.places.on_one, one_bit.places.on_all
    assert one.targetoptions.get("parallel", False) is False
    assert every.targetoptions["parallel"] is True
    assert one._cache._impl.filename_base != every._cache._impl.filename_base


def test_whoever_finds_the_pool_in_use_runs_on_one_core():
    kernel, arguments = _calls()["places"]
    expected = _outcome(kernel, arguments)
    with threads._pool, ThreadPoolExecutor(1) as other:
        kernel_on_all, kernel.on_all = kernel.on_all, None  # a call of it would fail
        try:
            assert other.submit(_outcome, kernel, arguments).result() == expected
        finally:
            kernel.on_all = kernel_on_all


def test_an_error_gives_the_pool_back():
    with pytest.raises(numba.TypingError):
        one_bit.places("not", "what", "is", "wanted")
    assert threads._pool.acquire(blocking=False)
    threads._pool.release()


SETUP = """
import multiprocessing, os, sys, threading
import numba
import numpy as np
from tacit.kernels import one_bit
from tacit.keys import Key

words = np.ascontiguousarray(Key.from_seed(2).each(np.arange(5000)).words)

def drawn(_=None):
    out = np.empty((5000, 40), np.int32)
    one_bit.places(words, np.arange(40) * 9, np.full(40, 9), out)
    return out.tobytes()
"""
FORKS = """
expected = drawn()  # starts the threads
for _ in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if drawn() == expected and drawn() == expected else 3)
    assert os.waitpid(child, 0)[1] == 0, "a child was ended"
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert set(pool.map(drawn, range(8))) == {expected}
assert drawn() == expected  # the parent still has its threads
print(numba.threading_layer())
"""
AT_ONCE = """
expected = drawn()
found, start = [], threading.Barrier(8)

def many():
    start.wait()
    found.extend(drawn() == expected for _ in range(40))

crowd = [threading.Thread(target=many) for _ in range(8)]
[one.start() for one in crowd]
[one.join() for one in crowd]
assert len(found) == 320 and all(found), found.count(False)
print(numba.threading_layer())
"""


def _pools() -> list[object]:
    """Each pool with each script; at once those that an unguarded kernel breaks."""
    breaks = {("omp", "forks"), ("workqueue", "at_once")}
    return [
        pytest.param(
            layer,
            script,
            id=f"{name}-{layer}",
            marks=() if (layer, name) in breaks else pytest.mark.slow,
        )
        for name, script in {"forks": FORKS, "at_once": AT_ONCE}.items()
        for layer in _layers()
    ]


@pytest.mark.parametrize(("layer", "script"), _pools())
def test_kernels_survive_forks_and_threads(layer, script):
    """Unguarded, GNU OpenMP ends each child and the workqueue aborts the threads."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SETUP + script],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == layer
