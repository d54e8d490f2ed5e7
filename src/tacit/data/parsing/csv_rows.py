"""Lines of a delimited text file in batches of columns, with exact line numbers.

Any encoding and line ends, quoted fields that may span lines, plain, gzip or a zip with
one file. The first line is the header unless the `Layout` says that there is none;
blank lines are skipped. Memory holds one batch, whatever the file unpacks to: rows are
bounded (`limits`).
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, Protocol

from tacit import check
from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.limits import (
    LONGEST_ROW,
    MOST_COLUMNS,
    LineBlocks,
    RowTooLong,
    ZeroByte,
    text_decoder,
)
from tacit.data.parsing.quote import listed, quoted
from tacit.data.parsing.unpacked import unpacked
from tacit.errors import BadData, BadValue

Progress = Callable[[int, int], None]  # bytes read, bytes in all

DELIMITERS = ",;\t|"

_BATCH = 1 << 9  # rows; with more, rows fall out of the processor's cache
_BATCH_BYTES = 1 << 22  # of a batch of long rows, about
_SAMPLE = "user,item\n"  # any encoding of tables has these characters
_STEP = 32  # rows between two looks at how much was read
_BLOCK = 1 << 16  # bytes read at once when a bad line is looked for
_LONGEST_DELIMITER = 8
_STAND_IN = "\x1f"  # for a delimiter of several characters; a separator nobody types
_TOO_LONG = (
    f"a row of more than {LONGEST_ROW:,} characters; "
    "check its line ends and quotation marks"
)


class Rows(Protocol):
    """The rows of a text, and how many lines they have taken so far."""

    @property
    def line_num(self) -> int:
        """How many lines were read."""

    def __iter__(self) -> Iterator[list[str]]: ...

    def __next__(self) -> list[str]: ...


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a table is written as text; the defaults suit most files.

    Without a header the columns are called by number: `"1"` is the first.
    """

    delimiter: str | None = None  # found among , ; tab | where not given
    header: bool = True
    encoding: str = "utf-8"
    escape: str | None = None  # before a quotation mark that is part of a field

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None and not 1 <= len(mark) <= _LONGEST_DELIMITER:
            raise BadValue(
                f"delimiter={mark[:40]!r} must be one to {_LONGEST_DELIMITER} "
                "characters, such as ';' or '::'"
            )
        if mark is not None and set(mark) & {'"', "\n", "\r"}:
            raise BadValue(
                f"delimiter={mark!r} must not hold a quotation mark or a line end, "
                "which mean something else; use a character such as ';'"
            )
        if self.escape is not None and self.escape in ('"', "\n", "\r", mark):
            raise BadValue(
                f"escape={self.escape!r} is a quotation mark, a line end or the "
                "delimiter; use another character, or leave it out if quotation marks "
                "are doubled"
            )
        if self.escape is not None and len(self.escape) != 1:
            raise BadValue(
                f"escape={self.escape[:40]!r} must be one character, such as a "
                "backslash; leave it out if quotation marks are doubled"
            )
        if not _is_encoding(self.encoding):
            raise BadValue(
                f"encoding={self.encoding[:40]!r} is not known; use 'utf-8', 'cp1252' "
                "(Western Windows), 'latin-1' or 'utf-16'"
            )

    @property
    def marks(self) -> list[str]:
        """The delimiters that may separate the columns."""
        return [*DELIMITERS] if self.delimiter is None else [self.delimiter]

    def cut(self, lines: Iterator[str], mark: str, *, strict: bool = True) -> Rows:
        """The rows of these lines; `strict` refuses odd quotation marks."""
        if len(mark) > 1:  # the library takes one character
            lines, mark = _replaced(lines, mark), _STAND_IN
        return csv.reader(lines, delimiter=mark, escapechar=self.escape, strict=strict)


def _replaced(lines: Iterator[str], mark: str) -> Iterator[str]:
    return (line.replace(mark, _STAND_IN) for line in lines)


def _is_encoding(name: str) -> bool:
    try:
        # Refuses what does not make bytes of text, such as rot13, or not of all texts.
        return bool(name) and _SAMPLE.encode(name).decode(name) == _SAMPLE
    except (LookupError, ValueError):
        return False


