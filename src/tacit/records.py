"""Results as a list: rows in Python, a table in a notebook, a DataFrame if wanted.

    rows = recommender.recommend(["tea"])    # a list, as any other
    pandas.DataFrame(rows)                   # pandas and polars take it as it is
    polars.DataFrame(rows)
    rows.to_pandas(), rows.to_arrow()

Nothing but a list needs another package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import MissingExtra
from tacit.text import in_html

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row = TypeVar("Row")

_MISSING = "–"  # what a table shows where a row has no value


class Records(list[Row]):
    """A list of rows, each a dataclass or a mapping from column to value."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in the order in which rows first have them."""
        return tuple(dict.fromkeys(name for row in self.to_dicts() for name in row))

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as plain dictionaries, one per row."""
        return [_plain(row) for row in self]

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame; needs pandas (extra `pandas`)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtra("pandas", "pandas") from error
        return pd.DataFrame(self.to_dicts(), columns=[*self.columns])

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; needs pyarrow (extra `tables`)."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise MissingExtra("pyarrow", "tables") from error
        dicts = self.to_dicts()
        return pa.table({n: [row.get(n) for row in dicts] for n in self.columns})

    def _repr_html_(self) -> str:
        """The rows as a table, which a notebook shows instead of the text."""
        columns = self.columns
        head = "".join(f'<th scope="col">{in_html(name)}</th>' for name in columns)
        body = "".join(
            f"<tr>{''.join(_cell(row.get(name)) for name in columns)}</tr>\n"
            for row in self.to_dicts()
        )
        return (
            f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n"
            "</table>\n"
        )


def _plain(row: object) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return dict(row)
    assert dataclasses.is_dataclass(row)
    assert not isinstance(row, type)
    # Not `asdict`, which would copy whatever a field holds.
    return {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}


def _cell(value: object) -> str:
    if value is None:
        return f"<td>{_MISSING}</td>"
    if isinstance(value, float):
        return f'<td style="text-align:right">{value:.4f}</td>'
    return f"<td>{in_html(str(value))}</td>"
