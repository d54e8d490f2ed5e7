"""Lines of a delimited text file in batches of columns, with exact line numbers.

UTF-8 with or without a byte order mark, any line ends, quoted fields that may span
lines, plain or gzip. The first line is the header; blank lines are skipped.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from tacit.data.sources.quote import listed
from tacit.errors import BadData

DELIMITERS = ",;\t|"

_BATCH = 1 << 9  # lines; with more, rows fall out of the processor's cache
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows, by column."""

    file: Path
    first_line: int
    rows: Sequence[Sequence[str]]  # as parsed; a blank line is an empty row
    columns: Mapping[str, Sequence[str]]

    def refuse(self, row: int, problem: str) -> NoReturn:
        """Raise `BadData` for one of the rows that are not blank."""
        raise BadData(self.file, self._line(row), problem)

    def _line(self, row: int) -> int:
        line = self.first_line
        for fields in self.rows:
            if fields and row == 0:
                break
            row -= bool(fields)
            line += _height(fields)
        return line


def batches(
    path: Path, wanted: Sequence[str], delimiter: str | None
) -> Iterator[Batch]:
    """The wanted columns, a batch of lines at a time."""
    with _explained(path), _opened(path) as text:
        header, mark = _header(path, text.readline(), wanted, delimiter)
        picks = {name: header.index(name) for name in wanted}
        line = 2
        reader = csv.reader(text, delimiter=mark, strict=True)
        while rows := _next_rows(reader, path, line):
            batch = Batch(path, line, rows, {})
            full = [row for row in rows if row]
            _check_widths(batch, full, len(header))
            if full:
                columns = {n: [row[k] for row in full] for n, k in picks.items()}
                yield Batch(path, line, rows, columns)
            line = 2 + reader.line_num


def _next_rows(reader: Iterator[list[str]], path: Path, line: int) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        rows.extend(itertools.islice(reader, _BATCH))
    except csv.Error as error:
        line += sum(map(_height, rows))  # where the row that failed begins
        raise BadData(path, line, f"{error}; check its quotation marks") from None
    return rows


def _check_widths(batch: Batch, rows: list[list[str]], width: int) -> None:
    if set(map(len, rows)) <= {width}:
        return
    row = next(i for i, fields in enumerate(rows) if len(fields) != width)
    batch.refuse(row, f"{len(rows[row])} fields, the header has {width}")


def _header(
    path: Path, line: str, wanted: Sequence[str], delimiter: str | None
) -> tuple[list[str], str]:
    """The columns and what separates them: the first mark that yields all wanted."""
    if not line.strip():
        raise BadData(path, 1, "is blank; the first line must name the columns")
    found = [(_cut(path, line, mark), mark) for mark in delimiter or DELIMITERS]
    for header, mark in found:
        if set(wanted) <= set(header):
            _refuse_twins(path, header, wanted)
            return header, mark
    likely = max((header for header, _ in found), key=len)
    missing = listed([name for name in wanted if name not in likely])
    problem = f"there is no column {missing}; the columns are {listed(likely)}"
    raise BadData(path, 1, problem)


def _cut(path: Path, line: str, mark: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=mark))
    except csv.Error as error:
        raise BadData(path, 1, str(error)) from None


def _refuse_twins(path: Path, header: list[str], wanted: Sequence[str]) -> None:
    twins = [name for name in wanted if header.count(name) > 1]
    if twins:
        raise BadData(path, 1, f"there are two columns {twins[0]!r}; rename one")


def _height(fields: Sequence[str]) -> int:
    """How many lines a row takes."""
    text = "".join(fields)
    return 1 + text.count("\n") + text.count("\r") - text.count("\r\n")


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    with _binary(path) as raw:
        yield io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")


@contextmanager
def _binary(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as file:
        is_packed = file.peek(2)[:2] == _GZIP
        yield gzip.GzipFile(fileobj=file) if is_packed else file  # type: ignore[misc]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what is wrong with bytes that cannot be unpacked or decoded."""
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadData(path, None, f"is not a sound gzip file ({error})") from error
    except UnicodeDecodeError as error:
        problem = "is not UTF-8; save the table as UTF-8"
        raise BadData(path, _first_undecodable(path), problem) from error


def _first_undecodable(path: Path) -> int | None:
    with _binary(path) as raw:
        for number, line in enumerate(raw, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None
