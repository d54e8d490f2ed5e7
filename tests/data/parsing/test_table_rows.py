from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet
import pytest

from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.csv_rows import Layout
from tacit.data.parsing.table_rows import ITEM, VALUE, batches, cells, column_names
from tacit.errors import BadData

MATRIX = "who;Lamp;Chair;Desk\nann;1;0; \nbob;;2.5;0.00\n"


def read(found, user="who") -> list[tuple[str, str, str]]:
    return [
        row
        for batch in found
        for row in zip(*(batch.columns[n] for n in (user, ITEM, VALUE)), strict=True)
    ]


def test_text_and_parquet_are_told_by_their_bytes(tmp_path):
    (tmp_path / "a.parquet").write_text("a,b\n1,2\n")
    pyarrow.parquet.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "b.csv")
    for name in ("a.parquet", "b.csv"):
        assert column_names(tmp_path / name) == ["a", "b"]
        (batch,) = batches(tmp_path / name, ["b"])
        assert batch.columns == {"b": ["2"]}


def test_a_matrix_has_an_event_for_each_cell(tmp_path):
    (tmp_path / "m.csv").write_text(MATRIX)
    found = read(cells(tmp_path / "m.csv", "who"))
    assert found == [("ann", "Lamp", "1"), ("bob", "Chair", "2.5")]


def test_a_matrix_may_have_no_header(tmp_path):
    (tmp_path / "m.csv").write_text("ann,1,0\nbob,0,1\n")
    found = read(cells(tmp_path / "m.csv", "1", Layout(header=False)), "1")
    assert found == [("ann", "2", "1"), ("bob", "3", "1")]


def test_a_line_without_a_user_is_one_bad_line(tmp_path):
    (tmp_path / "m.csv").write_text(MATRIX + ";1;1;1\n")
    with pytest.raises(BadData, match="line 4: column 'who' is blank"):
        read(cells(tmp_path / "m.csv", "who"))
    bad = BadLines()
    assert len(read(cells(tmp_path / "m.csv", "who", bad=bad))) == 2
    assert bad.count == 1
