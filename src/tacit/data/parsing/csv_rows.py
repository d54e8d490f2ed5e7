"""Lines of a delimited text file in batches of columns, with exact line numbers.

UTF-8 with or without a byte order mark, any line ends, quoted fields that may span
lines, plain or gzip. The first line is the header; blank lines are skipped. Memory
holds one batch, whatever the file unpacks to: rows are bounded (`limits`).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tacit.data.parsing.limits import (
    LONGEST_ROW,
    MOST_COLUMNS,
    LineBlocks,
    RowTooLong,
    ZeroByte,
    most_unpacked,
)
from tacit.data.parsing.quote import listed
from tacit.errors import BadData

DELIMITERS = ",;\t|"

_BATCH = 1 << 9  # rows; with more, rows fall out of the processor's cache
_BATCH_BYTES = 1 << 22  # of a batch of long rows, about
_STEP = 32  # rows between two looks at how much was read
_BLOCK = 1 << 16  # bytes read at once when a bad line is looked for
_GZIP = b"\x1f\x8b"
_TOO_LONG = (
    f"a row of more than {LONGEST_ROW:,} characters; "
    "check its line ends and quotation marks"
)


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
    """The wanted columns, in batches of consecutive lines."""
    with _explained(path), _opened(path) as blocks:
        lines = itertools.chain.from_iterable(blocks)
        header, mark = _header(path, _first_line(path, lines), wanted, delimiter)
        picks = {name: header.index(name) for name in wanted}
        line = 2
        reader = csv.reader(lines, delimiter=mark, strict=True)
        while rows := _next_rows(reader, blocks, path, line):
            batch = Batch(path, line, rows, {})
            full = [row for row in rows if row]  # blank lines count for numbers only
            _check_widths(batch, full, len(header))
            if full:
                columns = {n: [row[k] for row in full] for n, k in picks.items()}
                yield Batch(path, line, rows, columns)
            line = 2 + reader.line_num  # the header is line 1 and not the reader's


def _first_line(path: Path, lines: Iterator[str]) -> str:
    try:
        line = next(lines, "")
    except RowTooLong:
        raise BadData(path, 1, _TOO_LONG) from None
    if len(line) > LONGEST_ROW:
        raise BadData(path, 1, _TOO_LONG)
    return line


def _next_rows(
    reader: Iterator[list[str]], blocks: LineBlocks, path: Path, line: int
) -> list[list[str]]:
    """The next rows of a batch, fewer where they are long; none at the end."""
    rows: list[list[str]] = []
    size = 0
    try:
        while len(rows) < _BATCH and size < _BATCH_BYTES:
            blocks.allowed = _STEP * LONGEST_ROW
            before = len(rows)
            rows.extend(itertools.islice(reader, _STEP))
            if len(rows) == before:
                break
            read = _STEP * LONGEST_ROW - blocks.allowed
            if read > LONGEST_ROW // 2:  # the rest may have been read before
                _refuse_long(Batch(path, line, rows, {}))
            size += read
    except csv.Error as error:
        line += sum(map(_height, rows))  # where the row that failed begins
        raise BadData(path, line, f"{error}; check its quotation marks") from None
    except RowTooLong:
        raise BadData(path, line + sum(map(_height, rows)), _TOO_LONG) from None
    return rows


def _refuse_long(batch: Batch) -> None:
    full = [row for row in batch.rows if row]
    for number, row in enumerate(full):
        if sum(map(len, row)) + len(row) > LONGEST_ROW + 1:  # marks between, line end
            batch.refuse(number, _TOO_LONG)


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
    for header, mark in found:  # in the order of DELIMITERS: the comma first
        if set(wanted) <= set(header):
            _refuse_many(path, header)
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


def _refuse_many(path: Path, header: list[str]) -> None:
    if len(header) > MOST_COLUMNS:
        problem = f"{len(header):,} columns; a table may have {MOST_COLUMNS:,}"
        raise BadData(path, 1, problem)


def _refuse_twins(path: Path, header: list[str], wanted: Sequence[str]) -> None:
    twins = [name for name in wanted if header.count(name) > 1]
    if twins:
        raise BadData(path, 1, f"there are two columns {twins[0]!r}; rename one")


def _height(fields: Sequence[str]) -> int:
    """The number of lines that a row takes, counting ends inside its fields."""
    text = "".join(fields)
    return 1 + text.count("\n") + text.count("\r") - text.count("\r\n")


@contextmanager
def _opened(path: Path) -> Iterator[LineBlocks]:
    with path.open("rb") as file:
        if file.peek(2)[:2] != _GZIP:  # by content: a name may say anything
            yield LineBlocks(file, path, most=None)
            return
        most = most_unpacked(os.fstat(file.fileno()).st_size)
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield LineBlocks(unpacked, path, most=most)  # type: ignore[arg-type]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what is wrong with bytes that cannot be unpacked or decoded."""
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadData(path, None, f"is not a sound gzip file ({error})") from error
    except (UnicodeDecodeError, ZeroByte) as error:
        raise BadData(path, *_first_odd_line(path)) from error


def _first_odd_line(path: Path) -> tuple[int, str]:
    """The first line with a zero byte or other bytes than UTF-8, and which it has."""
    decoder = io.IncrementalNewlineDecoder(
        codecs.getincrementaldecoder("utf-8")(), translate=True
    )
    line, text, is_odd = 1, "", False
    with path.open("rb") as file:
        is_packed = file.peek(2)[:2] == _GZIP
        raw = gzip.GzipFile(fileobj=file) if is_packed else file
        while not is_odd and "\0" not in text and (block := raw.read(_BLOCK)):
            line += text.count("\n")
            text, is_odd = _decoded(decoder, block)
    line += text.partition("\0")[0].count("\n")
    if "\0" in text:
        return line, "holds a zero byte; save the table as UTF-8 text"
    return line, "is not UTF-8; save the table as UTF-8"


def _decoded(decoder: io.IncrementalNewlineDecoder, block: bytes) -> tuple[str, bool]:
    """The text of a block, and whether it ends before something that is not UTF-8."""
    try:
        return decoder.decode(block), False
    except UnicodeDecodeError as error:
        before = bytes(error.object[: error.start]).decode()
        return io.IncrementalNewlineDecoder(None, translate=True).decode(before), True
