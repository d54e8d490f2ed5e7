"""Histories from files: lines or a column; what the catalog lacks is counted."""

import re

import pytest

from tacit.data.catalog import Catalog
from tacit.errors import BadData, BadValue
from tacit.service.federation.history_file import History, history_of, read_ids

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


def test_what_the_catalog_lacks_is_left_out_and_named(tmp_path):
    file = tmp_path / "h"
    file.write_text("7\n20\n8\n7\n9\n10\n")
    found = read_history(file, CATALOG)
    assert found == History(("20",), ("7", "8", "9", "10"))
    assert found.said_of_unknown() == (
        "4 items are not in the catalog and left out: 7, 8, 9, …"
    )
    assert History(("20",)).said_of_unknown() == ""
    assert "1 item is" in History((), ("7",)).said_of_unknown()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file has no item: this client takes part with an empty history"),
        (b"\n \n", "the file has no item"),
        (
            b"x\ny\n",
            r"2 items are not in the catalog.*x, y\. None is left: this client",
        ),
    ],
)
def test_what_has_no_known_item_is_an_empty_history_and_said(tmp_path, content, said):
    """A refusal would tell whoever was asked for the catalog something of the file."""
    file = tmp_path / "h"
    file.write_bytes(content)
    found = read_history(file, CATALOG)
    assert found.items == ()
    assert re.search(said, found.said_of_unknown())


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
