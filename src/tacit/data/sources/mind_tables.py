"""The tables of MIND's format: news.tsv and behaviors.tsv.

    news.tsv        id, category, subcategory, title, abstract, url, entities twice
    behaviors.tsv   impression, user, time, history, candidates with labels: `N1-0 N2-1`

Tabs between fields, spaces within the last two, no header, UTF-8. A time is written
`11/15/2019 8:55:22 AM` and read as UTC. `null` stands for an unknown time or impression
number. Addresses and entities are not read.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np

from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Category, Features, Text
from tacit.data.impressions import Impressions
from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.number_tables import MOST_DIGITS
from tacit.data.parsing.quote import quoted
from tacit.data.ragged import Ragged
from tacit.data.strings import Strings
from tacit.errors import BadData

NEWS, BEHAVIORS = "news.tsv", "behaviors.tsv"
NULL = "null"

_NEWS_FIELDS, _BEHAVIOR_FIELDS = 8, 5  # per line, of which some are not read
_LABELS = {"-0", "-1"}
_TIME = re.compile(r"(\d+/\d+/\d{4}) (\d{1,2}):([0-5]\d):([0-5]\d) ([AP]M)", re.ASCII)
_TIME_EXPECTED = "must be like '11/15/2019 8:55:22 AM', or 'null' in all lines"


@dataclass
class NewsTable:
    """The news of all parts read so far; where two parts list one, the first counts."""

    indices: dict[str, int] = field(default_factory=dict)
    rows: list[list[str]] = field(default_factory=list)

    def read(self, members: Members) -> None:
        """Adds the news of one part, whose table must list each of them once."""
        file, seen = members.label(NEWS), set[str]()
        for line, text in members.lines(NEWS, encoding="utf-8"):
            row = _fields(text, _NEWS_FIELDS, file, line)
            name = row[0]
            if name in seen:
                raise BadData(file, line, f"news {quoted(name)} is listed twice")
            if name.split() != [name]:
                raise BadData(
                    file, line, f"news id {quoted(name)} is blank or has a space"
                )
            seen.add(name)
            if name not in self.indices:
                self.indices[name] = len(self.rows)
                self.rows.append(row[:5])

    def catalog(self) -> Catalog:
        """All news, those that nobody was shown included."""
        ids, categories, subcategories, titles, abstracts = zip(*self.rows, strict=True)
        features: Features = {
            "category": Category.of(categories),
            "subcategory": Category.of(subcategories),
            "abstract": Text(Strings.of(abstracts)),
        }
        return Catalog(Strings.of(ids), Strings.of(titles), features)


@dataclass
class BehaviorTable:
    """The impressions of all parts read so far, in the order of the files."""

    news: dict[str, int]
    user_numbers: dict[str, int] = field(default_factory=dict)
    # Machine integers: lists of Python's would take several times the memory.
    users: array[int] = field(default_factory=lambda: array("i"))
    times: array[int] = field(default_factory=lambda: array("q"))
    shown: _Rows = field(default_factory=lambda: _Rows())
    clicked: bytearray = field(default_factory=bytearray)
    histories: _Rows = field(default_factory=lambda: _Rows())
    history_of: array[int] = field(default_factory=lambda: array("i"))
    parts: list[str] = field(default_factory=list)
    _known: dict[tuple[int, str], int] = field(default_factory=dict)

    def read(self, members: Members, part: str) -> None:
        """Adds the impressions of one part, under its name."""
        file, numbers = members.label(BEHAVIORS), set[str]()
        for line, text in members.lines(BEHAVIORS, encoding="utf-8"):
            row = _fields(text, _BEHAVIOR_FIELDS, file, line)
            try:
                _check_number(row[0], numbers)
                self._add(*row[1:])
            except _Problem as problem:
                raise BadData(file, line, str(problem)) from None
            self.parts.append(part)

    def _add(self, user: str, time: str, history: str, candidates: str) -> None:
        if user.split() != [user]:
            raise _Problem(f"user {quoted(user)} is blank or has a space")
        place = self.user_numbers.setdefault(user, len(self.user_numbers))
        self._add_time(time)
        self.users.append(place)
        self.history_of.append(self._history(place, history))
        self._add_candidates(candidates.split())

    def _add_time(self, text: str) -> None:
        is_known = text != NULL
        # All lines have a time or none has: a mix could not be put in order.
        if self.users and is_known != bool(self.times):
            raise _Problem(f"time {quoted(text)} {_TIME_EXPECTED}")
        if is_known:
            self.times.append(_seconds(text))

    def _history(self, user: int, text: str) -> int:
        """The row of this history; a user's repeated one is kept once."""
        # By user: shared histories of different users stay apart.
        if (user, text) not in self._known:
            self._known[user, text] = self.histories.add(self._found(text.split()))
        return self._known[user, text]

    def _add_candidates(self, candidates: list[str]) -> None:
        labels = [candidate[-2:] for candidate in candidates]
        if not labels:
            raise _Problem("shows no news")
        if not _LABELS.issuperset(labels):
            odd = next(c for c in candidates if c[-2:] not in _LABELS)
            raise _Problem(f"candidate {quoted(odd)} must end with its label, -0 or -1")
        self.shown.add(self._found([candidate[:-2] for candidate in candidates]))
        self.clicked.extend(label == "-1" for label in labels)

    def _found(self, ids: list[str]) -> list[int]:
        try:
            return [self.news[name] for name in ids]
        except KeyError as missing:
            raise _Problem(f"news {quoted(missing.args[0])} is not in {NEWS}") from None

    def profiles(self) -> Profiles:
        """Who occurs, in the order of their first line; nothing is told of them."""
        return Profiles(Strings.of(self.user_numbers))

    def impressions(self) -> Impressions:
        """All impressions; parts are named where there are several."""
        has_parts = len(set(self.parts)) > 1
        return Impressions.of_columns(
            np.array(self.users, np.int32),
            self.shown.ragged(),
            clicked=np.frombuffer(self.clicked, np.bool_),
            histories=self.histories.ragged(),
            history_of=np.array(self.history_of, np.int32),
            times=np.array(self.times, np.int64) if self.times else None,
            parts=Category.of(self.parts) if has_parts else None,
            n_users=len(self.user_numbers),
            n_items=len(self.news),
        )


