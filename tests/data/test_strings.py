"""Packed texts behave as a list of texts."""

import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.strings import Strings
from tacit.errors import BadValue

TEXTS = ["Alien", "", "Amélie", "千と千尋", "Alien", "🎬 (2001)", "a\0b\n"]
texts = st.lists(st.text(max_size=5), max_size=8)


@given(texts, st.data())
def test_strings_are_a_list(values, data):
    packed = Strings.of(values)
    assert list(packed) == values
    assert len(packed) == len(values)
    assert [packed[i] for i in range(-len(values), len(values))] == values * 2
    part = data.draw(st.slices(len(values)))
    assert list(packed[part]) == values[part]
    rows = data.draw(st.lists(st.sampled_from(range(len(values)) or [0]), max_size=9))
    rows = rows if values else []
    assert list(packed.take(rows)) == [values[i] for i in rows]
    assert packed.take(np.arange(len(values))) == packed


@given(texts, texts)
def test_equality_is_by_value(a, b):
    assert (Strings.of(a) == Strings.of(b)) == (a == b)


def test_equal_bytes_cut_elsewhere_are_not_equal():
    assert Strings.of(["ab", "c"]) != Strings.of(["a", "bc"])
    assert Strings.of(["ab"]) != ["ab"]


def test_it_is_a_sequence():
    packed = Strings.of(TEXTS)
    assert "Amélie" in packed
    assert packed.index("") == 1
    assert packed.count("Alien") == 2
    assert list(reversed(packed)) == TEXTS[::-1]
    with pytest.raises(IndexError):
        packed[len(TEXTS)]


def test_positions():
    assert Strings.of(["b", "a"]).positions == {"b": 0, "a": 1}
    assert Strings.of([]).positions == {}
    with pytest.raises(BadValue, match="1 of 7 ids are duplicates, the first is 'Ali"):
        _ = Strings.of(TEXTS).positions


def test_memory_mapped_strings(tmp_path):
    packed = Strings.of(TEXTS)
    for name in ("buffer", "offsets"):
        np.save(tmp_path / name, getattr(packed, name))
    parts = (
        np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        for name in ("buffer", "offsets")
    )
    mapped = Strings(*parts)
    assert mapped == packed
    assert list(mapped.take([3, 1, 3])) == [TEXTS[3], TEXTS[1], TEXTS[3]]


@pytest.mark.parametrize("bad", [[3], [None], [b"a"], ["\ud800"], ["a", 1.5]])
def test_only_unicode_text_is_packed(bad):
    with pytest.raises(BadValue, match="is not"):
        Strings.of(bad)


def test_offsets_must_fit_the_buffer():
    with pytest.raises(BadValue, match="offsets"):
        Strings(np.zeros(3, np.uint8), np.array([0, 2], np.int64))


def calls_of(work):
    """How many functions, Python's and C's, are called while something works."""
    made = Counter()
    sys.setprofile(lambda _frame, event, _argument: made.update([event]))
    try:
        work()
    finally:
        sys.setprofile(None)
    return made["call"] + made["c_call"]


def test_a_hundred_thousand_are_taken_at_once():
    """No function is called for each string: one call in ten of them would fail.

    The counts are not compared: a collection of garbage now and then calls, too.
    """
    packed = Strings.of([f"item number {i}" for i in range(100_000)])
    many = np.arange(100_000)[::-1]
    packed.take(many)  # a first call loads a kernel
    assert calls_of(lambda: packed.take(many)) < len(many) / 10
    taken = packed.take(many)
    assert taken[0] == "item number 99999"
    assert taken[99_999] == "item number 0"


@pytest.mark.parametrize(
    ("raw", "offsets"), [(b"a\xffb", [0, 1, 3]), ("é".encode(), [0, 1, 2])]
)
def test_bytes_of_a_file_are_checked(raw, offsets):
    texts = Strings(np.frombuffer(raw, np.uint8), np.array(offsets))
    with pytest.raises(BadValue, match="a text"):
        texts.check()
    Strings.of(["é", "", "a", ""]).check()
