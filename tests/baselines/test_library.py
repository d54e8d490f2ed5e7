from __future__ import annotations

import sys

import pytest
import threadpoolctl

from tacit.baselines.ials import Ials
from tacit.baselines.library import implicit_on_cpu
from tacit.errors import MissingExtra
from tacit.keys import Key


def test_without_the_library_the_extra_is_named(shards, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "implicit.cpu.als", None)
    with pytest.raises(
        MissingExtra, match=r"pip install 'tacit-recommender\[baselines\]'"
    ):
        Ials().fit(shards(table), key=Key.from_seed(0))


def test_blas_has_one_thread_meanwhile_and_its_own_number_again_after():
    def threads() -> list[int]:
        found = threadpoolctl.threadpool_info()
        return [lib["num_threads"] for lib in found if lib["user_api"] == "blas"]

    before = threads()
    with implicit_on_cpu():
        assert set(threads()) <= {1}
    assert threads() == before
