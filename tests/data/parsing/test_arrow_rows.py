from __future__ import annotations

import sys
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tacit.data.parsing import arrow_rows
from tacit.data.parsing.arrow_rows import batches, column_names
from tacit.errors import BadData, MissingExtra

TABLE = pa.table(
    {
        "text": ["a", None, "ü"],
        "whole": [1, 2, None],
        "real": [1.5, float("nan"), 12.0],
        "time": [datetime(2020, 9, 13, 12, 26, 40, tzinfo=UTC)] * 3,
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
    }
)


def written(place, table=TABLE, *, kind="parquet"):
    path = place / f"t.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, path, compression="uncompressed")
    return path


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_columns_are_texts_as_a_csv_would_have_them(tmp_path, kind):
    path = written(tmp_path, kind=kind)
    assert column_names(path) == TABLE.column_names
    (batch,) = batches(path, TABLE.column_names)
    assert batch.columns["text"] == ["a", "", "ü"]
    assert batch.columns["whole"] == ["1", "2", ""]
    assert batch.columns["real"] == ["1.5", "", "12"]
    assert batch.columns["time"][0].startswith("2020-09-13 12:26:40")
    assert batch.columns["kind"] == ["x", "y", "x"]


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_rows_count_from_one_over_all_batches(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(arrow_rows, "_BATCH", 2)
    told = []
    path = written(tmp_path, kind=kind)
    found = [*batches(path, ["text"], progress=lambda *at: told.append(at))]
    assert [batch.first_line for batch in found] == [1, 3]
    assert told == [(2, 3), (3, 3)]
    with pytest.raises(BadData) as caught:
        found[1].refuse(0, "is odd")
    assert caught.value.line == 3


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_a_wrong_column_gets_one_suggestion(tmp_path, kind):
    with pytest.raises(BadData, match=r"did you mean 'text'. the columns are 'text'"):
        [*batches(written(tmp_path, kind=kind), ["Text"])]


def test_twins_and_nested_columns_are_refused(tmp_path):
    twins = pa.table([[1], [2]], names=["a", "a"])
    with pytest.raises(BadData, match="two columns 'a'"):
        [*batches(written(tmp_path, twins, kind="feather"), ["a"])]
    nested = pa.table({"a": [[1, 2]]})
    with pytest.raises(BadData, match="column 'a' is list"):
        [*batches(written(tmp_path, nested), ["a"])]


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_damage_is_one_sentence(tmp_path, kind):
    path = written(tmp_path, kind=kind)
    whole = path.read_bytes()
    for end in (4, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(BadData, match="is not a sound table"):
            [*batches(path, ["text"])]


def test_the_extra_is_named_where_it_is_missing(tmp_path, monkeypatch):
    path = written(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"\[tables\]"):
        [*batches(path, ["text"])]
