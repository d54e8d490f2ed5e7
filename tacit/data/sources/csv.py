"""Any table of events: a line for each, with a column for the user and for the item.

Ids are strings, numbered in the order of their first line. Memory holds the columns of
numbers and one batch of text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int64

from tacit.data import archives
from tacit.data import cache as cached
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.data.sources import moments
from tacit.data.sources.csv_rows import Batch, batches
from tacit.data.sources.quote import quoted
from tacit.data.strings import Strings
from tacit.errors import BadData, BadValue, MissingData


@dataclass(frozen=True)
class CsvTable:
    """A table with a header, and which of its columns mean what.

    `item_columns` become categories of the items. Where an item's title or category
    differs between lines, the first that is not blank counts.
    """

    path: Path
    user: str
    item: str
    time: str | None = None
    value: str | None = None
    title: str | None = None
    item_columns: tuple[str, ...] = ()
    delimiter: str | None = None  # found among , ; tab | where not given

    def __post_init__(self) -> None:
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise BadValue(f"delimiter={self.delimiter!r} must be one character")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        named = (self.user, self.item, self.time, self.value, self.title)
        wanted = [name for name in named if name is not None]
        return tuple(dict.fromkeys([*wanted, *self.item_columns]))

    def load(self, *, cache: Path | None = None) -> Dataset:
        """The data set, parsed once and then read from the cache."""
        self._must_exist()
        options = {**asdict(self), "path": str(self.path.resolve())}
        digest = hashlib.blake2b(repr(options).encode(), digest_size=8).hexdigest()
        place = cached.entry(cached.folder(cache), f"csv-{digest}")
        return cached.through(place, stamp=archives.stamp(self.path), build=self.parse)

    def parse(self) -> Dataset:
        """The data set, named after the file."""
        self._must_exist()
        events = _Events(self)
        for batch in batches(self.path, self.columns, self.delimiter):
            events.add(batch)
        if not events.users.codes:
            raise BadData(self.path, None, "has a header and no lines after it")
        return events.dataset()

    def _must_exist(self) -> None:
        if not self.path.is_file():
            raise MissingData(f"{self.path} is not a file; give the path of a table")


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
        codes = map(self.numbers.__getitem__, texts)
        self.codes.append(np.fromiter(codes, np.int64, len(texts)))


@dataclass
class _Events:
    """What has been read of a table so far."""

    table: CsvTable
    users: _Ids = field(default_factory=_Ids)
    items: _Ids = field(default_factory=_Ids)
    values: list[Float32[np.ndarray, "batch"]] = field(default_factory=list)
    times: list[Int64[np.ndarray, "batch"]] = field(default_factory=list)
    texts: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """Take in one batch."""
        table = self.table
        self.users.add(batch, table.user)
        self.items.add(batch, table.item)
        if table.value is not None:
            self.values.append(_values(batch, table.value))
        if table.time is not None:
            self.times.append(_times(batch, table.time))
        for name in filter(None, (table.title, *table.item_columns)):
            known = self.texts.setdefault(name, {})
            if len(known) < len(self.items.numbers):
                _learn(known, self.items.codes[-1].tolist(), batch.columns[name])

    def dataset(self) -> Dataset:
        """Everything read, in its place."""
        log = Interactions.of_columns(
            np.concatenate(self.users.codes),
            np.concatenate(self.items.codes),
            values=np.concatenate(self.values) if self.values else None,
            times=np.concatenate(self.times) if self.times else None,
            n_users=len(self.users.numbers),
            n_items=len(self.items.numbers),
        )
        name = self.table.path.name.split(".")[0]
        profiles = Profiles(Strings.of(self.users.numbers))
        return Dataset(name, log, self._catalog(), profiles)

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
    """Keep the first text of each item that is not blank."""
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
        return moments.seconds(texts)
    except ValueError:
        row = next(i for i, text in enumerate(texts) if not _is_time(text))
        batch.refuse(row, f"{column}={quoted(texts[row])} must be {moments.EXPECTED}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    try:
        moments.second(text)
    except ValueError:
        return False
    return True
