from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.parsing import number_tables
from tacit.data.parsing.number_tables import Layout, check_scale, read_numbers
from tacit.errors import BadData

PAIRS = Layout(("user", "rating", "time"), "::", decimals=frozenset({"rating"}))


def read(text: str | bytes, layout: Layout = PAIRS) -> dict[str, list[float]]:
    raw = text if isinstance(text, bytes) else text.encode()
    columns = read_numbers(io.BytesIO(raw), layout, "file.dat")
    return {name: column.tolist() for name, column in columns.items()}


def test_columns_have_their_types():
    columns = read_numbers(io.BytesIO(b"1::2.5::3\n"), PAIRS, "file.dat")
    assert [c.dtype for c in columns.values()] == [np.int64, np.float64, np.int64]


@pytest.mark.parametrize(
    "text",
    ["1::2.5::3\n10::4::0\n", "1::2.5::3\r\n10::4::0\r\n", "1::2.5::3\n10::4::0"],
)
def test_line_ends_do_not_matter(text):
    assert read(text) == {"user": [1, 10], "rating": [2.5, 4.0], "time": [3, 0]}


rows = st.lists(
    st.tuples(
        st.integers(0, 10**18 - 1), st.integers(0, 10**6 - 1), st.integers(0, 10**10)
    ),
    min_size=1,
    max_size=30,
)


@given(rows, st.sampled_from(["::", ",", "\t"]), st.sampled_from([40, 1 << 22]))
def test_what_is_written_is_read(table, separator, block):
    """Numbers as Python reads them, whatever the size of a block."""
    layout = Layout(PAIRS.columns, separator, decimals=PAIRS.decimals)
    lines = [separator.join([str(a), f"{b / 1000:.3f}", str(c)]) for a, b, c in table]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(number_tables, "_BLOCK", max(block, max(map(len, lines)) + 1))
        found = read("\n".join(lines), layout)
    assert found["user"] == [a for a, _, _ in table]
    assert found["rating"] == [float(f"{b / 1000:.3f}") for _, b, _ in table]
    assert found["time"] == [c for _, _, c in table]


GOOD = "1::2.5::3\n" * 5


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1::2", "'1::2' is not 'user::rating::time'"),
        ("1::2::3::4", "is not 'user::rating::time'"),
        ("1:::2::3", "is not 'user::rating::time'"),
        ("", "'' is not 'user::rating::time'"),
        ("1:2:3", "is not 'user::rating::time'"),
        ("::2::3", "user='' must be a whole number >= 0"),
        ("1::2::", "time='' must be a whole number >= 0"),
        ("1::2::-3", "time='-3' must be a whole number >= 0"),
        ("1.0::2::3", "user='1.0' must be a whole number >= 0"),
        ("x::2::3", "user='x'"),
        ("1::nan::3", "rating='nan' must be a number >= 0"),
        ("1::inf::3", "rating='inf'"),
        ("1::1e3::3", "rating='1e3'"),
        ("1::-1::3", "rating='-1'"),
        ("1::.::3", "rating='.'"),
        ("1::1.2.3::3", "rating='1.2.3'"),
        ("1:: 2::3", "rating=' 2'"),
        ("1::2::" + "9" * 19, "time='9999999999999999999'"),
        ("1::2::" + "9" * 500, "9…' must be"),
        ("1::²::3", "rating='²'"),
        (b"1::\xff::3", r"rating='\\xff'"),
        (b"1::2\x00::3", r"rating='2\x00'"),
    ],
)
@pytest.mark.parametrize("after", ["", "\n" + GOOD])
@pytest.mark.parametrize("block", [64, 1 << 22])
def test_a_malformed_line_is_named(line, problem, after, block, monkeypatch):
    raw = line if isinstance(line, bytes) else line.encode()
    if not after and not raw:
        raw = b"\n"
    monkeypatch.setattr(number_tables, "_BLOCK", max(block, len(raw) + 1))
    with pytest.raises(BadData) as caught:
        read(GOOD.encode() + raw + after.encode())
    assert caught.value.line == 6
    assert caught.value.file == "file.dat"
    assert problem.replace(r"\x00", "\\x00") in str(caught.value)


def test_an_empty_file_and_a_lonely_header():
    with pytest.raises(BadData, match="is empty"):
        read(b"")
    with_header = Layout(("a", "b"), ",", header=True)
    with pytest.raises(BadData, match="is empty"):
        read("a,b\n", with_header)


def test_a_header_is_exact_and_counts_as_a_line():
    layout = Layout(("a", "b"), ",", header=True)
    assert read("a,b\r\n1,2\r\n", layout) == {"a": [1], "b": [2]}
    assert read(b"\xef\xbb\xbfa,b\n1,2\n", layout) == {"a": [1], "b": [2]}
    with pytest.raises(BadData, match="line 1: header 'b,a' must be 'a,b'"):
        read("b,a\n1,2\n", layout)
    with pytest.raises(BadData, match="line 3: b='x'"):
        read("a,b\n1,2\n1,x\n", layout)


def test_a_line_without_end_is_not_swallowed(monkeypatch):
    monkeypatch.setattr(number_tables, "_BLOCK", 64)
    with pytest.raises(BadData, match="line 6: longer than 64 bytes"):
        read(GOOD + "1" * 300)


@pytest.mark.parametrize("wrong", [0.0, 0.25, 4.5, 1.7])
def test_a_number_off_the_scale_is_named(wrong):
    scale = {"step": 0.5, "most": 4.0, "file": "log", "first": 2}
    check_scale(np.array([0.5, 3.5, 4.0]), "rating", **scale)
    with pytest.raises(BadData, match=rf"line 4: rating {wrong:g} must be in 0.5, 1,"):
        check_scale(np.array([0.5, 4.0, wrong]), "rating", **scale)
