"""Any table of events: a line for each, with a column for the user and for the item.

Ids are strings. Users are numbered in the order of their first line. So are items,
unless a second table lists them: then its rows are the catalog, whatever users have.
Memory holds the columns of numbers and one batch of text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int64

from tacit.data import archives
from tacit.data import cache as cached
from tacit.data.archives import Stamp
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Categories, Category, Feature, Text
from tacit.data.impression_lines import impressions_of_lines
from tacit.data.impressions import Impressions, clicks
from tacit.data.interactions import Interactions
from tacit.data.left_out import LeftOut
from tacit.data.parsing import timestamps
from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.csv_rows import Batch, Layout, Progress
from tacit.data.parsing.quote import quoted
from tacit.data.parsing.table_rows import ITEM, VALUE, batches, cells
from tacit.data.strings import Strings
from tacit.errors import BadData, BadValue, MissingData

Seconds = Int64[np.ndarray, "batch"]
Numbers = Float32[np.ndarray, "batch"]

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class ItemsTable(Layout):
    """The declared catalog: a table with a line for each item.

    `columns` become categories of the items, `lists` columns of several labels such as
    genres, and `texts` free text. An item without a title shows its id.
    """

    path: Path
    item: str
    title: str | None = None
    columns: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    separator: str = "|"  # between the labels of a list

    def __post_init__(self) -> None:
        super().__post_init__()
        described = (*self.columns, *self.lists, *self.texts)
        twice = [name for name in described if described.count(name) > 1]
        if twice:
            raise BadValue(
                f"column {twice[0]!r} is named twice among columns, lists and texts; "
                "it can be one of them"
            )
        if not self.separator:
            raise BadValue("separator='' must be at least one character, such as '|'")

    def parse(self, bad: BadLines | None = None) -> Catalog:
        """The catalog of every row, in the order of the file."""
        titles = filter(None, [self.title])
        named = [self.item, *titles, *self.columns, *self.lists, *self.texts]
        ids, columns = _listed(self, self.path, self.item, named, bad)
        titled = ids if self.title is None else columns[self.title]
        shown = [title or text for title, text in zip(titled, ids, strict=True)]
        features: dict[str, Feature] = {
            n: Category.of(columns[n]) for n in self.columns
        }
        for name in self.lists:
            rows = (text.split(self.separator) for text in columns[name])
            features[name] = Categories.of([label.strip() for label in r] for r in rows)
        features |= {name: Text(Strings.of(columns[name])) for name in self.texts}
        return Catalog(Strings.of(ids), Strings.of(shown), features)


@dataclass(frozen=True)
class UsersTable(Layout):
    """What is known of users: a table with a line for each.

    `columns` become categories of their profiles, which may name public groups. Who is
    not listed has none of them, and who is listed without an event is left out.
    """

    path: Path
    user: str
    columns: tuple[str, ...] = ()

    def parse(
        self, users: Strings, bad: BadLines | None = None
    ) -> Mapping[str, Category]:
        """The columns for these users, in this order."""
        named = [self.user, *self.columns]
        ids, columns = _listed(self, self.path, self.user, named, bad)
        place = {text: number for number, text in enumerate(ids)}
        rows = [place.get(text, -1) for text in users]
        return {
            name: Category.of([columns[name][row] if row >= 0 else "" for row in rows])
            for name in self.columns
        }


def _listed(
    layout: Layout, path: Path, key: str, named: Sequence[str], bad: BadLines | None
) -> tuple[list[str], dict[str, list[str]]]:
    """The ids of a table that lists each once, and its columns."""
    must_exist(path)
    columns: dict[str, list[str]] = {name: [] for name in named}
    ids = _Ids()
    for batch in batches(path, [*columns], layout, bad=bad):
        read = ids.add_once(batch, key)
        for name, texts in read.columns.items():
            columns[name] += texts
    if not ids.numbers:
        raise _empty(path, layout, bad)
    return list(ids.numbers), columns


@dataclass(frozen=True)
class CsvTable(Layout):
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
        options = repr(self._moved(Path.resolve))
        digest = hashlib.blake2b(options.encode(), digest_size=8).hexdigest()
        place = cached.entry(cached.folder(cache), f"csv-{digest}")

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

    def located(self, folder: Path) -> CsvTable:
        """The same table; relative paths are read from `folder`."""
        return self._moved(folder.joinpath)

    def _moved(self, move: Callable[[Path], Path]) -> CsvTable:
        items = self.items and replace(self.items, path=move(self.items.path))
        users = self.users and replace(self.users, path=move(self.users.path))
        return replace(self, path=move(self.path), items=items, users=users)

    def parse(self, *, progress: Progress | None = None) -> Dataset:
        """The data set, named after the file."""
        must_exist(self.path)
        bad = BadLines() if self.skip_bad else None
        events = _Events(self, None if self.items is None else self.items.parse(bad))
        for batch in self._batches(bad, progress):
            events.add(batch)
        if not events.users.numbers:
            raise _empty(self.path, self, bad)
        return events.dataset(bad)

    def _batches(
        self, bad: BadLines | None, progress: Progress | None
    ) -> Iterator[Batch]:
        if self.matrix:
            return cells(self.path, self.user, self, bad=bad, progress=progress)
        return batches(self.path, self.columns, self, bad=bad, progress=progress)


def must_exist(path: Path) -> None:
    """Refuse a path that is not a file."""
    if not path.is_file():
        raise MissingData(f"{path} is not a file; give the path of a table")


def _empty(path: Path, layout: Layout, bad: BadLines | None) -> BadData:
    if bad and bad.count:
        problem = f"has no line that can be used; the first bad one is {bad.first[0]}"
        return BadData(path, None, problem)
    problem = "has a header and no lines after it" if layout.header else "has no lines"
    return BadData(path, None, problem)


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

    def add(self, texts: Sequence[str]) -> None:
        """Number one batch of ids."""
        codes = map(self.numbers.__getitem__, texts)  # in C: no Python loop per line
        self.codes.append(np.fromiter(codes, np.int64, len(texts)))

    def add_once(self, batch: Batch, column: str) -> Batch:
        """Number ids that must not be blank or repeated; the batch of all others."""
        problems = _blanks(batch, column)
        seen: set[str] = set()
        for row, text in enumerate(batch.columns[column]):
            if text and (text in self.numbers or text in seen):
                problems[row] = f"{column}={quoted(text)} occurs twice; list it once"
            seen.add(text)
        batch = batch.without(problems) if problems else batch
        self.add(batch.columns[column])
        return batch


@dataclass
class _Events:
    """The events that have been read of a table so far."""

    table: CsvTable
    listed: Catalog | None  # None: the items are those that occur
    users: _Ids = field(default_factory=_Ids)
    items: _Ids = field(default_factory=_Ids)
    slates: _Ids = field(default_factory=_Ids)
    values: list[Numbers] = field(default_factory=list)
    times: list[Seconds] = field(default_factory=list)
    texts: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """Appends the events of one batch, without lines that cannot be used."""
        try:
            times, values = self._converted(batch)
        except ValueError:
            batch = batch.without(self._problems(batch))
            times, values = self._converted(batch)
        table = self.table
        self.users.add(batch.columns[table.user])
        self.items.add(batch.columns[table.item_column])
        if table.impression is not None:
            self.slates.add(batch.columns[table.impression])
        self.times += [] if times is None else [times]
        self.values += [] if values is None else [values]
        for name in filter(None, (table.title, *table.item_columns)):
            known = self.texts.setdefault(name, {})
            if len(known) < len(self.items.numbers):  # else all items have a text
                _learn(known, self.items.codes[-1].tolist(), batch.columns[name])

    def _converted(self, batch: Batch) -> tuple[Seconds | None, Numbers | None]:
        """Times and values of a batch; ValueError if any cell of it cannot be used."""
        table, columns = self.table, batch.columns
        if any("" in columns[name] for name in table.id_columns):
            raise ValueError("a blank id")
        times = values = None
        if table.time is not None:
            times = timestamps.seconds(columns[table.time])
        if table.value_column is not None:
            values = _finite(columns[table.value_column])
        return times, values

    def _problems(self, batch: Batch) -> dict[int, str]:
        """What is wrong with each row that cannot be used."""
        table, problems = self.table, dict[int, str]()
        for name in table.id_columns:
            problems |= _blanks(batch, name)
        if table.time is not None:
            problems |= _unreadable(
                batch, table.time, timestamps.second, timestamps.EXPECTED
            )
        if (value := table.value_column) is not None:
            problems |= _unreadable(batch, value, _number, "a finite number")
        return problems

    def dataset(self, bad: BadLines | None) -> Dataset:
        """The data set of everything read, without events of unlisted items."""
        catalog = self._catalog() if self.listed is None else self.listed
        positions = catalog.ids.positions
        found = np.array([positions.get(text, -1) for text in self.items.numbers])
        items = found[np.concatenate(self.items.codes)]
        kept = items >= 0
        log, shown = self._log(items, kept, len(catalog))
        table, ids = self.table, Strings.of(self.users.numbers)
        known = {} if table.users is None else table.users.parse(ids, bad)
        left_out = LeftOut.of(bad, unlisted=len(kept) - int(kept.sum()))
        name = table.path.name.split(".")[0]
        return Dataset(
            name,
            log,
            catalog,
            Profiles(ids, known),
            shown,
            listed=self.listed,
            left_out=left_out,
        )

    def _log(
        self,
        items: Int64[np.ndarray, "lines"],
        kept: Bool[np.ndarray, "lines"],
        n_items: int,
    ) -> tuple[Interactions, Impressions | None]:
        """The events, and the impressions that they come from if lines are shown."""
        users = np.concatenate(self.users.codes)[kept]
        values = np.concatenate(self.values)[kept] if self.values else None
        times = np.concatenate(self.times)[kept] if self.times else None
        n_users = len(self.users.numbers)
        if self.table.impression is None:
            log = Interactions.of_columns(
                users,
                items[kept],
                values=values,
                times=times,
                n_users=n_users,
                n_items=n_items,
            )
            return log, None
        assert values is not None, "a table of impressions has values"
        slates = np.concatenate(self.slates.codes)[kept]
        shown = impressions_of_lines(
            users,
            items[kept],
            slates,
            clicked=values > 0,
            times=times,
            n_users=n_users,
            n_items=n_items,
        )
        return clicks(shown), shown

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


def _blanks(batch: Batch, column: str) -> dict[int, str]:
    texts = batch.columns[column]
    return {
        r: f"column {column!r} is blank" for r, text in enumerate(texts) if not text
    }


def _unreadable(
    batch: Batch, column: str, read: Callable[[str], object], expected: str
) -> dict[int, str]:
    """The rows whose cell `read` refuses."""
    problems = {}
    for row, text in enumerate(batch.columns[column]):
        try:
            read(text)
        except ValueError:
            problems[row] = f"{column}={quoted(text)} must be {expected}"
    return problems


def _finite(texts: Sequence[str]) -> Numbers:
    numbers = np.fromiter(map(float, texts), np.float64, len(texts))
    if not (np.abs(numbers) <= _LARGEST).all():  # false for NaN
        raise ValueError("not finite")
    return numbers.astype(np.float32)


def _number(text: str) -> float:
    number = float(text)
    if not abs(number) <= _LARGEST:
        raise ValueError(text)
    return number
