"""Rows of a Parquet or Arrow (Feather) file in batches of columns of text.

Numbers, dates and times become the text that a CSV file would have, a missing value is
blank, and rows count from 1. Columns that are not asked for are not read. Needs pyarrow
(extra `tables`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.csv_rows import Batch, Progress, missing_columns, refuse_twins
from tacit.data.parsing.quote import quoted
from tacit.errors import BadData, MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET, ARROW = b"PAR1", b"ARRO"  # the first bytes; Arrow's go on with W1
_BATCH = 1 << 14  # rows; some megabytes of text
_FAILURES = (
    *(OSError, ValueError, ArithmeticError, TypeError, KeyError),
    NotImplementedError,  # columns of a kind that cannot become text
)
_ROW = ("",)  # stands for a row on one line: numbers of rows are counted by it


def batches(
    path: Path,
    wanted: Sequence[str],
    *,
    bad: BadLines | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """The wanted columns as text, in batches of consecutive rows.

    `progress` is told how many rows have been read, and how many there are.
    """
    done = 0
    with _explained(path):
        for total, columns in _read(path, wanted):
            n = len(columns[wanted[0]])
            yield Batch(path, done + 1, [_ROW] * n, range(n), columns, bad)
            done += n
            if progress is not None:
                progress(done, total)


def _read(
    path: Path, wanted: Sequence[str]
) -> Iterator[tuple[int, dict[str, list[str]]]]:
    """The number of all rows, and the columns of some of them."""
    for total, batch in _record_batches(path, wanted):
        for start in range(0, batch.num_rows, _BATCH):
            some = batch.slice(start, _BATCH)
            yield total, {name: _texts(path, name, some[name]) for name in wanted}


def _record_batches(
    path: Path, wanted: Sequence[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    pa = arrow()
    if _is_parquet(path):
        with pa.parquet.ParquetFile(path) as parquet:
            _check_columns(path, wanted, parquet.schema_arrow.names)
            total = parquet.metadata.num_rows
            for batch in parquet.iter_batches(_BATCH, columns=[*wanted]):
                yield total, batch
        return
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as reader:
        _check_columns(path, wanted, reader.schema.names)
        batches = [reader.get_batch(n) for n in range(reader.num_record_batches)]
        total = sum(batch.num_rows for batch in batches)  # mapped: nothing is read yet
        for batch in batches:
            yield total, batch


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == PARQUET


def arrow() -> Any:
    """The package pyarrow; refuses with the name of the extra if it is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("pyarrow, which reads this table", "tables") from error
    return pyarrow


def column_names(path: Path) -> list[str]:
    """The names of all columns, in the order of the file."""
    pa = arrow()
    with _explained(path):
        if _is_parquet(path):
            return [*pa.parquet.read_schema(path).names]
        with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as reader:
            return [*reader.schema.names]


def _check_columns(path: Path, wanted: Sequence[str], names: Sequence[str]) -> None:
    if not set(wanted) <= {*names}:
        raise BadData(path, None, missing_columns(wanted, names))
    refuse_twins(path, names, wanted)


def _texts(path: Path, name: str, column: pa.Array) -> list[str]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        # Each label becomes text once; those of polars have no decoding of their own.
        labels = pa.array(_texts(path, name, column.dictionary), pa.string())
        column, kind = labels.take(column.indices), pa.string()
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        problem = f"column {quoted(name)} is {kind}; needed are texts or numbers"
        raise BadData(path, None, problem)
    if pa.types.is_floating(kind):  # whole numbers as such: 12.0 is the id 12
        return [_number(value) for value in column.to_pylist()]
    texts: list[str] = column.cast(pa.string()).fill_null("").to_pylist()
    return texts


def _number(value: float | None) -> str:
    if value is None or value != value:  # NaN is how pandas writes a missing number
        return ""
    return str(int(value)) if value.is_integer() else repr(value)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say that a file is damaged, whatever the library calls it."""
    try:
        yield
    except (BadData, MissingExtra, MemoryError):
        raise
    except _FAILURES as error:
        # Errors of pyarrow are subclasses of these.
        problem = f"is not a sound table ({quoted(str(error))}); write it again"
        raise BadData(path, None, problem) from error