@dataclass(frozen=True)
class Batch:
    """Some rows of consecutive lines, by column."""

    file: Path
    first_line: int
    rows: Sequence[Sequence[str]]  # as parsed; a blank line is an empty row
    kept: Sequence[int]  # which of the rows are left: none that is blank or bad
    columns: Mapping[str, Sequence[str]]
    bad: BadLines | None = None  # where bad rows are noted; None: they are refused

    @classmethod
    def of(
        cls,
        file: Path,
        first_line: int,
        rows: Sequence[Sequence[str]],
        bad: BadLines | None = None,
    ) -> Batch:
        """All rows that are not blank, of no column yet."""
        kept = [place for place, row in enumerate(rows) if row]
        return cls(file, first_line, rows, kept, {}, bad)

    def refuse(self, row: int, problem: str) -> NoReturn:
        """Raise `BadData` for one of the rows that are left."""
        raise BadData(self.file, self._line(row), problem)

    def without(self, problems: Mapping[int, str]) -> Batch:
        """The batch without some of the rows, which are noted or else refused."""
        if self.bad is None:
            first = min(problems)
            self.refuse(first, problems[first])
        for row in sorted(problems):
            self.bad.note(self._line(row), problems[row])
        left = [row for row in range(len(self.kept)) if row not in problems]
        kept = [self.kept[row] for row in left]
        columns = {n: [c[row] for row in left] for n, c in self.columns.items()}
        return replace(self, kept=kept, columns=columns)

    def picked(self, picks: Mapping[str, int]) -> Batch:
        """The batch with these columns, each by its place in a row."""
        full = [self.rows[k] for k in self.kept]
        columns = {name: [row[k] for row in full] for name, k in picks.items()}
        return replace(self, columns=columns)

    def _line(self, row: int) -> int:
        before = self.rows[: self.kept[row]]
        return self.first_line + sum(map(_height, before))


