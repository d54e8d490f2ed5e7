"""Netflix Prize: a hundred million ratings of one to five stars, 1999 to 2005.

    1:                      the movie that the following lines are about
    1488844,3,2005-09-06    customer, stars, day

in `training_set/mv_0000001.txt` and so on, a movie each, or, as it is passed on today,
in four files `combined_data_1.txt`; beside them `movie_titles.txt` (or `.csv`) with a
number, a year and a title. The official archive is a tar within a tar.gz. Probe and
qualifying set are not read: they have no ratings, or repeat some.

Source: J. Bennett and S. Lanning, "The Netflix Prize", KDD Cup 2007, and the README of
the archive. Only movies with a rating are in the data set. A time is the day's first
second, in UTC.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, Int64, UInt8
from numpy.typing import NDArray

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Numeric
from tacit.data.interactions import Interactions
from tacit.data.parsing.archive_members import decode_line
from tacit.data.parsing.ids import Ids, texts
from tacit.data.parsing.number_tables import numbers_at, whole_lines
from tacit.data.parsing.quote import quoted
from tacit.data.parsing.release_files import ReleaseFile, files_of
from tacit.data.ragged import offsets_of
from tacit.data.sources.source import Archived
from tacit.data.strings import Strings
from tacit.errors import BadData

_RATINGS = re.compile(r"mv_[0-9]{7}\.txt|combined_data_[0-9]+\.txt")
_TITLES = ("movie_titles.txt", "movie_titles.csv")
_LINE = "'customer,rating,YYYY-MM-DD' with a rating from 1 to 5"
_TAIL = len(",3,2005-09-06")  # what follows the customer
_NEWLINE, _RETURN, _COLON, _COMMA, _DASH, _ZERO = b"\n\r:,-0"
_AT_ONCE = 1 << 20  # ratings that are ordered by day
_SECONDS = 86_400  # of a day
_UNKNOWN = "NULL"  # a year

Lines = Int64[np.ndarray, "lines"]
Bytes = UInt8[np.ndarray, "bytes"]
Offsets = Int64[np.ndarray, "customers_and_one"]


def parse(archive: Path) -> Dataset:
    """The data set in the archive, or in a folder with its files."""
    log, titles = _Log(), None
    for file in files_of(archive):
        if _RATINGS.fullmatch(file.name):
            log.read(file)
        elif file.name in _TITLES:
            titles = _titles(file)
    if titles is None:
        raise BadData(archive, None, f"has no {' or '.join(_TITLES)}; get it whole")
    if not log.rated:
        problem = (
            "has no rating in training_set/mv_0000001.txt … or combined_data_1.txt …"
        )
        raise BadData(archive, None, f"{problem}; get it whole")
    ids, catalog = titles
    for movie in log.rated.difference(ids.tolist()):
        where, line = log.begun[movie]
        raise BadData(where, line, f"movie {movie} is not among the titles")
    rows = np.flatnonzero(np.isin(ids, [*log.rated]))
    customers = np.array(sorted(log.n_ratings), np.int64)
    return Dataset(
        "netflix-prize",
        log.by_customer(customers, ids[rows]),
        catalog.take(rows),
        Profiles(texts(customers)),
        listed=catalog,
    )


@dataclass(frozen=True, eq=False)
class _Piece:
    """The ratings of a block of text, nine bytes each: numbers as narrow as they are.

    Every column is of an integer type.
    """

    customers: NDArray[Any]
    movies: NDArray[Any]
    stars: NDArray[Any]
    days: NDArray[Any]  # since 1970


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in the smallest integer type that has them all."""
    ends = np.min_scalar_type(column.min()), np.min_scalar_type(column.max())
    return column.astype(np.result_type(*ends))


