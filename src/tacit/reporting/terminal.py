"""Tables and sentences as lines of a given width, in which no word is ever broken.

A table that is too wide gives way in this order: long texts are wrapped at blanks,
columns of figures go below each other, and in the end each row becomes a small block.
Only a single word that is longer than the width stands out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

GAP = "  "
_NARROW = 12  # columns below which a text is not squeezed: a word on every line
_LINES = 4  # a cell with more lines than this is better read in a block of its own

_BLANK = re.compile(r"\s+(?!%)")  # a number and its percent sign stay together

Rows = Sequence[Sequence[str]]


def wrapped(text: str, width: int, *, first: str = "", later: str = "") -> list[str]:
    """The text in lines of at most this width; words stay whole.

    >>> wrapped("a list of words", 8, first="- ", later="  ")
    ['- a list', '  of', '  words']
    """
    lines, line, is_empty = [], first, True
    for word in _BLANK.split(text.strip()):
        longer = f"{line}{word}" if is_empty else f"{line} {word}"
        if not is_empty and cell_len(longer) > width:
            lines.append(line)
            longer = f"{later}{word}"
        line, is_empty = longer, False
    return [*lines, line]


def table_lines(
    header: Sequence[str], rows: Rows, numeric: set[int], width: int
) -> list[str]:
    """The header, a rule and the rows, all within the width."""
    grid = _Grid([header, *rows], numeric)
    if (fitted := grid.fitted(width)) is not None:
        return fitted
    texts = [place for place in range(len(header)) if place not in numeric]
    if texts == [0] and len(header) > 2:
        return [*_side_by_side(grid, width)]
    return [*_blocks(header, rows, width)]


@dataclass(frozen=True)
class _Grid:
    """Cells with their header as the first row."""

    rows: Rows
    numeric: set[int]

    def fitted(self, width: int) -> list[str] | None:
        """The lines if texts can be wrapped to fit without being squeezed."""
        widths = self._widths(width)
        if sum(widths) + len(GAP) * (len(widths) - 1) > width:
            return None
        header, *rows = ([*self._row(row, widths)] for row in self.rows)
        if any(len(row) > _LINES for row in rows):
            return None
        rule = GAP.join("─" * one for one in widths)
        return [*header, rule, *(line for row in rows for line in row)]

    def _widths(self, width: int) -> list[int]:
        """As wide as the content; the widest text gives way, down to its words."""
        columns = [*zip(*self.rows, strict=True)]
        widths = [max(map(cell_len, column)) for column in columns]
        least = [
            own if place in self.numeric else min(own, max(_NARROW, _longest(column)))
            for place, (column, own) in enumerate(zip(columns, widths, strict=True))
        ]
        room = width - len(GAP) * (len(widths) - 1)
        while sum(widths) > room:
            loose = [p for p, w in enumerate(widths) if w > least[p]]
            if not loose:
                return widths
            widths[max(loose, key=lambda place: widths[place])] -= 1
        return widths

    def _row(self, row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
        cells = [wrapped(cell, w) for cell, w in zip(row, widths, strict=True)]
        for at in range(max(map(len, cells))):
            parts = [cell[at] if at < len(cell) else "" for cell in cells]
            yield GAP.join(self._padded(parts, widths)).rstrip()

    def _padded(self, parts: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
        for place, (part, width) in enumerate(zip(parts, widths, strict=True)):
            blank = " " * (width - cell_len(part))
            yield blank + part if place in self.numeric else part + blank

    def only(self, places: Sequence[int]) -> _Grid:
        """The grid of these columns."""
        rows = [[row[place] for place in places] for row in self.rows]
        kept = {at for at, place in enumerate(places) if place in self.numeric}
        return _Grid(rows, kept)


def _side_by_side(grid: _Grid, width: int) -> Iterator[str]:
    """As many columns of figures as fit, then the next ones below, each with names."""
    left = [*range(1, len(grid.rows[0]))]
    while left:
        taken = len(left)
        while taken > 1 and grid.only([0, *left[:taken]]).fitted(width) is None:
            taken -= 1
        part = grid.only([0, *left[:taken]])
        header, *rows = part.rows
        yield from part.fitted(width) or _blocks(header, rows, width)
        left = left[taken:]
        if left:
            yield ""


def _blocks(header: Sequence[str], rows: Rows, width: int) -> Iterator[str]:
    """One block per row: its first cell, then a line for each other one."""
    for row in rows:
        yield from wrapped(row[0] or header[0], width)
        for name, cell in zip(header[1:], row[1:], strict=True):
            first = f"    {name}: " if name else "    "
            yield from wrapped(cell, width, first=first, later="      ")


def _longest(column: Sequence[str]) -> int:
    return max(
        (cell_len(word) for cell in column for word in _BLANK.split(cell)), default=0
    )
