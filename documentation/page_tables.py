"""Figures read from the tables of the pages, so that no figure stands in two places."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


class NotOnPage(Exception):
    """A page has no such table or row: names both, and the rows there are."""


def row(page: str, head: str, label: str) -> list[str]:
    """The cells of the row that begins with `label`, in the table headed `head`.

    `head` is the first cell of the table's head; emphasis does not count.
    """
    for table in _tables((ROOT / page).read_text("utf-8")):
        if table[0][0] == head:
            for line in table[1:]:
                if line[0] == label:
                    return line[1:]
    raise NotOnPage(f"{page} has no row {label!r} in a table headed {head!r}")


def number(cell: str) -> float:
    """The figure that a cell begins with: `.2743 ± .0053` is 0.2743."""
    found = re.match(r"[-+−]?\d*\.?\d+", cell)
    if found is None:
        raise NotOnPage(f"{cell!r} does not begin with a figure")
    return float(found[0].replace("−", "-"))


def _tables(text: str) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    is_inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            is_inside = False
        elif not is_inside:
            found.append([_cells(line)])
            is_inside = True
        elif not set(line) <= {*"|-: "}:
            found[-1].append(_cells(line))
    return found


def _cells(line: str) -> list[str]:
    return [
        cell.strip().replace("**", "") for cell in line.strip().strip("|").split("|")
    ]
