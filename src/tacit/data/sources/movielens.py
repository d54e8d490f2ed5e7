"""MovieLens: five stars, from a hundred thousand ratings to thirty-two million.

Source: F. M. Harper and J. A. Konstan, "The MovieLens Datasets: History and Context",
ACM TiiS 5(4), 2015, and the README of each release. Only users and movies with at
least one rating are in the data set, in the order of their tables. Repeated ratings are
kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tacit.data.archives import Download
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.ids import Ids, anyone, match
from tacit.data.parsing.number_tables import Layout, check_scale, numbers_of
from tacit.data.sources import movielens_tables as tables
from tacit.data.sources.source import Archived

_FILES = "https://files.grouplens.org/datasets/movielens"
_HOME = "https://grouplens.org/datasets/movielens"
_TERMS = (
    "Research use with acknowledgement; no redistribution without permission; no "
    "commercial use without permission (the README in the archive has the full text)."
)
_TERMS_ELSEWHERE = (
    "Research use with acknowledgement; no commercial use without permission; whether "
    "it may be passed on differs by release (the README in the archive has the text)."
)
_CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History "
    "and Context. ACM Transactions on Interactive Intelligent Systems 5(4), Article 19."
)
_COLUMNS = ("user", "movie", "rating", "time")
_CSV_COLUMNS = ("userId", "movieId", "rating", "timestamp")


@dataclass(frozen=True)
class _Format:
    """The files of one release and what stands in them."""

    folder: str
    ratings: str
    layout: Layout
    movies: Callable[[Members], tuple[Ids, Catalog]]
    users: Callable[[Members], tuple[Ids, Profiles]] | None = None
    step: float = 0.5  # the smallest rating, and the distance between ratings; up to 5


def parse(name: str, release: _Format, archive: Path) -> Dataset:
    """The data set in an archive or an unpacked folder of a release."""
    members = Members(archive, release.folder)
    columns = numbers_of(members, release.ratings, release.layout)
    user, movie, stars, times = columns.values()
    file, first = members.label(release.ratings), release.layout.first_line
    check_scale(stars, "rating", step=release.step, most=5, file=file, first=first)
    movie_ids, catalog = release.movies(members)
    known = anyone(user) if release.users is None else release.users(members)
    user_ids, profiles = known
    # Movies and users without a rating are left out of the log's numbering.
    items, catalog_rows = match(movie, movie_ids, what="movie", file=file, first=first)
    users, user_rows = match(user, user_ids, what="user", file=file, first=first)
    log = Interactions.of_columns(
        users,
        items,
        values=stars,
        times=times,
        n_users=len(user_rows),
        n_items=len(catalog_rows),
    )
    return Dataset(
        name,
        log,
        catalog.take(catalog_rows),
        profiles.take(user_rows),
        listed=catalog,
    )


def _dat(folder: str, encoding: str, *, has_users: bool, step: float) -> _Format:
    return _Format(
        folder,
        "ratings.dat",
        Layout(_COLUMNS, "::", decimals=frozenset({"rating"})),
        tables.movies_dat(encoding=encoding),
        tables.users_dat if has_users else None,
        step,
    )


def _csv(folder: str) -> _Format:
    layout = Layout(_CSV_COLUMNS, ",", decimals=frozenset({"rating"}), header=True)
    return _Format(folder, "ratings.csv", layout, tables.movies_csv)


def _source(
    release: _Format, label: str, *, page: str, terms: str, download: Download
) -> Archived:
    file = download.url.rsplit("/", 1)[-1]
    name = file.removesuffix(".zip").replace("ml-", "movielens-")
    return Archived(
        name=name,
        title=f"MovieLens {label}",
        home=f"{_HOME}/{page}/",
        terms=terms,
        citation=_CITATION,
        archives=(file,),
        folder=release.folder,
        parse=partial(parse, name, release),
        download=download,
    )


_FORMAT_100K = _Format(
    "ml-100k",
    "u.data",
    Layout(_COLUMNS, "\t", decimals=frozenset({"rating"})),
    tables.movies_with_flags,
    tables.users_piped,
    step=1.0,
)
# Checksums are those of the .md5 files beside the archives. The "latest" archives
# change from time to time, so they have none.
_ALL = (
    _source(
        _FORMAT_100K,
        "100K",
        page="100k",
        terms=_TERMS,
        download=Download(
            f"{_FILES}/ml-100k.zip",
            md5="0e33842e24a9c977be4e0107933c0723",
            size=4_924_029,
        ),
    ),
    _source(
        _dat("ml-1m", "latin-1", has_users=True, step=1.0),
        "1M",
        page="1m",
        terms=_TERMS,
        download=Download(
            f"{_FILES}/ml-1m.zip", md5="c4d9eecfca2ab87c1945afe126590906"
        ),
    ),
    _source(
        _dat("ml-10M100K", "utf-8", has_users=False, step=0.5),
        "10M",
        page="10m",
        terms=_TERMS_ELSEWHERE,
        download=Download(
            f"{_FILES}/ml-10m.zip",
            md5="ce571fd55effeba0271552578f2648bd",
            size=65_566_137,
        ),
    ),
    _source(
        _csv("ml-20m"),
        "20M",
        page="20m",
        terms=_TERMS_ELSEWHERE,
        download=Download(
            f"{_FILES}/ml-20m.zip",
            md5="cd245b17a1ae2cc31bb14903e1204af3",
            size=198_702_078,
        ),
    ),
    _source(
        _csv("ml-25m"),
        "25M",
        page="25m",
        terms=_TERMS_ELSEWHERE,
        download=Download(
            f"{_FILES}/ml-25m.zip",
            md5="6b51fb2759a8657d3bfcbfc42b592ada",
            size=261_978_986,
        ),
    ),
    _source(
        _csv("ml-latest"),
        "latest",
        page="latest",
        terms=_TERMS_ELSEWHERE,
        download=Download(f"{_FILES}/ml-latest.zip"),
    ),
    _source(
        _csv("ml-latest-small"),
        "latest, small",
        page="latest",
        terms=_TERMS_ELSEWHERE,
        download=Download(f"{_FILES}/ml-latest-small.zip"),
    ),
)
SOURCES = {source.name: source for source in _ALL}
