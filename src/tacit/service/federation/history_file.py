"""A user's history as a file: one item id per line, or a table with a column of ids.

A file whose name ends in .csv or .tsv is a table with a header; any other has an id on
each line. Items come in the order in which the user met them. Those that the catalog
does not have are left out and counted: who has an old item is no worse off than who
never met it.

A file is read before anybody is asked for a catalog, and one without any known item is
a history of nobody: what a coordinator sees does not depend on the file. It is probably
the wrong one all the same, and `said_of_unknown` says so to its owner.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
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
_EMPTY = (
    "this client takes part with an empty history, which nobody else can see. If it is "
    "the wrong file or column, leave before the first round and join in another folder"
)


@dataclass(frozen=True)
class History:
    """The items that a catalog has, in their order, and the others, each once."""

    items: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    def said_of_unknown(self) -> str:
        """How many items were left out, and the first of them; empty if none was."""
        if not self.unknown:
            return "" if self.items else f"the file has no item: {_EMPTY}"
        first = ", ".join(self.unknown[:_NAMED])
        more = ", …" if len(self.unknown) > _NAMED else ""
        noun = "item is" if len(self.unknown) == 1 else "items are"
        said = (
            f"{len(self.unknown):,} {noun} not in the catalog and left out: "
            f"{first}{more}"
        )
        return said if self.items else f"{said}. None is left: {_EMPTY}"


def read_ids(path: Path, *, column: str = COLUMN) -> tuple[str, ...]:
    """The ids in a file, in their order; refuses one that cannot be read."""
    found = (text.strip() for text in _lines(path, column))
    return tuple(one for one in found if one)


def history_of(ids: Sequence[str], catalog: Catalog) -> History:
    """The history of these ids, over the items of a catalog."""
    known = catalog.ids.positions
    unknown = tuple(dict.fromkeys(one for one in ids if one not in known))
    return History(tuple(one for one in ids if one in known), unknown)


def _lines(path: Path, column: str) -> list[str]:
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
