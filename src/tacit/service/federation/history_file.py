"""A user's history as a file: one item id per line, or a table with a column of ids.

A file whose name ends in .csv or .tsv is a table with a header; any other has an id on
each line. Items come in the order in which the user met them. Those that the catalog
does not have are left out and counted: who has an old item is no worse off than who
never met it. A file without any known item is refused, since it is probably the wrong
one.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from tacit import check
from tacit.data.catalog import Catalog
from tacit.errors import BadData, BadValue

COLUMN = "item"
MOST_BYTES = 1 << 26
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_NAMED = 3  # unknown items that a message names


@dataclass(frozen=True)
class History:
    """The items that a catalog has, in their order, and the others, each once."""

    items: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    def said_of_unknown(self) -> str:
        """How many items were left out, and the first of them; empty if none was."""
        if not self.unknown:
            return ""
        first = ", ".join(self.unknown[:_NAMED])
        more = ", …" if len(self.unknown) > _NAMED else ""
        noun = "item is" if len(self.unknown) == 1 else "items are"
        return (
            f"{len(self.unknown):,} {noun} not in the catalog and left out: "
            f"{first}{more}"
        )


def read_history(path: Path, catalog: Catalog, *, column: str = COLUMN) -> History:
    """The history in a file, over the items of this catalog."""
    ids = [one for one in (text.strip() for text in _ids(path, column)) if one]
    known = catalog.ids.positions
    unknown = tuple(dict.fromkeys(one for one in ids if one not in known))
    items = tuple(one for one in ids if one in known)
    if not items:
        said = "it has no item" if not ids else f"item {check.unknown(ids[0], known)}"
        raise BadData(
            path,
            None,
            f"{said}; none of its {len(ids)} lines names an item of the catalog",
        )
    return History(items, unknown)


def _ids(path: Path, column: str) -> list[str]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadData(path, None, f"it has more than {MOST_BYTES:,} bytes")
        text = path.read_text("utf-8-sig")
    except OSError as error:
        said = f"cannot be read: {error.strerror or error}"
        raise BadData(path, None, said) from error
    except UnicodeDecodeError as error:
        raise BadData(path, None, f"is no text in UTF-8: {error}") from error
    separator = _SEPARATORS.get(path.suffix.lower())
    if separator is None:
        return text.split("\n")
    rows = csv.DictReader(StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        if column not in (rows.fieldnames or ()):
            named = check.unknown(column, rows.fieldnames or ())
            raise BadValue(f"{path}: column {named}; name it with --item")
        return [row[column] or "" for row in rows]
    except csv.Error as error:
        raise BadData(path, rows.line_num, f"is no table: {error}") from error