class _Log:
    """The ratings read so far, in pieces."""

    def __init__(self) -> None:
        self.pieces: deque[_Piece] = deque()  # in the order of the files
        self.n_ratings: dict[int, int] = {}  # of each customer
        self.begun: dict[int, tuple[str, int]] = {}  # where each movie's lines begin
        self.rated: set[int] = set()  # those with a rating

    def by_customer(self, customers: Ids, movies: Ids) -> Interactions:
        """All ratings by customer and then by day, as `Interactions.of_columns` has.

        The pieces are given up as they are placed, and memory holds each rating
        once: an order of all ratings would need eight bytes for each.
        """
        counts = [self.n_ratings[customer] for customer in customers.tolist()]
        offsets, by_id = offsets_of(counts), np.argsort(movies)
        n, free = int(offsets[-1]), offsets[:-1].copy()
        items, stars = np.empty(n, np.int32), np.empty(n, np.uint8)
        days = np.empty(n, np.int32)
        while self.pieces:
            piece = self.pieces.popleft()
            who = np.searchsorted(customers, piece.customers)  # which are sorted
            # One after the other, a customer's ratings take the next free places.
            order = np.argsort(who, kind="stable")
            present, first, n_of = np.unique(
                who[order], return_index=True, return_counts=True
            )
            nth = np.arange(len(who)) - np.repeat(first, n_of)
            at = np.repeat(free[present], n_of) + nth
            free[present] += n_of
            about = by_id[np.searchsorted(movies, piece.movies, sorter=by_id)]
            items[at] = about[order]
            stars[at], days[at] = piece.stars[order], piece.days[order]
        for some in _runs(offsets):
            who = np.repeat(np.arange(len(some) - 1), np.diff(some))
            part = slice(some[0], some[-1])
            order = np.lexsort((days[part], who))
            for column in (items, stars, days):
                column[part] = column[part][order]
        values = stars.astype(np.float32)
        del stars
        times = days.astype(np.int64)
        del days
        times *= _SECONDS
        return Interactions(offsets, items, values, times, len(movies))

    def read(self, file: ReleaseFile) -> None:
        """Take the ratings of one file."""
        line, movie = 1, -1  # no movie yet
        for block in whole_lines(file.stream, line, file.label):
            movie, n = self._read_block(block, movie, line, file.label)
            line += n
        if line == 1:
            raise BadData(file.label, None, "is empty; expected 'movie:' and ratings")

    def _read_block(
        self, block: bytes, movie: int, line: int, file: str
    ) -> tuple[int, int]:
        """The movie that the next block goes on with, and the lines of this one."""
        text = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(text == _NEWLINE)
        starts = np.concatenate([[0], ends[:-1] + 1])
        ends = ends - (text[ends - 1] == _RETURN)  # CRLF
        is_head = (ends > starts) & (text[ends - 1] == _COLON)
        heads = np.flatnonzero(is_head)
        numbers = [movie]
        for row in heads.tolist():
            field = block[starts[row] : ends[row] - 1]
            numbers.append(self._begin(field, line + row, file))
        about = np.array(numbers, np.int32)[np.cumsum(is_head)][~is_head]
        at = np.flatnonzero(~is_head)
        if movie < 0 and len(at) and not is_head[0]:
            raise BadData(file, line, "a rating must follow a line 'movie:'")
        if not len(at):  # only lines 'movie:'
            return numbers[-1], len(ends)
        customers, stars, days, is_bad = _ratings(text, starts[at], ends[at])
        if is_bad.any():
            row = int(at[is_bad.argmax()])
            shown = quoted(block[starts[row] : ends[row]])
            raise BadData(file, line + row, f"{shown} must be {_LINE}, or 'movie:'")
        self.rated.update(np.unique(about).tolist())
        for customer, n in zip(
            *(column.tolist() for column in np.unique(customers, return_counts=True)),
            strict=True,
        ):
            self.n_ratings[customer] = self.n_ratings.get(customer, 0) + n
        columns = (customers, about, stars, days)
        self.pieces.append(_Piece(*map(_narrow, columns)))
        return numbers[-1], len(ends)

    def _begin(self, field: bytes, line: int, file: str) -> int:
        if not (field.isdigit() and len(field) <= 9):
            problem = f"movie {quoted(field)} must be a whole number"
            raise BadData(file, line, problem)
        movie = int(field)
        if movie in self.begun:
            problem = f"movie {movie} occurs twice; is the release there twice?"
            raise BadData(file, line, problem)
        self.begun[movie] = file, line
        return movie


def _runs(offsets: Offsets) -> Iterator[Offsets]:
    """The offsets of some customers after the others, with few ratings in each run."""
    first = 0
    while first < len(offsets) - 1:
        last = int(np.searchsorted(offsets, offsets[first] + _AT_ONCE, "right")) - 1
        last = max(last, first + 1)  # a single customer may have more
        yield offsets[first : last + 1]
        first = last


