"""The tables beside MovieLens ratings: movies and users, in each release's dialect.

Tables are small, so they are read a line at a time. Every table gives its numeric ids
and what is known of each row, in the order of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Categories, Category, Features, Numeric
from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.ids import Ids, Listing
from tacit.data.parsing.number_tables import Layout
from tacit.data.parsing.rows import Row, plain_rows, quoted_rows
from tacit.data.strings import Strings

# The 19 flags at the end of a line of u.item, in the order of u.genre.
_FLAGS = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery"),
    *("Romance", "Sci-Fi", "Thriller", "War", "Western"),
)
_AGES = {  # the codes of 1M's README; a code is the youngest age of its group
    **{"1": "Under 18", "18": "18-24", "25": "25-34", "35": "35-44"},
    **{"45": "45-49", "50": "50-55", "56": "56+"},
}
_OCCUPATIONS = (  # by their number in 1M's README
    *("other", "academic/educator", "artist", "clerical/admin"),
    *("college/grad student", "customer service", "doctor/health care"),
    *("executive/managerial", "farmer", "homemaker", "K-12 student", "lawyer"),
    *("programmer", "retired", "sales/marketing", "scientist", "self-employed"),
    *("technician/engineer", "tradesman/craftsman", "unemployed", "writer"),
)
_NO_GENRE = {"(no genres listed)", "unknown", ""}  # as different releases write it
_YEAR = re.compile(r"\((\d{4})[^()]*\)\s*$")  # "(1995)", "(2006–2007)"

_U_ITEM = Layout(("id", "title", "release", "video", "url", *_FLAGS), "|")
_U_USER = Layout(("id", "age", "gender", "occupation", "zip"), "|")
_MOVIES_DAT = Layout(("id", "title", "genres"), "::")
_MOVIES_CSV = Layout(("movieId", "title", "genres"), ",", header=True)
_USERS_DAT = Layout(("id", "gender", "age", "occupation", "zip"), "::")


def movies_with_flags(members: Members) -> tuple[Ids, Catalog]:
    """`u.item` of 100K: `id|title|release|video|url|` and 19 genre flags, Latin-1."""
    listing, found = Listing(), []
    for row in plain_rows(members, "u.item", _U_ITEM, encoding="latin-1"):
        listing.add(row, "id")
        genres = [genre for genre in _FLAGS if row.one_of(genre, ("0", "1")) == "1"]
        found.append((row["title"], genres))
    return _movies(listing, found)


def movies_dat(*, encoding: str) -> Callable[[Members], tuple[Ids, Catalog]]:
    """`movies.dat` of 1M and 10M: `id::title::genre|genre`."""

    def read(members: Members) -> tuple[Ids, Catalog]:
        rows = plain_rows(members, "movies.dat", _MOVIES_DAT, encoding=encoding)
        return _listed(rows, "id")

    return read


def movies_csv(members: Members) -> tuple[Ids, Catalog]:
    """`movies.csv` of 20M and later: quoted CSV with a header, UTF-8."""
    return _listed(quoted_rows(members, "movies.csv", _MOVIES_CSV), "movieId")


def users_piped(members: Members) -> tuple[Ids, Profiles]:
    """`u.user` of 100K: `id|age|gender|occupation|zip`; ages also as 1M's groups."""
    listing, found, ages = Listing(), [], []
    for row in plain_rows(members, "u.user", _U_USER, encoding="latin-1"):
        listing.add(row, "id")
        ages.append(row.whole("age"))
        gender = row.one_of("gender", ("F", "M"))
        found.append((_age_group(ages[-1]), gender, row["occupation"], row["zip"]))
    ids, profiles = _users(listing, found)
    age = Numeric(np.array(ages, np.float32))
    return ids, Profiles(profiles.ids, {**profiles.features, "age": age})


def users_dat(members: Members) -> tuple[Ids, Profiles]:
    """`users.dat` of 1M: `id::gender::age code::occupation code::zip`."""
    listing, found = Listing(), []
    codes = [str(code) for code in range(len(_OCCUPATIONS))]
    for row in plain_rows(members, "users.dat", _USERS_DAT, encoding="latin-1"):
        listing.add(row, "id")
        age = _AGES[row.one_of("age", _AGES)]
        gender = row.one_of("gender", ("F", "M"))
        job = _OCCUPATIONS[int(row.one_of("occupation", codes))]
        found.append((age, gender, job, row["zip"]))
    return _users(listing, found)


def _listed(rows: Iterable[Row], id_column: str) -> tuple[Ids, Catalog]:
    """Movies whose genres stand in one field, separated by bars."""
    listing, found = Listing(), []
    for row in rows:
        listing.add(row, id_column)
        found.append((row["title"], row["genres"].split("|")))
    return _movies(listing, found)


def _movies(
    listing: Listing, rows: Sequence[tuple[str, list[str]]]
) -> tuple[Ids, Catalog]:
    titles = [title for title, _ in rows]
    genres = [[g for g in genres if g not in _NO_GENRE] for _, genres in rows]
    features: Features = {
        "genres": Categories.of(genres),
        "year": Numeric(np.array([_year(title) for title in titles], np.float32)),
    }
    catalog = Catalog(listing.strings(), Strings.of(titles), features)
    return listing.ids, catalog


def _users(listing: Listing, rows: Sequence[tuple[str, ...]]) -> tuple[Ids, Profiles]:
    names = ("age_group", "gender", "occupation", "zip")
    features = {name: Category.of([r[k] for r in rows]) for k, name in enumerate(names)}
    return listing.ids, Profiles(listing.strings(), features)


def _year(title: str) -> float:
    found = _YEAR.search(title)
    return float(found[1]) if found else float("nan")


def _age_group(age: int) -> str:
    """The group of 1M that an age in years belongs to."""
    return [
        label for least, label in _AGES.items() if age >= int(least) or least == "1"
    ][-1]
