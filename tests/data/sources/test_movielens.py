"""MovieLens in its three formats, invented and real.

Also tests `tacit.data.sources.movielens_tables`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from data.sources.releases import (
    ML_1M,
    ML_100K,
    ML_CSV,
    RELEASES,
    edited,
    parsed,
    write,
)

from tacit.data.sources import load, names
from tacit.errors import BadData

MOVIELENS = {n: r for n, r in RELEASES.items() if n.startswith("movielens")}


def test_every_release_is_tried_here():
    assert set(MOVIELENS) == {name for name in names() if name.startswith("movielens")}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", MOVIELENS)
def test_the_log_is_by_user_in_order_of_time(name, packed, tmp_path):
    write(name, tmp_path, MOVIELENS[name].files, packed=packed)
    found = load(name, where=tmp_path, cache=tmp_path / "cache")
    log = found.interactions
    assert found.name == name
    assert list(found.profiles.ids) == ["1", "2"]  # user 3 rated nothing
    assert list(found.catalog.ids) == ["10", "11"]  # nobody rated movie 12
    assert log.offsets.tolist() == [0, 1, 3]
    assert log.items.tolist() == [1, 0, 1]
    low = 1.0 if name in ("movielens-100k", "movielens-1m") else 0.5
    middle = 3.0 if low == 1 else 3.5
    assert log.values.tolist() == [5.0, middle, low]
    assert np.diff(log.times[1:]).tolist() == [1]


@pytest.mark.parametrize("name", ["movielens-100k", "movielens-1m"])
def test_the_list_of_movies_has_those_that_nobody_rated(name, tmp_path):
    found = parsed(name, tmp_path)
    assert list(found.listed.ids) == ["10", "11", "12"]
    whole = found.declared()
    assert whole.interactions.n_items == 3
    assert list(whole.interactions.items) == list(found.interactions.items)


@pytest.mark.parametrize("name", MOVIELENS)
def test_titles_genres_and_years(name, tmp_path):
    catalog = parsed(name, tmp_path, MOVIELENS[name].files).catalog
    is_csv = MOVIELENS[name].files is ML_CSV
    assert catalog.titles[0] == ('Café, "The" (1995)' if is_csv else "Café (1995)")
    genres, year = catalog.features["genres"], catalog.features["year"]
    assert genres[0] == ("Action", "Western")
    assert genres[1] == (("Drama",) if name == "movielens-1m" else ())
    assert year[0] == 1995
    assert year[1] == 2006 if is_csv else math.isnan(year[1])


def test_users_of_1m(tmp_path):
    told = parsed("movielens-1m", tmp_path, ML_1M).profiles.features
    assert {name: (f[0], f[1]) for name, f in told.items()} == {
        "age_group": ("Under 18", "56+"),
        "gender": ("F", "M"),
        "occupation": ("K-12 student", "self-employed"),
        "zip": ("48067", "70072"),
    }


def test_users_of_100k_have_ages_and_groups(tmp_path):
    told = parsed("movielens-100k", tmp_path, ML_100K).profiles.features
    assert {name: (f[0], f[1]) for name, f in told.items()} == {
        "age_group": ("18-24", "Under 18"),
        "gender": ("M", "F"),
        "occupation": ("technician", "other"),
        "zip": ("85711", "T8H1N"),
        "age": (24.0, 7.0),
    }


def test_repeated_ratings_are_kept(tmp_path):
    again = ML_1M | {"ratings.dat": ML_1M["ratings.dat"] * 2}
    log = parsed("movielens-1m", tmp_path, again).interactions
    assert len(log) == 6
    assert len(log.distinct()) == 3


@pytest.mark.parametrize(
    ("name", "member", "old", "new", "line", "problem"),
    [
        ("movielens-1m", "ratings.dat", b"5::", b"6::", 2, "rating 6 must be in 1, 2"),
        ("movielens-1m", "ratings.dat", b"5::", b"4.5::", 2, "rating 4.5 must be in 1"),
        ("movielens-1m", "ratings.dat", b"5::", b"0::", 2, "rating 0 must be in"),
        (
            "movielens-10m",
            "ratings.dat",
            b"3.5",
            b"3.7",
            1,
            "rating 3.7 must be in 0.5",
        ),
        (
            "movielens-20m",
            "ratings.csv",
            b"5.0",
            b"5.5",
            3,
            "rating 5.5 must be in 0.5",
        ),
        ("movielens-20m", "ratings.csv", b"5.0", b"nan", 3, "rating='nan'"),
        ("movielens-1m", "ratings.dat", b"::978300000", b"::-1", 2, "time='-1'"),
        ("movielens-1m", "ratings.dat", b"1::11", b"1::99", 2, "movie 99 is not in"),
        ("movielens-1m", "ratings.dat", b"1::11", b"9::11", 2, "user 9 is not in"),
        ("movielens-20m", "ratings.csv", b"1,11", b"1,99", 3, "movie 99 is not in"),
        ("movielens-20m", "ratings.csv", b"userId", b"user", 1, "must be 'userId,"),
        ("movielens-100k", "u.data", b"1\t11\t", b"1 11\t", 2, "is not 'user\tmovie"),
        ("movielens-1m", "movies.dat", b"11::", b"10::", 2, "id 10 occurs twice"),
        ("movielens-1m", "movies.dat", b"11::", b"x::", 2, "id='x' must be a whole"),
        ("movielens-1m", "movies.dat", b"::Drama", b"", 2, "2 fields separated by"),
        ("movielens-10m", "movies.dat", b"\xc3\xa9", b"\xe9", 1, "is not utf-8"),
        ("movielens-1m", "users.dat", b"2::M", b"1::M", 2, "id 1 occurs twice"),
        ("movielens-1m", "users.dat", b"2::M", b"2::m", 2, "gender='m' must be one of"),
        ("movielens-1m", "users.dat", b"56::", b"57::", 2, "age='57' must be one of"),
        ("movielens-1m", "users.dat", b"::16::", b"::21::", 2, "occupation='21'"),
        ("movielens-1m", "users.dat", b"::70072", b"", 2, "4 fields separated by '::'"),
        ("movielens-100k", "u.user", b"2|7|", b"2|x|", 2, "age='x' must be a whole"),
        ("movielens-100k", "u.user", b"|F|", b"|?|", 2, "gender='?'"),
        ("movielens-100k", "u.item", b"||||1|", b"||||2|", 2, "unknown='2' must be"),
        ("movielens-100k", "u.item", b"||||1|", b"||||", 2, "23 fields"),
        ("movielens-20m", "movies.csv", b"11,Series", b"11,a,b", 3, "4 fields"),
        ("movielens-20m", "movies.csv", b'"Caf', b'"a"Caf', 2, "expected after '\"'"),
        ("movielens-20m", "movies.csv", b"title", b"name", 1, "header"),
        ("movielens-20m", "movies.csv", b"11,", b"10,", 3, "movieId 10 occurs twice"),
    ],
)
def test_odd_input_is_named(name, member, old, new, line, problem, tmp_path):
    with pytest.raises(BadData) as caught:
        parsed(name, tmp_path, edited(name, member, old, new))
    assert problem in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize("name", MOVIELENS)
def test_empty_and_missing_members_are_named(name, tmp_path):
    files = MOVIELENS[name].files
    for member in files:
        with pytest.raises(BadData, match=f"{member}.* is empty"):
            parsed(name, tmp_path, files | {member: b""})
        fewer = {other: text for other, text in files.items() if other != member}
        with pytest.raises(BadData, match=f"has no .*{member}"):
            parsed(name, tmp_path, fewer)


def test_a_table_of_movies_with_only_a_header(tmp_path):
    files = ML_CSV | {"movies.csv": b"movieId,title,genres\n"}
    with pytest.raises(BadData, match="table of movies has no rows"):
        parsed("movielens-25m", tmp_path, files)


@pytest.mark.data
def test_the_real_1m(real):
    found = real("movielens-1m")
    log, told = found.interactions, found.profiles.features
    assert (log.n_users, log.n_items, len(log)) == (6040, 3706, 1_000_209)
    assert log.values.mean(dtype=np.float64) == pytest.approx(3.5816, abs=1e-4)
    assert (log.times.min(), log.times.max()) == (956703932, 1046454590)
    assert np.bincount(told["gender"].codes).tolist() == [1709, 4331]  # F, M
    assert len(found.catalog.features["genres"].labels) == 18
    assert not np.isnan(found.catalog.features["year"].values).any()
    kept = found.filtered(min_value=4, min_interactions=5).interactions
    assert (kept.n_users, kept.n_items) == (6034, 3533)


@pytest.mark.data
def test_the_real_100k(real):
    found = real("movielens-100k")
    log, told = found.interactions, found.profiles.features
    assert (log.n_users, log.n_items, len(log)) == (943, 1682, 100_000)
    assert log.values.mean(dtype=np.float64) == pytest.approx(3.52986)
    assert np.bincount(told["gender"].codes).tolist() == [273, 670]
