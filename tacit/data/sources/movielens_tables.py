"""The tables beside MovieLens ratings: movies and people, in each release's dialect.

Tables are small, so they are read a line at a time. Every table gives its numeric ids
and what is known of each row, in the order of the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64

from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Categories, Category, Features, Numeric
from tacit.data.sources.members import Members
from tacit.data.strings import Strings
from tacit.errors import BadData

# The 19 flags at the end of a line of u.item, in the order of u.genre.
_FLAGS = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery"),
    *("Romance", "Sci-Fi", "Thriller", "War", "Western"),
)
_AGES = {
    **{"1": "Under 18", "18": "18-24", "25": "25-34", "35": "35-44"},
    **{"45": "45-49", "50": "50-55", "56": "56+"},
}
_OCCUPATIONS = (
    *("other", "academic/educator", "artist", "clerical/admin"),
    *("college/grad student", "customer service", "doctor/health care"),
    *("executive/managerial", "farmer", "homemaker", "K-12 student", "lawyer"),
    *("programmer", "retired", "sales/marketing", "scientist", "self-employed"),
    *("technician/engineer", "tradesman/craftsman", "unemployed", "writer"),
)
_NO_GENRE = {"(no genres listed)", "unknown", ""}
_YEAR = re.compile(r"\((\d{4})[^()]*\)\s*$")  # "(1995)", "(2006–2007)"

Ids = Int64[np.ndarray, "rows"]
Row = tuple[int, Sequence[str]]  # line number, fields


@dataclass
class _Table:
    """Checks and collects the rows of one file."""

    file: str
    ids: list[int] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def add(self, number: int, text: str) -> None:
        """Take a row's id; ids are whole numbers and occur once."""
        if not (text.isascii() and text.isdecimal() and len(text) <= 18):
            raise BadData(self.file, number, f"id {text!r} must be a whole number >= 0")
        if int(text) in self.seen:
            raise BadData(self.file, number, f"id {text} occurs twice")
        self.ids.append(int(text))
        self.seen.add(int(text))

    def known(
        self, number: int, column: str, value: str, allowed: Sequence[str]
    ) -> str:
        """The value, if it is one of those allowed."""
        if value not in allowed:
            problem = f"{column}={value!r} must be one of {', '.join(allowed)}"
            raise BadData(self.file, number, problem)
        return value

    def strings(self) -> Strings:
        """The ids as text."""
        return Strings.of(map(str, self.ids))


def movies_with_flags(members: Members) -> tuple[Ids, Catalog]:
    """`u.item` of 100K: `id|title|release|video|url|` and 19 genre flags, Latin-1."""
    name = "u.item"
    table, rows = _Table(members.label(name)), []
    for number, fields in _split(members, name, "|", 5 + len(_FLAGS), "latin-1"):
        flags = [table.known(number, "genre flag", f, "01") for f in fields[5:]]
        genres = [g for g, flag in zip(_FLAGS, flags, strict=True) if flag == "1"]
        table.add(number, fields[0])
        rows.append((fields[1], genres))
    return _movies(table, rows)


def movies_dat(*, encoding: str) -> Callable[[Members], tuple[Ids, Catalog]]:
    """`movies.dat` of 1M and 10M: `id::title::genre|genre`."""

    def read(members: Members) -> tuple[Ids, Catalog]:
        return _listed(
            members, "movies.dat", _split(members, "movies.dat", "::", 3, encoding)
        )

    return read


def movies_csv(members: Members) -> tuple[Ids, Catalog]:
    """`movies.csv` of 20M and later: quoted CSV with a header, UTF-8."""
    return _listed(members, "movies.csv", _csv(members, "movies.csv"))


