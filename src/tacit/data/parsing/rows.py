"""Rows of a text table in a release, and fields that must be what they claim to be.

A table is cut at every separator, or it is quoted CSV. What is not exactly the layout,
and every field that is refused, is named with its file and line.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.limits import LONGEST_ROW
from tacit.data.parsing.number_tables import MOST_DIGITS, Layout
from tacit.data.parsing.quote import listed, quoted
from tacit.errors import BadData

# Stricter than `float`, which takes "1_000", "nan", "1e9" and blanks.
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of one row by column; `line` is where it begins."""

    file: str
    line: int
    fields: dict[str, str]

    def __getitem__(self, column: str) -> str:
        return self.fields[column]

    def whole(self, column: str) -> int:
        """The field as a whole number, written without sign or blanks."""
        text = self.fields[column]
        if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
            self.refuse(column, "a whole number >= 0")
        return int(text)

    def decimal(self, column: str, *, most: float = math.inf) -> float:
        """The field as a number such as 3 or 4.25, without sign or exponent."""
        text = self.fields[column]
        is_number = len(text) <= MOST_DIGITS and _DECIMAL.fullmatch(text)
        if not is_number or float(text) > most:
            bound = "" if math.isinf(most) else f" and <= {most:g}"
            self.refuse(column, f"a number >= 0{bound}")
        return float(text)

    def one_of(self, column: str, allowed: Collection[str]) -> str:
        """The field, which must be one of the allowed texts."""
        text = self.fields[column]
        if text not in allowed:
            self.refuse(column, f"one of {', '.join(allowed)}")
        return text

    def refuse(self, column: str, expected: str) -> NoReturn:
        """Raise `BadData`: the field is not what is expected."""
        problem = f"{column}={quoted(self.fields[column])} must be {expected}"
        raise BadData(self.file, self.line, problem)


def plain_rows(
    members: Members, name: str, layout: Layout, *, encoding: str = "utf-8"
) -> Iterator[Row]:
    """Lines cut at every separator; quotation marks mean nothing."""
    file = members.label(name)
    for line, text in members.lines(name, encoding=encoding):
        yield from _row(file, line, text.split(layout.separator), layout)


def quoted_rows(
    members: Members, name: str, layout: Layout, *, encoding: str = "utf-8-sig"
) -> Iterator[Row]:
    """Rows of CSV; a field in quotation marks may hold separators and line ends."""
    file, line, size = members.label(name), 1, 0

    def lines() -> Iterator[str]:
        nonlocal size
        for _, text in members.lines(name, encoding=encoding):
            size += len(text) + 1  # since the row began; an open quote runs on and on
            if size > LONGEST_ROW:
                problem = f"a row of more than {LONGEST_ROW:,} characters"
                raise BadData(file, line, f"{problem}; check its quotation marks")
            yield f"{text}\n"

    reader = csv.reader(lines(), delimiter=layout.separator, strict=True)
    try:
        for fields in reader:
            size = 0
            yield from _row(file, line, fields, layout)
            line = reader.line_num + 1
    except csv.Error as error:
        raise BadData(file, line, f"{error}; check its quotation marks") from None


def _row(
    file: str, line: int, fields: Sequence[str], layout: Layout
) -> tuple[Row, ...]:
    """The row, or nothing if it is the header."""
    is_header = layout.header and line == 1
    if is_header and tuple(fields) != layout.columns:
        problem = f"header {listed(fields)} must be {listed(layout.columns)}"
        raise BadData(file, line, problem)
    if len(fields) != len(layout.columns):
        mark, width = layout.separator, len(layout.columns)
        problem = f"{len(fields)} fields separated by {mark!r}, expected {width}"
        raise BadData(file, line, problem)
    if is_header:
        return ()
    return (Row(file, line, dict(zip(layout.columns, fields, strict=True))),)
