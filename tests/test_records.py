"""Rows that a notebook, pandas, polars and Arrow take as they are."""

import sys
from dataclasses import dataclass

import pytest

from tacit.errors import MissingExtra
from tacit.records import Records


@dataclass(frozen=True)
class Line:
    id: str
    score: float


ROWS = Records([Line("tea", 0.5), Line("<b>", 0.25)])


def test_rows_are_a_list():
    assert [Line("tea", 0.5), Line("<b>", 0.25)] == ROWS
    assert ROWS.columns == ("id", "score")
    assert ROWS.to_dicts()[0] == {"id": "tea", "score": 0.5}
    assert Records().columns == ()


def test_a_notebook_shows_a_table_without_what_it_would_obey():
    shown = ROWS._repr_html_()
    assert '<th scope="col">id</th>' in shown
    assert '<td>tea</td><td style="text-align:right">0.5000</td>' in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_a_missing_value_is_a_dash():
    shown = Records([{"a": 1}, {"b": None}])._repr_html_()
    assert shown.count("–") == 3


def test_pandas_has_the_same_columns():
    pandas = pytest.importorskip("pandas")
    frame = ROWS.to_pandas()
    assert [*frame.columns] == ["id", "score"]
    assert frame.equals(pandas.DataFrame(ROWS.to_dicts()))
    assert [*Records().to_pandas().columns] == []


def test_arrow_and_polars_have_the_same_rows():
    pytest.importorskip("pyarrow")
    assert ROWS.to_arrow().to_pylist() == ROWS.to_dicts()
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(ROWS).to_dicts() == ROWS.to_dicts()


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("pandas", "pandas", lambda rows: rows.to_pandas()),
        ("pyarrow", "tables", lambda rows: rows.to_arrow()),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, module, extra, call):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(MissingExtra, match=rf"{module} .*\[{extra}\]"):
        call(ROWS)