class _Problem(Exception):
    """A problem with a line; whoever knows its number turns it into `BadData`."""


@dataclass
class _Rows:
    """Rows of different lengths that grow by one row at a time."""

    values: array[int] = field(default_factory=lambda: array("i"))
    lengths: array[int] = field(default_factory=lambda: array("q"))

    def add(self, row: list[int]) -> int:
        """Appends a row and gives its index."""
        self.values.extend(row)
        self.lengths.append(len(row))
        return len(self.lengths) - 1

    def ragged(self) -> Ragged:
        lengths = np.array(self.lengths, np.int64)
        return Ragged.of_lengths(lengths, np.array(self.values, np.int32))


def written_time(seconds: int) -> str:
    """A time as MIND writes it.

    >>> written_time(1573808122)
    '11/15/2019 8:55:22 AM'
    """
    t = datetime.fromtimestamp(seconds, UTC)
    hour, half = (t.hour + 11) % 12 + 1, "AM" if t.hour < 12 else "PM"
    clock = f"{hour}:{t.minute:02}:{t.second:02} {half}"
    return f"{t.month}/{t.day}/{t.year} {clock}"


def _fields(text: str, n: int, file: str, line: int) -> list[str]:
    row = text.split("\t")
    if len(row) != n:
        raise BadData(file, line, f"{len(row)} fields separated by tabs, expected {n}")
    return row


def _check_number(text: str, seen: set[str]) -> None:
    """Refuses an impression number that is none or comes twice; `null` may repeat."""
    if text == NULL:
        return
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        raise _Problem(f"impression {quoted(text)} must be a whole number or 'null'")
    if text in seen:
        raise _Problem(f"impression {text} occurs twice")
    seen.add(text)


def _seconds(text: str) -> int:
    found = _TIME.fullmatch(text)
    hour = int(found[2]) if found else 0
    if not found or not 1 <= hour <= 12:
        raise _Problem(f"time {quoted(text)} {_TIME_EXPECTED}")
    hours = hour % 12 + 12 * (found[5] == "PM")  # 12 AM is midnight, 12 PM noon
    return _midnight(found[1]) + 3600 * hours + 60 * int(found[3]) + int(found[4])


@lru_cache(maxsize=1024)
def _midnight(day: str) -> int:
    """The first second of a day; a week of impressions has only a few days."""
    try:
        start = datetime.strptime(day, "%m/%d/%Y").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise _Problem(f"there is no day {quoted(day)} (month/day/year)") from None
    if start < 0:
        raise _Problem(f"day {quoted(day)} is before 1970")
    return int(start)
