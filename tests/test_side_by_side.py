"""Work on all cores: order, failures, and that the calling thread takes part."""

import os
import threading

import pytest

from tacit.side_by_side import side_by_side


def test_results_have_the_order_of_the_items():
    assert side_by_side(lambda n: n * n, range(50)) == [n * n for n in range(50)]
    assert side_by_side(abs, []) == []


def test_the_first_failure_is_raised_after_all_others_are_done():
    done = []

    def refuse_some(n):
        if n in (3, 7):
            raise ValueError(f"no {n}")
        done.append(n)

    with pytest.raises(ValueError, match="no 3"):
        side_by_side(refuse_some, range(10))
    assert sorted(done) == [0, 1, 2, 4, 5, 6, 8, 9]


def test_items_meet_on_several_cores(monkeypatch):
    """Each waits for the other, so one thread alone would never end."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    both = threading.Barrier(2, timeout=30)

    def meet(_):
        both.wait()
        return threading.current_thread()

    met = side_by_side(meet, range(2))
    assert threading.current_thread() in met
    assert len(set(met)) == 2


def test_one_core_needs_no_thread(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    mine = threading.current_thread()
    assert {*side_by_side(lambda _: threading.current_thread(), range(3))} == {mine}
