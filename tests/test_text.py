from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.text import LONGEST, in_csv, in_html, in_json, lines, shown

UNSEEN = [
    *map(chr, [*range(0x20), *range(0x7F, 0xA0)]),
    *map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F]),
    *("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u061c"),
    *("\u2028", "\u2029", "\ud800", "\udfff", "\ue000", "\U000e0041", "\U0010ffff"),
]
ANY = st.text(st.characters(exclude_categories=()))  # halves of characters too


@pytest.mark.parametrize("odd", UNSEEN, ids=lambda c: f"{ord(c):x}")
def test_what_cannot_be_seen_is_written_as_an_escape(odd):
    found = shown(f"a{odd}b")
    assert found.isascii()
    assert found.isprintable()
    assert found.startswith("a\\")
    assert found.endswith("b")
    assert shown(in_html(f"a{odd}b")) == in_html(f"a{odd}b")


def test_ordinary_text_of_the_world_stays():
    for text in (
        "Amélie",
        "七人の侍",
        "مرحبا",
        "Ночь",
        "a\u00a0b",
        "🎬",
        "e\u0301",
        "",
    ):
        assert shown(text) == text


@given(ANY)
def test_whatever_the_text_it_fits_a_line_and_utf_8(text):
    found = shown(text)
    found.encode()
    assert "\n" not in found
    assert len(shown("x" * 5 + text, longest=8)) <= 5 + 10 * 3


def test_long_text_is_cut_where_it_is_shown():
    assert shown("x" * 10_000_000) == "x" * (LONGEST - 1) + "…"
    assert shown("x" * LONGEST) == "x" * LONGEST
    assert len(shown("x" * 300, longest=None)) == 300


def test_a_message_cannot_fake_a_second_one():
    found = lines("error: no file a\nerror: all is well\r\n  - listed\n")
    assert found == "error: no file a\n  error: all is well\\r\n  - listed\n"
    assert len(lines("x\n" * 100_000)) < 21_000


def test_html_is_escaped():
    assert in_html("<b a='1'>&\"") == "&lt;b a=&#x27;1&#x27;&gt;&amp;&quot;"
    assert in_html("<\u202escript") == "&lt;\\u202escript"


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1-1", "@SUM(A1)", " =1", "-", "=-1"]
)
def test_a_spreadsheet_computes_nothing(text):
    assert in_csv(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-0.5", "+3", "1e-5", "-inf", "nan", "a=b", "", "'"])
def test_numbers_and_plain_text_stay_in_csv(text):
    assert in_csv(text) == text


@given(ANY)
def test_a_field_of_csv_is_one_field(text):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([in_csv(text), "x"])
    assert [*csv.reader([out.getvalue()])] == [[in_csv(text), "x"]]


@given(st.dictionaries(ANY, ANY | st.lists(ANY)))
def test_json_is_exact_and_obeyed_by_no_terminal(document):
    found = in_json(json.dumps(document, ensure_ascii=False, indent=2))
    assert json.loads(found) == document
    assert all(shown(c) == c for c in found if c != "\n")
    found.encode()