def batches(
    path: Path,
    wanted: Sequence[str],
    layout: Layout | None = None,
    *,
    bad: BadLines | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """The wanted columns, in batches of consecutive lines.

    Rows of another width than the header, and lines that cannot be cut, are noted in
    `bad`; without it the first of them is refused. `progress` is told how many bytes of
    the file have been read, and how many it has.
    """
    layout = layout or Layout()
    with _explained(path, layout), unpacked(path) as file:
        blocks = LineBlocks(file.stream, path, most=file.most, encoding=layout.encoding)
        lines = itertools.chain.from_iterable(blocks)
        first = _first_line(path, lines)
        header, mark = _header(path, first, wanted, layout)
        picks = {name: header.index(name) for name in wanted}
        if not layout.header:
            lines = itertools.chain([first], lines)
        before = 1 + layout.header  # the header is line 1 and not the reader's
        line, reader, done = before, layout.cut(lines, mark), 0
        while rows := _next_rows(
            reader, blocks, path, line, read_before=before, bad=bad
        ):
            batch = _of_width(Batch.of(path, line, rows, bad), len(header), layout)
            if batch.kept:
                yield batch.picked(picks)
            line = before + reader.line_num
            if progress is not None and file.read_so_far() > done:
                done = file.read_so_far()  # a block has many batches
                progress(done, file.size)


def _first_line(path: Path, lines: Iterator[str]) -> str:
    try:
        line = next(lines, "")
    except RowTooLong:
        raise BadData(path, 1, _TOO_LONG) from None
    if len(line) > LONGEST_ROW:
        raise BadData(path, 1, _TOO_LONG)
    return line


def _next_rows(
    reader: Rows,
    blocks: LineBlocks,
    path: Path,
    line: int,
    *,
    read_before: int,
    bad: BadLines | None,
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
                _refuse_long(Batch.of(path, line, rows))
            size += read
    except csv.Error as error:
        line += sum(map(_height, rows))  # where the row that failed begins
        problem = f"{error}; check its quotation marks"
        # A mark that is never closed takes all lines that follow: never skipped.
        if bad is None or read_before + reader.line_num > line + 1:
            raise BadData(path, line, problem) from None
        bad.note(line, problem)
        rows.append([])  # a blank line in its place: numbers of lines stay right
    except RowTooLong:
        raise BadData(path, line + sum(map(_height, rows)), _TOO_LONG) from None
    return rows


def _refuse_long(batch: Batch) -> None:
    for row, place in enumerate(batch.kept):
        fields = batch.rows[place]
        # Marks between the fields, and the line end.
        if sum(map(len, fields)) + len(fields) > LONGEST_ROW + 1:
            batch.refuse(row, _TOO_LONG)


def _of_width(batch: Batch, width: int, layout: Layout) -> Batch:
    """The batch without rows that have another number of fields."""
    found = [len(batch.rows[place]) for place in batch.kept]
    if set(found) <= {width}:
        return batch
    first = "header" if layout.header else "first line"
    problems = {
        row: f"{fields} fields, the {first} has {width}"
        for row, fields in enumerate(found)
        if fields != width
    }
    return batch.without(problems)


def column_names(path: Path, layout: Layout | None = None) -> list[str]:
    """The names of all columns: by the mark that yields most, the comma first."""
    layout = layout or Layout()
    with _explained(path, layout), unpacked(path) as file:
        blocks = LineBlocks(file.stream, path, most=file.most, encoding=layout.encoding)
        first = _first_line(path, itertools.chain.from_iterable(blocks))
    found = _cuts(path, first, layout)
    header = max((header for header, _ in found), key=len)
    _refuse_many(path, header)
    return header


def _header(
    path: Path, line: str, wanted: Sequence[str], layout: Layout
) -> tuple[list[str], str]:
    """The columns and what separates them: the first mark that yields all wanted.

    Columns without names are numbers, and then it is the mark that yields most.
    """
    found = _cuts(path, line, layout)
    if not layout.header:
        found.sort(key=lambda one: -len(one[0]))  # stable: the comma before others
    for header, mark in found:
        if set(wanted) <= set(header):
            _refuse_many(path, header)
            refuse_twins(path, header, wanted)
            return header, mark
    likely = max((header for header, _ in found), key=len)
    if layout.header:
        problem = missing_columns(wanted, likely)
        if len(likely) == 1 and layout.delimiter is None:
            problem += "; if there are more, name the delimiter between them"
        raise BadData(path, 1, _other_format(line) or problem)
    missing = listed([name for name in wanted if name not in likely])
    problem = (
        f"there is no column {missing}; without a header columns are called 1 to "
        f"{len(likely)}"
    )
    raise BadData(path, 1, problem)


def _other_format(line: str) -> str | None:
    """What a text that is no table seems to be; None if it may be one."""
    start = line.lstrip()[:1]
    if start in ("{", "["):
        return "looks like JSON; write it as CSV or Parquet"
    return "looks like a web page or XML; get the table" if start == "<" else None


def _cuts(path: Path, line: str, layout: Layout) -> list[tuple[list[str], str]]:
    """The columns of the first line by each mark that may separate them."""
    if not line:
        raise BadData(path, None, "is empty; it needs a line for each event")
    if not line.strip():
        raise BadData(path, 1, "is blank; the first line must name the columns")
    return [(_columns(path, line, mark, layout), mark) for mark in layout.marks]


def _columns(path: Path, line: str, mark: str, layout: Layout) -> list[str]:
    try:
        # Not strict: with another mark than its own a sound header may look odd.
        fields: list[str] = next(layout.cut(iter([line]), mark, strict=False))
    except csv.Error as error:
        raise BadData(path, 1, str(error)) from None
    return fields if layout.header else [str(1 + n) for n in range(len(fields))]


def missing_columns(wanted: Sequence[str], header: Sequence[str]) -> str:
    """Which columns are not there, which are, and which was probably meant."""
    missing = [name for name in wanted if name not in header]
    near = [name for one in missing if (name := check.nearest(one, header))]
    are = "is no column" if len(missing) == 1 else "are no columns"
    hint = f"did you mean {' and '.join(map(quoted, near))}? " if near else ""
    told = f"there {are} {listed(missing)}; {hint}"
    return f"{told}the columns are {listed(header)}"


def _refuse_many(path: Path, header: list[str]) -> None:
    if len(header) > MOST_COLUMNS:
        problem = f"{len(header):,} columns; a table may have {MOST_COLUMNS:,}"
        raise BadData(path, 1, problem)


def refuse_twins(path: Path, header: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a table in which two columns have a wanted name."""
    twins = [name for name in wanted if header.count(name) > 1]
    if twins:
        raise BadData(path, 1, f"there are two columns {twins[0]!r}; rename one")


def _height(fields: Sequence[str]) -> int:
    """The number of lines that a row takes, counting ends inside its fields."""
    text = "".join(fields)
    return 1 + text.count("\n") + text.count("\r") - text.count("\r\n")


@contextmanager
def _explained(path: Path, layout: Layout) -> Iterator[None]:
    """Say what is wrong with bytes that cannot be decoded."""
    try:
        yield
    except BadData:
        raise
    except (UnicodeError, ZeroByte) as error:
        raise BadData(path, *_first_odd_line(path, layout)) from error


def _first_odd_line(path: Path, layout: Layout) -> tuple[int, str]:
    """The first line with a zero or with bytes of another encoding, and which."""
    decoder = io.IncrementalNewlineDecoder(text_decoder(layout.encoding), True)
    line, text, is_odd = 1, "", False
    with unpacked(path) as file:
        raw = file.stream
        while not is_odd and "\0" not in text and (block := raw.read(_BLOCK)):
            line += text.count("\n")
            text, is_odd = _decoded(decoder, block, layout.encoding)
    line += text.partition("\0")[0].count("\n")
    if "\0" in text:
        return line, "holds a zero byte; save the table as UTF-8 text"
    likely = "'utf-16'" if _is_utf16(path) else "'cp1252' (Western Windows)"
    name = layout.encoding.upper()
    return line, (
        f"is not {name}; save the table as UTF-8, or name its encoding, such as "
        f"{likely}"
    )


def _is_utf16(path: Path) -> bool:
    with unpacked(path) as file:
        return file.stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _decoded(
    decoder: io.IncrementalNewlineDecoder, block: bytes, encoding: str
) -> tuple[str, bool]:
    """The text of a block, and whether it ends before bytes of another encoding."""
    try:
        return decoder.decode(block), False
    except UnicodeDecodeError as error:
        before = bytes(error.object[: error.start]).decode(encoding, errors="ignore")
        return io.IncrementalNewlineDecoder(None, translate=True).decode(before), True
    except UnicodeError:  # the first bytes are not those of this encoding
        return "", True
