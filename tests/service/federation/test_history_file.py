"""Files of a user: ids in lines or in a column, slates in a table."""

import pytest

from tacit.data.catalog import Catalog
from tacit.errors import BadData, BadValue
from tacit.service.federation.history import History, Slate, history_of
from tacit.service.federation.history_file import read_ids, read_slates

CATALOG = Catalog.of_ids(["1", "20", "a, b"])


def read_history(file, catalog, **column) -> History:
    return history_of(read_ids(file, **column), catalog)


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("h.txt", "20\n1\na, b\n", "item"),
        ("h.txt", "\ufeff20\r\n\r\n 1 \r\na, b", "item"),
        ("h.csv", 'when,item\n1,20\n2,1\n3,"a, b"\n', "item"),
        ("h.csv", 'film\n20\n1\n"a, b"\n', "film"),
        ("h.TSV", "item\tstars\n20\t5\n1\t4\na, b\t3\n", "item"),
    ],
)
def test_lines_and_tables_are_read_in_their_order(tmp_path, name, text, column):
    file = tmp_path / name
    file.write_text(text, "utf-8", newline="")
    assert read_history(file, CATALOG, column=column) == History(("20", "1", "a, b"))


def test_what_is_no_text_is_refused(tmp_path):
    file = tmp_path / "h"
    file.write_bytes(b"\xff\xfe\n")
    with pytest.raises(BadData, match="no text in UTF-8"):
        read_ids(file)


def test_the_wrong_column_and_a_missing_file_are_named(tmp_path):
    file = tmp_path / "h.csv"
    file.write_text("film\n20\n")
    with pytest.raises(BadValue, match=r"film.*--item"):
        read_history(file, CATALOG)
    with pytest.raises(BadData, match="No such file"):
        read_history(tmp_path / "none", CATALOG)


SLATES = (Slate(("20", "7", "1"), ("7",)), Slate(("a, b",)))


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        (
            "s.csv",
            'impression,item,clicked\n1,20,0\n1,7,1\n2,"a, b",0\n1,1,0\n',
            "item",
        ),
        (
            "s.TSV",
            "clicked\tnews\timpression\n0\t20\tx\n1.0\t7\tx\n0\t1\tx\n0\ta, b\ty\n",
            "news",
        ),
        (
            "s.csv",  # an item that stands twice counts once, and is clicked
            'impression,item,clicked\n1,20,0\n1,7,0\n1,1,0\n1,7,1\n2,"a, b",-1\n',
            "item",
        ),
    ],
)
def test_lines_of_one_impression_are_a_slate(tmp_path, name, text, column):
    file = tmp_path / name
    file.write_text(text, "utf-8", newline="")
    assert read_slates(file, column=column) == SLATES


def test_somebody_may_have_been_shown_nothing(tmp_path):
    file = tmp_path / "s.csv"
    file.write_text("impression,item,clicked\n")
    assert read_slates(file) == ()


@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        ("s.txt", "20\n", BadValue, r"\.csv or \.tsv"),
        ("s.csv", "impression,item\n1,20\n", BadValue, "clicked"),
        ("s.csv", "item,clicked\n20,1\n", BadValue, "impression"),
        ("s.csv", "impression,news,clicked\n1,20,1\n", BadValue, "--item"),
        ("s.csv", "impression,item,clicked\n1,20,yes\n", BadData, "'yes'.*1 says"),
        ("s.csv", "impression,item,clicked\n1,20\n", BadData, "clicked=''"),
        ("s.csv", "impression,item,clicked\n1,,1\n", BadData, "no item"),
        ("s.csv", 'impression,item,clicked\n1,"20,1\n', BadData, "no table"),
    ],
)
def test_a_table_of_another_form_is_refused(tmp_path, name, text, error, said):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(error, match=said):
        read_slates(file)
