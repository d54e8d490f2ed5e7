"""Any table of events: a line for each, with a column for the user and for the item.

Ids are strings. Users are numbered in the order of their first line. So are items,
unless a second table lists them: then its rows are the catalog, whatever users have.
Memory holds the columns of numbers and one batch of text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int64

from tacit.data import archives
from tacit.data import cache as cached
from tacit.data.archives import Stamp
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.data.parsing import timestamps
from tacit.data.parsing.csv_rows import Batch, batches
from tacit.data.parsing.quote import quoted
from tacit.data.strings import Strings
from tacit.errors import BadData, BadValue, MissingData


@dataclass(frozen=True)
class ItemsTable:
    """The declared catalog: a table with a header and a line for each item.

    `columns` become categories of the items. An item without a title shows its id.
    """

    path: Path
    item: str
    title: str | None = None
    columns: tuple[str, ...] = ()
    delimiter: str | None = None  # found among , ; tab | where not given

    def __post_init__(self) -> None:
        _check_delimiter(self.delimiter)

    def parse(self) -> Catalog:
        """The catalog of every row, in the order of the file."""
        _must_exist(self.path)
        named = [self.item, *filter(None, [self.title]), *self.columns]
        columns: dict[str, list[str]] = {name: [] for name in named}
        ids = _Ids()
        for batch in batches(self.path, [*columns], self.delimiter):
            ids.add_once(batch, self.item)
            for name, texts in batch.columns.items():
                columns[name] += texts
        if not ids.numbers:
            raise BadData(self.path, None, "has a header and no lines after it")
        known = list(ids.numbers)
        titles = known if self.title is None else columns[self.title]
        shown = [title or text for title, text in zip(titles, known, strict=True)]
        features = {name: Category.of(columns[name]) for name in self.columns}
        return Catalog(Strings.of(known), Strings.of(shown), features)


@dataclass(frozen=True)
class CsvTable:
    """A table of events with a header, and which of its columns mean what.

    With a table of `items` the catalog is what that table lists, and an event with an
    item that is not in it is left out. Without one, the catalog is collected from the
    events: `item_columns` become categories of the items, and where an item's title or
    category differs between lines, the first that is not blank counts.
    """

    path: Path
    user: str
    item: str
    time: str | None = None
    value: str | None = None
    title: str | None = None
    item_columns: tuple[str, ...] = ()
    delimiter: str | None = None  # found among , ; tab | where not given
    items: ItemsTable | None = None

    def __post_init__(self) -> None:
        _check_delimiter(self.delimiter)
        if self.items is not None and (self.title or self.item_columns):
            raise BadValue(
                "title and item_columns of the events and a table of items are two "
                "sources for one fact; name them as title and columns of the items"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read, each once."""
        named = (self.user, self.item, self.time, self.value, self.title)
        wanted = [name for name in named if name is not None]
        return tuple(dict.fromkeys([*wanted, *self.item_columns]))

    def load(self, *, cache: Path | None = None) -> Dataset:
        """The data set, parsed once and then read from the cache."""
        _must_exist(self.path)
        if self.items is not None:
            _must_exist(self.items.path)
        # Absolute paths: the same name in another folder is another data set.
        options = repr(self._moved(Path.resolve))
        digest = hashlib.blake2b(options.encode(), digest_size=8).hexdigest()
        place = cached.entry(cached.folder(cache), f"csv-{digest}")
        return cached.through(place, stamp=self._stamp, build=self.parse)

    def _stamp(self) -> Stamp:
        """The content of both tables, which the data set follows from."""
        stamp = archives.stamp(self.path)
        if self.items is not None:
            stamp |= {"items": archives.stamp(self.items.path)["files"]}
        return stamp

    def located(self, folder: Path) -> CsvTable:
        """The same table; relative paths are read from `folder`."""
        return self._moved(folder.joinpath)

    def _moved(self, move: Callable[[Path], Path]) -> CsvTable:
        items = self.items and replace(self.items, path=move(self.items.path))
        return replace(self, path=move(self.path), items=items)

    def parse(self) -> Dataset:
        """The data set, named after the file."""
        _must_exist(self.path)
        events = _Events(self, None if self.items is None else self.items.parse())
        for batch in batches(self.path, self.columns, self.delimiter):
            events.add(batch)
        if not events.users.codes:
            raise BadData(self.path, None, "has a header and no lines after it")
        return events.dataset()


def _must_exist(path: Path) -> None:
    if not path.is_file():
        raise MissingData(f"{path} is not a file; give the path of a table")


def _check_delimiter(delimiter: str | None) -> None:
    if delimiter is not None and len(delimiter) != 1:
        raise BadValue(f"delimiter={delimiter!r} must be one character")


