"""The events of a table, batch by batch, and the data set that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float32, Int64

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.impression_lines import impressions_of_lines
from tacit.data.impressions import Impressions, clicks
from tacit.data.interactions import Interactions
from tacit.data.left_out import LeftOut
from tacit.data.parsing import timestamps
from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.csv_rows import Batch
from tacit.data.parsing.numbered_ids import Ids, blanks
from tacit.data.parsing.quote import quoted
from tacit.data.parsing.table_rows import VALUE, Keep
from tacit.data.strings import Strings

if TYPE_CHECKING:
    from tacit.data.sources.table import EventsTable

Seconds = Int64[np.ndarray, "batch"]
Numbers = Float32[np.ndarray, "batch"]

_TRUTHS = {"true": 1.0, "false": 0.0}
_LARGEST = float(np.finfo(np.float32).max)


@dataclass
class Events:
    """The events that have been read of a table so far."""

    table: EventsTable
    listed: Catalog | None  # None: the items are those that occur
    users: Ids = field(default_factory=Ids)
    items: Ids = field(default_factory=Ids)
    slates: Ids = field(default_factory=Ids)
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
        if not all(all(map(str.strip, columns[name])) for name in table.id_columns):
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
            problems |= blanks(batch, name)
        if table.time is not None:
            problems |= _unreadable(
                batch, table.time, timestamps.second, timestamps.EXPECTED
            )
        if (value := table.value_column) is not None:
            problems |= _unreadable(batch, value, _number, "a finite number")
        return {row: self._placed(batch, row, told) for row, told in problems.items()}

    def _placed(self, batch: Batch, row: int, problem: str) -> str:
        """The problem; of a matrix it says in which column, which is an item."""
        if not self.table.matrix:
            return problem
        item = batch.columns[self.table.item_column][row]
        return f"column {quoted(item)}: {problem.removeprefix(VALUE + '=')}"

    def dataset(self, bad: BadLines | None, *, keep: Keep | None = None) -> Dataset:
        """The data set of everything read, without events of unlisted items.

        With `keep`, no more is read of other users than of their events.
        """
        catalog = self._catalog() if self.listed is None else self.listed
        positions = catalog.ids.positions
        found = np.array([positions.get(text, -1) for text in self.items.numbers])
        items = found[np.concatenate(self.items.codes)]
        kept = items >= 0
        log, shown = self._log(items, kept, len(catalog))
        table, ids = self.table, Strings.of(self.users.numbers)
        known = {} if table.users is None else table.users.parse(ids, bad, keep=keep)
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
    try:
        numbers = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        numbers = np.fromiter(map(_number, texts), np.float64, len(texts))
    if not (np.abs(numbers) <= _LARGEST).all():  # false for NaN
        raise ValueError("not finite")
    return numbers.astype(np.float32)


def _number(text: str) -> float:
    """A finite number; true is 1 and false 0, as flags such as clicks are written."""
    number = _TRUTHS.get(text.strip().lower())
    if number is None:
        number = float(text)
    if not abs(number) <= _LARGEST:
        raise ValueError(text)
    return number
