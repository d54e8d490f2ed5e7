from __future__ import annotations

import pytest

from tacit.errors import BadData, BadValue
from tacit.reproduction.published import Published

TEXT = """
[table-1]
where = "Table 1, page 4"
[table-1.values]
"plain" = 0.5
"deep" = { "hr@2" = 0.25, "hr@5" = 1 }
"""


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "published.toml"
    path.write_text(TEXT)
    return Published.read(path)


def test_numbers_by_their_labels(published):
    table = published["table-1"]
    assert table.where == "Table 1, page 4"
    assert table.value("plain") == 0.5
    assert table.value("deep", "hr@5") == 1.0
    assert table.numbers() == [0.5, 0.25, 1.0]


def test_what_is_not_printed_is_none(published):
    assert published["table-1"].value("deep", "hr@10") is None
    assert published["table-1"].value("other") is None


def test_a_label_that_stops_too_early_or_too_late_is_refused(published):
    with pytest.raises(BadValue, match="hr@2, hr@5"):
        published["table-1"].value("deep")
    with pytest.raises(BadValue, match="before 'hr@2'"):
        published["table-1"].value("plain", "hr@2")


def test_an_unknown_table_names_the_known(published):
    with pytest.raises(BadValue, match="table-1"):
        published["table-2"]


def test_a_table_must_say_where_it_stands(tmp_path):
    path = tmp_path / "published.toml"
    path.write_text("[table-1]\nvalues = { a = 1 }\n")
    with pytest.raises(BadData, match=r"table-1.*where"):
        Published.read(path)
