"""Whole numbers as ids: listed once in a table, found again in the log."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int64

from tacit.data.catalog import Profiles
from tacit.data.features import Categories
from tacit.data.parsing.rows import Row
from tacit.data.ragged import Ragged
from tacit.data.strings import Strings
from tacit.errors import BadData

Ids = Int64[np.ndarray, "rows"]
Places = Int64[np.ndarray, "events"]


@dataclass
class Listing:
    """The ids of a table's rows, in the order of the file."""

    numbers: dict[int, None] = field(default_factory=dict)

    def add(self, row: Row, column: str) -> None:
        """Take a row's id; ids are whole numbers and occur once."""
        number = row.whole(column)
        if number in self.numbers:
            raise BadData(row.file, row.line, f"{column} {number} occurs twice")
        self.numbers[number] = None

    @property
    def ids(self) -> Ids:
        """The ids as numbers, in the order of the file."""
        return np.fromiter(self.numbers, np.int64, len(self.numbers))

    def strings(self) -> Strings:
        """The ids as text, in the order of the file."""
        return texts(self.ids)


def texts(ids: Ids) -> Strings:
    """Each numeric id written as a decimal text."""
    return Strings.of(map(str, ids.tolist()))


def anyone(users: Places) -> tuple[Ids, Profiles]:
    """Whoever occurs, ascending, for releases that tell nothing of users."""
    ids = np.unique(users)
    return ids, Profiles(texts(ids))


def match(
    column: Places, ids: Ids, *, what: str, file: str, first: int
) -> tuple[Places, Int64[np.ndarray, "occurring"]]:
    """Each event's index among the table's rows that occur, and which rows those are.

    `first` is the line of the first event; an event of an id that is not in the table
    is refused.
    """
    if not len(ids):
        raise BadData(file, first, f"the table of {what}s has no rows")
    place, is_listed = find(column, ids)
    if not is_listed.all():
        row = int(is_listed.argmin())
        problem = f"{what} {column[row]} is not in the table of {what}s"
        raise BadData(file, first + row, problem)
    occurs = np.bincount(place, minlength=len(ids)) > 0  # rows nobody names are dropped
    # The running count gives each row that occurs its new number.
    return (np.cumsum(occurs) - 1)[place], np.flatnonzero(occurs)


def find(column: Places, ids: Ids) -> tuple[Places, Bool[np.ndarray, "events"]]:
    """Where each number stands among distinct ids, and whether it is there at all."""
    if not len(ids):
        return np.zeros_like(column), np.zeros(len(column), bool)
    # A binary search among sorted ids: tables are long, and a dict of ids slow.
    order = np.argsort(ids)
    place = order[np.minimum(np.searchsorted(ids, column, sorter=order), len(ids) - 1)]
    return place, ids[place] == column


def relations(who: Places, whom: Places, user_ids: Ids) -> Categories:
    """For each of `user_ids` the ids they name; the labels are those ids.

    What others say is left out. Whoever is named is kept, also if not among `user_ids`.
    """
    place, is_listed = find(who, user_ids)
    named, codes = np.unique(whom[is_listed], return_inverse=True)
    return Categories(gather(codes, place[is_listed], len(user_ids)), texts(named))


def gather(codes: Places, owners: Places, n: int) -> Ragged:
    """The codes of each of `n` owners, in the order of the file."""
    order = np.argsort(owners, kind="stable")
    lengths = np.bincount(owners, minlength=n)
    return Ragged.of_lengths(lengths, codes[order].astype(np.int32))