def people_piped(members: Members) -> tuple[Ids, Profiles]:
    """`u.user` of 100K: `id|age|gender|occupation|zip`; ages also as 1M's groups."""
    table, rows = _Table(members.label("u.user")), []
    for number, fields in _split(members, "u.user", "|", 5, "latin-1"):
        table.add(number, fields[0])
        if not (fields[1].isascii() and fields[1].isdecimal() and len(fields[1]) < 4):
            problem = f"age={fields[1]!r} must be a whole number of years"
            raise BadData(table.file, number, problem)
        table.known(number, "gender", fields[2], ("F", "M"))
        rows.append((_age_group(int(fields[1])), *fields[2:], fields[1]))
    ids, profiles = _people(table, rows)
    ages = Numeric(np.array([row[4] for row in rows], np.float32))
    return ids, Profiles(profiles.ids, {**profiles.features, "age": ages})


def people_dat(members: Members) -> tuple[Ids, Profiles]:
    """`users.dat` of 1M: `id::gender::age code::occupation code::zip`."""
    table, rows = _Table(members.label("users.dat")), []
    codes = [str(code) for code in range(len(_OCCUPATIONS))]
    for number, fields in _split(members, "users.dat", "::", 5, "latin-1"):
        table.add(number, fields[0])
        gender = table.known(number, "gender", fields[1], ("F", "M"))
        age = _AGES[table.known(number, "age", fields[2], tuple(_AGES))]
        job = _OCCUPATIONS[int(table.known(number, "occupation", fields[3], codes))]
        rows.append((age, gender, job, fields[4]))
    return _people(table, rows)


def _listed(members: Members, name: str, rows: Iterator[Row]) -> tuple[Ids, Catalog]:
    """Movies whose genres stand in one field, separated by bars."""
    table, found = _Table(members.label(name)), []
    for number, (movie, title, genres) in rows:
        table.add(number, movie)
        found.append((title, genres.split("|")))
    return _movies(table, found)


def _movies(table: _Table, rows: list[tuple[str, list[str]]]) -> tuple[Ids, Catalog]:
    titles = [title for title, _ in rows]
    genres = [[g for g in genres if g not in _NO_GENRE] for _, genres in rows]
    features: Features = {
        "genres": Categories.of(genres),
        "year": Numeric(np.array([_year(title) for title in titles], np.float32)),
    }
    catalog = Catalog(table.strings(), Strings.of(titles), features)
    return np.array(table.ids, np.int64), catalog


def _people(table: _Table, rows: Sequence[Sequence[str]]) -> tuple[Ids, Profiles]:
    names = ("age_group", "gender", "occupation", "zip")
    features = {name: Category.of([r[k] for r in rows]) for k, name in enumerate(names)}
    return np.array(table.ids, np.int64), Profiles(table.strings(), features)


def _split(
    members: Members, name: str, separator: str, fields: int, encoding: str
) -> Iterator[Row]:
    """Lines cut at every separator; another number of fields is malformed."""
    for number, line in members.lines(name, encoding=encoding):
        row = line.split(separator)
        if len(row) != fields:
            problem = f"{len(row)} fields separated by '{separator}', expected {fields}"
            raise BadData(members.label(name), number, problem)
        yield number, row


def _csv(members: Members, name: str) -> Iterator[Row]:
    """Rows of `movieId,title,genres` after its header."""
    header = ["movieId", "title", "genres"]
    text = (f"{line}\n" for _, line in members.lines(name, encoding="utf-8-sig"))
    reader = csv.reader(text, strict=True)
    try:
        for row in reader:
            if reader.line_num == 1 and row != header:
                problem = f"header {row} must be {header}"
                raise BadData(members.label(name), 1, problem)
            if len(row) != len(header):
                problem = f"{len(row)} fields, expected {len(header)}"
                raise BadData(members.label(name), reader.line_num, problem)
            if reader.line_num > 1:
                yield reader.line_num, row
    except csv.Error as error:
        raise BadData(members.label(name), reader.line_num, str(error)) from None


def _year(title: str) -> float:
    found = _YEAR.search(title)
    return float(found[1]) if found else float("nan")


def _age_group(age: int) -> str:
    """The group of 1M that an age in years belongs to."""
    return [
        label for least, label in _AGES.items() if age >= int(least) or least == "1"
    ][-1]
