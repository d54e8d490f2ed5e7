from __future__ import annotations

import pytest

from tacit.data.parsing import rows
from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.number_tables import Layout
from tacit.data.parsing.rows import Row, plain_rows, quoted_rows
from tacit.errors import BadData

BARE = Layout(("a", "b"), "\t")
HEADED = Layout(("a", "b"), "\t", header=True)


@pytest.fixture
def table(tmp_path):
    """Writes `t.tsv` and gives the release it is in."""

    def write(text: str) -> Members:
        (tmp_path / "t.tsv").write_text(text, "utf-8")
        return Members(tmp_path, "")

    return write


def test_plain_rows_take_quotation_marks_as_they_are(table):
    found = list(plain_rows(table('"1\tx\n2\t\r\n'), "t.tsv", BARE))
    assert [row.fields for row in found] == [{"a": '"1', "b": "x"}, {"a": "2", "b": ""}]
    assert [row.line for row in found] == [1, 2]


def test_quoted_rows_know_the_line_where_they_begin(table):
    text = 'a\tb\n1\t"two\nlines\t"\n2\t"say ""x"""\n'
    found = list(quoted_rows(table(text), "t.tsv", HEADED))
    assert [row["b"] for row in found] == ["two\nlines\t", 'say "x"']
    assert [row.line for row in found] == [2, 4]


@pytest.mark.parametrize("reader", [plain_rows, quoted_rows])
@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("b\ta\n", 1, "header 'b', 'a' must be 'a', 'b'"),
        ("a\tb\tb\n", 1, "header 'a', 'b', 'b' must be"),
        ("a\tb\n1\t2\n1\n", 3, r"1 fields separated by '\t', expected 2"),
        ("a\tb\n1\t2\t3\n", 2, r"3 fields separated by '\t', expected 2"),
        ("a\tb\n1\t\0\n", 2, "holds a zero byte"),
    ],
)
def test_what_is_not_the_layout_is_named(table, reader, text, line, problem):
    with pytest.raises(BadData) as caught:
        list(reader(table(text), "t.tsv", HEADED))
    assert problem in str(caught.value)
    assert caught.value.line == line


def test_an_open_quotation_mark_is_named_where_it_opens(table):
    text = 'a\tb\n1\t2\n1\t"2\n1\t2\n'
    with pytest.raises(BadData, match="check its quotation marks") as caught:
        list(quoted_rows(table(text), "t.tsv", HEADED))
    assert caught.value.line == 3


def row(text: str) -> Row:
    return Row("file", 7, {"x": text})


def test_fields_are_what_they_claim():
    assert row("07").whole("x") == 7
    assert row("4.25").decimal("x", most=5) == 4.25
    assert row("M").one_of("x", ("F", "M")) == "M"


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1.0", "1e3", "٣", "9" * 19])
def test_what_is_no_whole_number_is_refused(text):
    with pytest.raises(BadData, match=r"file, line 7: x=.* must be a whole number"):
        row(text).whole("x")


@pytest.mark.parametrize(
    "text", ["", "-1", ".5", "5.", "1e3", "nan", "inf", "5.01", "1_0", "٣", "0" * 19]
)
def test_what_is_no_decimal_is_refused(text):
    with pytest.raises(BadData, match="must be a number >= 0 and <= 5"):
        row(text).decimal("x", most=5)


@pytest.mark.parametrize("text", ["", "FM", "f"])
def test_what_is_not_allowed_is_refused(text):
    with pytest.raises(BadData, match="must be one of F, M"):
        row(text).one_of("x", ("F", "M"))


def test_errors_stay_short(table):
    long = "y" * 500_000
    with pytest.raises(BadData) as caught:
        row(long).whole("x")
    assert len(str(caught.value)) < 200
    many = "\t".join(["c"] * 10_000)
    with pytest.raises(BadData, match="10000 in all") as caught:
        list(plain_rows(table(many), "t.tsv", HEADED))
    assert len(caught.value.problem) < 200


def test_a_row_is_bounded_over_all_its_lines(table, monkeypatch):
    monkeypatch.setattr(rows, "LONGEST_ROW", 100)
    fine = 'a\tb\n1\t"' + "x" * 40 + "\n" + "x" * 40 + '"\n'
    assert len(list(quoted_rows(table(fine * 1), "t.tsv", HEADED))) == 1
    text = fine + '1\t"' + "x\n" * 60 + '"\n'
    with pytest.raises(BadData, match="a row of more than 100 characters") as caught:
        list(quoted_rows(table(text), "t.tsv", HEADED))
    assert caught.value.line == 4
