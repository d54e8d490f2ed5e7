"""A user's history and what the user was shown, as files.

    history       one item id per line, or a table with a column of ids
    impressions   a table with one line per item that was shown:
                  impression   lines with the same entry are one slate
                  item         the id of the item
                  clicked      a number; above zero if the item was clicked

A file whose name ends in .csv or .tsv is a table with a header. Items come in the order
in which the user met them, and so do slates.

Files are read before anybody is asked for a catalog: what a coordinator sees does not
depend on them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path

from tacit import check
from tacit.errors import BadData, BadValue
from tacit.service.federation.history import Slate

COLUMN = "item"
IMPRESSION, CLICKED = "impression", "clicked"
MOST_BYTES = 1 << 26
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def read_ids(path: Path, *, column: str = COLUMN) -> tuple[str, ...]:
    """The ids in a file, in their order; refuses one that cannot be read."""
    text = _text(path)
    found: Iterable[str] = text.split("\n")
    if path.suffix.lower() in _SEPARATORS:
        found = (item for _, (item,) in _rows(path, text, (column,)))
    return tuple(one for each in found if (one := each.strip()))


def read_slates(path: Path, *, column: str = COLUMN) -> tuple[Slate, ...]:
    """The slates in a table, in the order of their first lines.

    An item that stands twice in a slate counts once, and as clicked if one of its lines
    does.
    """
    if path.suffix.lower() not in _SEPARATORS:
        raise BadValue(
            f"{path}: impressions are a table; its name must end in .csv or .tsv"
        )
    shown: dict[str, dict[str, bool]] = {}
    for line, row in _rows(path, _text(path), (IMPRESSION, column, CLICKED)):
        slate, item, clicked = (entry.strip() for entry in row)
        if not slate or not item:
            raise BadData(path, line, "has no impression or no item")
        items = shown.setdefault(slate, {})
        items[item] = _is_click(path, line, clicked) or items.get(item, False)
    return tuple(
        Slate(tuple(items), tuple(one for one, clicked in items.items() if clicked))
        for items in shown.values()
    )


def _is_click(path: Path, line: int, text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        said = f"{CLICKED}={text!r:.40} is no number; 1 says clicked, 0 not clicked"
        raise BadData(path, line, said) from None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadData(path, None, f"it has more than {MOST_BYTES:,} bytes")
        return path.read_text("utf-8-sig")
    except OSError as error:
        said = f"cannot be read: {error.strerror or error}"
        raise BadData(path, None, said) from error
    except UnicodeDecodeError as error:
        raise BadData(path, None, f"is no text in UTF-8: {error}") from error


def _rows(
    path: Path, text: str, columns: Sequence[str]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The line and the entries in these columns, row by row."""
    separator = _SEPARATORS[path.suffix.lower()]
    rows = csv.DictReader(StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for column in columns:
            if column not in (rows.fieldnames or ()):
                named = check.unknown(column, rows.fieldnames or ())
                flag = (
                    "" if column in (IMPRESSION, CLICKED) else "; name it with --item"
                )
                raise BadValue(f"{path}: column {named}{flag}")
        for row in rows:
            yield rows.line_num, tuple(row[column] or "" for column in columns)
    except csv.Error as error:
        raise BadData(path, rows.line_num, f"is no table: {error}") from error