class _Numbers(dict[str, int]):
    """A number for each text, given when it is first asked for."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


@dataclass
class _Ids:
    """Numbers for ids, in the order in which they are first seen."""

    numbers: _Numbers = field(default_factory=_Numbers)
    codes: list[Int64[np.ndarray, "batch"]] = field(default_factory=list)

    def add(self, batch: Batch, column: str) -> None:
        """Number one batch of ids; a blank one is refused."""
        texts = batch.columns[column]
        if "" in texts:
            batch.refuse(texts.index(""), f"column {column!r} is blank")
        codes = map(self.numbers.__getitem__, texts)  # in C: no Python loop per line
        self.codes.append(np.fromiter(codes, np.int64, len(texts)))

    def add_once(self, batch: Batch, column: str) -> None:
        """As `add`; an id that was there before is refused."""
        before = len(self.numbers)
        self.add(batch, column)
        codes = self.codes[-1]
        if len(self.numbers) - before < len(codes):
            row = int((codes != np.arange(before, before + len(codes))).argmax())
            text = quoted(batch.columns[column][row])
            batch.refuse(row, f"{column}={text} occurs twice; list every item once")


@dataclass
class _Events:
    """The events that have been read of a table so far."""

    table: CsvTable
    listed: Catalog | None  # None: the items are those that occur
    users: _Ids = field(default_factory=_Ids)
    items: _Ids = field(default_factory=_Ids)
    values: list[Float32[np.ndarray, "batch"]] = field(default_factory=list)
    times: list[Int64[np.ndarray, "batch"]] = field(default_factory=list)
    texts: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """Appends the events of one batch."""
        table = self.table
        self.users.add(batch, table.user)
        self.items.add(batch, table.item)
        if table.value is not None:
            self.values.append(_values(batch, table.value))
        if table.time is not None:
            self.times.append(_times(batch, table.time))
        for name in filter(None, (table.title, *table.item_columns)):
            known = self.texts.setdefault(name, {})
            if len(known) < len(self.items.numbers):  # else all items have a text
                _learn(known, self.items.codes[-1].tolist(), batch.columns[name])

    def dataset(self) -> Dataset:
        """The data set of everything read, without events of unlisted items."""
        catalog = self._catalog() if self.listed is None else self.listed
        positions = catalog.ids.positions
        found = np.array([positions.get(text, -1) for text in self.items.numbers])
        items = found[np.concatenate(self.items.codes)]
        kept = items >= 0
        log = Interactions.of_columns(
            np.concatenate(self.users.codes)[kept],
            items[kept],
            values=np.concatenate(self.values)[kept] if self.values else None,
            times=np.concatenate(self.times)[kept] if self.times else None,
            n_users=len(self.users.numbers),
            n_items=len(catalog),
        )
        name = self.table.path.name.split(".")[0]
        profiles = Profiles(Strings.of(self.users.numbers))
        return Dataset(name, log, catalog, profiles, listed=self.listed)

    def _catalog(self) -> Catalog:
        ids = list(self.items.numbers)
        titles = self.texts.get(self.table.title or "", {})
        features = {
            name: Category.of([self.texts[name].get(i, "") for i in range(len(ids))])
            for name in self.table.item_columns
        }
        shown = [titles.get(number, text) for number, text in enumerate(ids)]
        return Catalog(Strings.of(ids), Strings.of(shown), features)


def _learn(known: dict[int, str], items: Iterable[int], texts: Sequence[str]) -> None:
    """Keeps, for each item, the first text that is not blank."""
    for item, text in zip(items, texts, strict=True):
        if text and item not in known:
            known[item] = text


def _values(batch: Batch, column: str) -> Float32[np.ndarray, "batch"]:
    texts = batch.columns[column]
    try:
        numbers = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        row = next(i for i, text in enumerate(texts) if not _is_number(text))
    else:
        finite = np.abs(numbers) <= np.finfo(np.float32).max  # false for NaN
        if finite.all():
            return numbers.astype(np.float32)
        row = int(finite.argmin())
    batch.refuse(row, f"{column}={quoted(texts[row])} must be a finite number")


def _times(batch: Batch, column: str) -> Int64[np.ndarray, "batch"]:
    texts = batch.columns[column]
    try:
        return timestamps.seconds(texts)
    except ValueError:
        row = next(i for i, text in enumerate(texts) if not _is_time(text))
        batch.refuse(
            row, f"{column}={quoted(texts[row])} must be {timestamps.EXPECTED}"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    try:
        timestamps.second(text)
    except ValueError:
        return False
    return True
