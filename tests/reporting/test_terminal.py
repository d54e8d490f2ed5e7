"""Tables and sentences in narrow terminals: whole words, no line too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.reporting.terminal import table_lines, wrapped

WORD = st.text("abcdefghij", min_size=1, max_size=12)
TEXT = st.lists(WORD, min_size=1, max_size=12).map(" ".join)
WIDTHS = [40, 60, 80]


def words(lines):
    return sorted(word for line in lines for word in line.split() if "─" not in word)


@given(TEXT, st.integers(16, 80))
def test_a_sentence_keeps_its_words_and_the_width(text, width):
    lines = wrapped(text, width, first="- ", later="  ")
    assert max(map(len, lines)) <= width
    assert " ".join(lines).split()[1:] == text.split()


@given(st.data(), st.sampled_from(WIDTHS), st.integers(1, 7), st.integers(1, 3))
def test_a_table_keeps_its_words_and_the_width(data, width, columns, rows):
    header = data.draw(st.lists(WORD, min_size=columns, max_size=columns))
    row = st.lists(TEXT, min_size=columns, max_size=columns)
    cells = data.draw(st.lists(row, min_size=rows, max_size=rows))
    lines = table_lines(header, cells, set(), width)
    assert max(map(len, lines)) <= width
    found = {word.rstrip(":") for word in words(lines)}
    assert {word for one in cells for cell in one for word in cell.split()} <= found


@pytest.mark.parametrize("width", WIDTHS)
def test_columns_of_figures_go_below_each_other(width):
    header = ["method", *(f"recall@{k}" for k in range(10, 70, 10))]
    row = ["gram, epsilon 4", *["0.4381 ± 0.0109"] * 6]
    lines = table_lines(header, [row], {*range(1, 7)}, width)
    assert max(map(len, lines)) <= width
    assert sum(line.count("0.4381 ± 0.0109") for line in lines) == 6
    named = sum(line.startswith("gram,") for line in lines)
    assert named == sum("method" in line for line in lines)


def test_what_fits_stays_one_table():
    lines = table_lines(["what", "price"], [["tea", "2"], ["jam", "10"]], {1}, 80)
    assert lines == ["what  price", "────  ─────", "tea       2", "jam      10"]


def test_a_word_that_is_longer_than_the_width_stays_whole():
    address = "https://example.org/" + "a" * 80
    (line,) = wrapped(address, 40)
    assert line == address