def _ratings(
    text: Bytes, starts: Lines, ends: Lines
) -> tuple[
    Int32[np.ndarray, "lines"],
    UInt8[np.ndarray, "lines"],
    Int32[np.ndarray, "lines"],
    Bool[np.ndarray, "lines"],
]:
    """Customers, stars, days since 1970, and which lines are no rating.

    Every field but the customer has a fixed width, counted from the end.
    """
    cut = ends - _TAIL
    places = np.maximum(cut, 0)[:, None] + np.arange(_TAIL)
    tail = text[np.minimum(places, len(text) - 1)]  # of a line that is too short
    customers, _, is_bad = numbers_at(text, starts, np.maximum(cut, starts), False)
    is_bad |= (cut < starts) | (customers >= 2**31)
    for place, mark in ((0, _COMMA), (2, _COMMA), (7, _DASH), (10, _DASH)):
        is_bad |= tail[:, place] != mark
    digits = tail.astype(np.int64) - _ZERO
    dated = digits[:, [3, 4, 5, 6, 8, 9, 11, 12]]
    is_bad |= ((dated < 0) | (dated > 9)).any(axis=1)
    stars = digits[:, 1]
    is_bad |= (stars < 1) | (stars > 5)
    days, is_no_day = _days(dated)
    return customers.astype(np.int32), stars.astype(np.uint8), days, is_bad | is_no_day


def _days(
    digits: Int64[np.ndarray, "lines 8"],
) -> tuple[Int32[np.ndarray, "lines"], Bool[np.ndarray, "lines"]]:
    """Days since 1970 of YYYYMMDD, and which are no day of a calendar."""
    year = digits[:, :4] @ np.array([1000, 100, 10, 1])
    month = digits[:, 4:6] @ np.array([10, 1])
    day = digits[:, 6:] @ np.array([10, 1])
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    is_bad = (month < 1) | (month > 12) | (days.astype("datetime64[M]") != months)
    return days.astype(np.int64).astype(np.int32), is_bad


def _titles(file: ReleaseFile) -> tuple[Ids, Catalog]:
    """`number,year,title`, Latin-1; a title may hold commas, a year may be NULL."""
    found: dict[int, tuple[float, str]] = {}
    for line, (number, year, title) in _title_fields(file):
        if not (number.isdecimal() and number.isascii() and len(number) <= 9):
            problem = f"number={quoted(number)} must be a whole number"
            raise BadData(file.label, line, problem)
        if not (year == _UNKNOWN or re.fullmatch("[0-9]{4}", year)):
            problem = f"year={quoted(year)} must be four digits or {_UNKNOWN}"
            raise BadData(file.label, line, problem)
        if int(number) in found:
            raise BadData(file.label, line, f"number {number} occurs twice")
        known = float("nan") if year == _UNKNOWN else float(year)
        found[int(number)] = (known, title)
    if not found:
        raise BadData(file.label, None, "is empty; expected 'number,year,title'")
    ids = np.fromiter(found, np.int64, len(found))
    years = np.array([year for year, _ in found.values()], np.float32)
    titles = Strings.of([title for _, title in found.values()])
    return ids, Catalog(texts(ids), titles, {"year": Numeric(years)})


def _title_fields(file: ReleaseFile) -> Iterator[tuple[int, list[str]]]:
    line = 1
    for block in whole_lines(file.stream, line, file.label):
        for raw in block.split(b"\n")[:-1]:
            text = decode_line(raw, "latin-1", file.label, line)
            fields = text.split(",", 2)
            if len(fields) != 3:
                problem = f"{quoted(raw)} is not 'number,year,title'"
                raise BadData(file.label, line, problem)
            yield line, fields
            line += 1


SOURCES = {
    "netflix-prize": Archived(
        name="netflix-prize",
        title="Netflix Prize, 100 million ratings",
        home="https://archive.org/details/nf_prize_dataset.tar",
        terms=(
            "Research use, no redistribution, no attempt to identify anybody (the "
            "README in the archive has the full text). No longer given out by Netflix."
        ),
        citation=(
            "James Bennett and Stan Lanning. 2007. The Netflix Prize. Proceedings of "
            "KDD Cup and Workshop 2007."
        ),
        archives=(
            "nf_prize_dataset.tar.gz",
            "nf_prize_dataset.tar",
            "netflix-prize-data.zip",
        ),
        folder="nf_prize_dataset",
        parse=parse,
    )
}
