"""The public list of items that came after a run's catalog, as everybody fetches it.

It is JSON, the same for everybody: id, title, and the labels of the features by which
the method knows items that are alike. The operator writes a table with the columns of
`[data.table.items]`, and may replace it at any time: no round and no budget is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from tacit.data.sources.listed_tables import ItemsTable
from tacit.errors import BadMessage, Refused
from tacit.experiment.settings import Experiment
from tacit.method import Method
from tacit.serving.new_items import NewItem, content_names, items_of
from tacit.system_errors import explained

VERSION = 1
MOST_BYTES = 1 << 22
_MOST_TEXT = 1000  # characters


class _Item(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    title: str
    labels: list[tuple[str, str]]


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    v: int
    items: list[_Item]


def write_new_items(items: Iterable[NewItem]) -> bytes:
    """The document of these items; refuses more than clients take."""
    made = [_Item(one.id, one.title, sorted(one.labels)) for one in items]
    found = msgspec.json.encode(_Document(VERSION, made))
    if len(found) > MOST_BYTES:
        raise Refused(
            f"{len(made):,} new items take {len(found):,} bytes; clients take "
            f"{MOST_BYTES:,}: it is time for a run with a new catalog"
        )
    return found


def read_new_items(sent: bytes) -> tuple[NewItem, ...]:
    """The items of a document; refuses what is none."""
    try:
        found = msgspec.json.decode(sent, type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(f"a list of new items cannot be read: {error}") from error
    texts = [text for one in found.items for text in (one.id, one.title)]
    if found.v != VERSION or any(len(text) > _MOST_TEXT for text in texts):
        raise BadMessage(
            f"a list of new items must be of version {VERSION}, with ids and titles of "
            f"at most {_MOST_TEXT} characters"
        )
    return tuple(
        NewItem(one.id, one.title, frozenset(one.labels)) for one in found.items
    )


def new_items_of(
    path: Path | None, experiment: Experiment, method: Method
) -> Callable[[], bytes] | None:
    """What reads the operator's table and gives the document; None without a table."""
    if path is None:
        return None
    table = None if experiment.table is None else experiment.table.items
    if table is None:
        raise Refused(
            f"{path} has new items, and the experiment does not say which columns an "
            "item has; declare items in [data.table.items]"
        )
    return _WrittenOnce(replace(table, path=path), content_names(method))


class _WrittenOnce:
    """The document of a table, which is read anew when its file has changed.

    Anybody may ask for it, and reading a long table takes a while.
    """

    def __init__(self, table: ItemsTable, names: tuple[str, ...]) -> None:
        self._table, self._names = table, names
        self._version: tuple[int, ...] | None = None
        self._content = b""

    def __call__(self) -> bytes:
        with explained():
            found = self._table.path.stat()
        version = (found.st_mtime_ns, found.st_size, found.st_ino)
        if version != self._version:
            items = items_of(self._table.parse(), self._names)
            self._content = write_new_items(items)
            self._version = version
        return self._content
