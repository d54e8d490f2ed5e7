"""Any table of events: a line for each, with a column for the user and for the item.

Ids are strings. Users are numbered in the order of their first line. So are items,
unless a second table lists them: then its rows are the catalog, whatever users have.
Memory holds the columns of numbers and one batch of text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.data import archives
from tacit.data import cache as cached
from tacit.data.archives import Stamp
from tacit.data.dataset import Dataset
from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.csv_rows import Batch, Layout, Progress
from tacit.data.parsing.table_rows import ITEM, VALUE, Keep, batches, cells, only
from tacit.data.sources.listed_tables import (
    ItemsTable,
    UsersTable,
    must_exist,
    no_lines,
)
from tacit.data.sources.table_events import Events
from tacit.errors import BadValue

_PARSER = 2  # raise it when the same table yields another data set: nothing old is read


@dataclass(frozen=True)
class EventsTable(Layout):
    """A table of events, and which of its columns mean what.

    With a table of `items` the catalog is what that table lists, and an event with an
    item that is not in it is left out. Without one, the catalog is collected from the
    events: `item_columns` become categories of the items, and where an item's title or
    category differs between lines, the first that is not blank counts. With `skip_bad`
    lines that cannot be used are left out as well; all that is left out is counted. Of
    a `matrix` every column but the user's is an item, and a cell that is neither blank
    nor zero is an event with that value. With an `impression`, which lines of one slate
    share, a line is an item that was shown, and clicked if its value is above zero.
    """

    path: Path
    user: str
    item: str = ""  # of a matrix every other column is an item
    time: str | None = None
    value: str | None = None
    title: str | None = None
    item_columns: tuple[str, ...] = ()
    impression: str | None = None  # a line is an item that was shown, not an event
    skip_bad: bool = False
    matrix: bool = False
    items: ItemsTable | None = None
    users: UsersTable | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.matrix:
            self._check_matrix()
        elif not self.item:
            raise BadValue(
                "item is missing; name the column with the item's id, or set matrix = "
                "true if every column is an item"
            )
        if self.impression is not None and self.value is None:
            raise BadValue(
                f"impression={self.impression!r} needs value: the column that is above "
                "zero where what was shown was clicked"
            )
        if self.user == self.item:
            raise BadValue(
                f"user={self.user!r} and item={self.item!r} are one column; name two"
            )
        if self.items is not None and (self.title or self.item_columns):
            raise BadValue(
                "title and item_columns of the events and a table of items are two "
                "sources for one fact; name them as title and columns of the items"
            )

    def _check_matrix(self) -> None:
        named = (self.item, self.time, self.value, self.title, self.impression)
        if any((*named, *self.item_columns)):
            raise BadValue(
                "a matrix has a column for the user and one for each item; leave out "
                "item, time, value, title, impression and item_columns"
            )

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns with ids, as batches of events call them: none may be blank."""
        shown = () if self.impression is None else (self.impression,)
        return (self.user, self.item_column, *shown)

    @property
    def item_column(self) -> str:
        """The column with the item's id, as batches of events call it."""
        return ITEM if self.matrix else self.item

    @property
    def value_column(self) -> str | None:
        """The column that says how much, as batches of events call it."""
        return VALUE if self.matrix else self.value

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read, each once."""
        named = (self.user, self.item, self.time, self.value, self.title)
        wanted = [name for name in (*named, self.impression) if name is not None]
        return tuple(dict.fromkeys([*wanted, *self.item_columns]))

    def load(
        self, *, cache: Path | None = None, progress: Progress | None = None
    ) -> Dataset:
        """The data set, parsed once and then read from the cache.

        `progress` is told how much of the table of events has been parsed.
        """
        for path in self._paths:
            must_exist(path)
        # Absolute paths: the same name in another folder is another data set.
        options = f"{_PARSER} {self._moved(Path.resolve)!r}"
        digest = hashlib.blake2b(options.encode(), digest_size=8).hexdigest()
        place = cached.entry(cached.folder(cache), f"table-{digest}")

        def build() -> Dataset:
            return self.parse(progress=progress)

        return cached.through(place, stamp=self._stamp, build=build)

    @property
    def _paths(self) -> list[Path]:
        tables = [self.items, self.users]
        return [self.path, *(table.path for table in tables if table is not None)]

    def _stamp(self) -> Stamp:
        """The content of all tables, which the data set follows from."""
        stamp = archives.stamp(self.path)
        if self.items is not None:
            stamp |= {"items": archives.stamp(self.items.path)["files"]}
        if self.users is not None:
            stamp |= {"users": archives.stamp(self.users.path)["files"]}
        return stamp

    def located(self, folder: Path) -> EventsTable:
        """The same table; relative paths are read from `folder`."""
        return self._moved(folder.joinpath)

    def _moved(self, move: Callable[[Path], Path]) -> EventsTable:
        items = self.items and replace(self.items, path=move(self.items.path))
        users = self.users and replace(self.users, path=move(self.users.path))
        return replace(self, path=move(self.path), items=items, users=users)

    def parse(
        self, *, progress: Progress | None = None, keep: Keep | None = None
    ) -> Dataset:
        """The data set, named after the file; with `keep`, of some users only.

        What is known of the others is in memory for one batch of lines.
        """
        must_exist(self.path)
        bad = BadLines() if self.skip_bad else None
        events = Events(self, None if self.items is None else self.items.parse(bad))
        for batch in self._batches(bad, progress):
            events.add(batch if keep is None else only(batch, self.user, keep))
        if not events.users.numbers:
            raise no_lines(self.path, self, bad)
        return events.dataset(bad, keep=keep)

    def _batches(
        self, bad: BadLines | None, progress: Progress | None
    ) -> Iterator[Batch]:
        if self.matrix:
            return cells(self.path, self.user, self, bad=bad, progress=progress)
        return batches(self.path, self.columns, self, bad=bad, progress=progress)
