"""The Netflix Prize in every form it is passed on in, from files written here.

Also tests `tacit.data.parsing.release_files`.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
import zipfile

import numpy as np
import pytest
from data.sources.releases import NETFLIX, edited, parsed, write

from tacit.data.interactions import Interactions
from tacit.data.parsing import number_tables
from tacit.data.sources import load, netflix
from tacit.data.sources.netflix import parse
from tacit.errors import BadData

FILE, TITLES = "combined_data_1.txt", "movie_titles.txt"
COMBINED, LISTED = NETFLIX[FILE], NETFLIX[TITLES]
BY_MOVIE = {
    "training_set/mv_0000001.txt": COMBINED[: COMBINED.index(b"2:\n")],
    "training_set/mv_0000002.txt": COMBINED[COMBINED.index(b"2:\n") :],
}


def tar(files, mode="w"):
    """The bytes of a tar with these files, in this order."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as packed:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def official(place):
    """A tar of the training set within a tar.gz, as Netflix gave it out."""
    files = {
        "download/README": b"mv_0000001.txt is described here",
        "download/training_set.tar": tar(BY_MOVIE),
        "download/movie_titles.txt": LISTED,
    }
    path = place / "nf_prize_dataset.tar.gz"
    path.write_bytes(tar(files, "w:gz"))
    return path


def passed_on(place):
    """A zip of combined files."""
    path = place / "netflix-prize-data.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("movie_titles.csv", LISTED)
        out.writestr("combined_data_1.txt", COMBINED)
    return path


def combined_and_packed(place):
    """A folder with a gzip."""
    (place / "nf_prize_dataset").mkdir()
    path = place / "nf_prize_dataset"
    (path / "combined_data_1.txt.gz").write_bytes(gzip.compress(COMBINED))
    (path / "movie_titles.csv").write_bytes(LISTED.replace(b"\n", b"\r\n"))
    return path


def unpacked(place):
    files = {TITLES: LISTED, **BY_MOVIE}
    return write("netflix-prize", place, files, packed=False)


@pytest.mark.parametrize("form", [official, passed_on, combined_and_packed, unpacked])
@pytest.mark.parametrize("block", [16, 1 << 22])
def test_every_form_holds_the_same(form, block, tmp_path, monkeypatch):
    monkeypatch.setattr(number_tables, "_BLOCK", max(block, 48))
    form(tmp_path)
    found = load("netflix-prize", where=tmp_path, cache=tmp_path / "cache")
    log = found.interactions
    assert list(found.profiles.ids) == ["7", "9", "2649429"]
    assert list(found.catalog.ids) == ["1", "2"]
    assert list(found.catalog.titles) == ["Dinosaur Planet", "Café, the film"]
    years = found.catalog.features["year"].values
    np.testing.assert_array_equal(years, [2003, np.nan])
    assert list(found.listed.ids) == ["1", "2", "3"]
    assert log.offsets.tolist() == [0, 2, 3, 4]
    assert log.items.tolist() == [1, 0, 1, 0]  # by time
    assert log.values.tolist() == [5, 3, 1, 4]
    days = np.array(["1999-12-31", "2005-09-06", "2005-09-05", "2004-02-29"], "M8[s]")
    assert log.times.tolist() == days.astype(np.int64).tolist()


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        (b"7,3,", b"x,3,", 2, "must be 'customer,rating,YYYY-MM-DD'"),
        (b"7,3,", b"-7,3,", 2, "must be 'customer"),
        (b"7,3,", b",3,", 2, "must be 'customer"),
        (b"7,3,", b"99999999999,3,", 2, "must be 'customer"),
        (b"7,3,", b"7,6,", 2, "with a rating from 1 to 5"),
        (b"7,3,", b"7,0,", 2, "with a rating from 1 to 5"),
        (b"7,3,", b"7,3.5,", 2, "must be 'customer"),
        (b"7,3,", b"7,,", 2, "must be 'customer"),
        (b"2004-02-29", b"2005-02-29", 3, "must be 'customer"),
        (b"2004-02-29", b"2004-13-01", 3, "must be 'customer"),
        (b"2004-02-29", b"2004-02-00", 3, "must be 'customer"),
        (b"2004-02-29", b"29-02-2004", 3, "must be 'customer"),
        (b"2004-02-29", b"", 3, "must be 'customer"),
        (b"7,3,2005-09-06\n", b"\n", 2, "must be 'customer"),
        (b"1:\n", b"", 1, "must follow a line 'movie:'"),
        (b"1:\n", b"one:\n", 1, "movie 'one' must be a whole number"),
        (b"1:\n", b"2:\n", 4, "movie 2 occurs twice"),
        (b"1:\n", b"8:\n", 1, "movie 8 is not among the titles"),
    ],
)
def test_odd_ratings_are_named(old, new, line, problem, tmp_path):
    with pytest.raises(BadData) as caught:
        parsed("netflix-prize", tmp_path, edited("netflix-prize", FILE, old, new))
    assert problem in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        (b"1,2003", b"one,2003", 1, "number='one' must be a whole number"),
        (b"1,2003", b"1,03", 1, "year='03' must be four digits or NULL"),
        (b"3,1997", b"1,1997", 3, "number 1 occurs twice"),
        (b"3,1997,Character", b"3,1997", 3, "is not 'number,year,title'"),
    ],
)
def test_odd_titles_are_named(old, new, line, problem, tmp_path):
    files = edited("netflix-prize", TITLES, old, new)
    with pytest.raises(BadData) as caught:
        parsed("netflix-prize", tmp_path, files)
    assert problem in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize("kept", [TITLES, FILE])
def test_half_a_release_says_what_it_lacks(kept, tmp_path):
    with pytest.raises(BadData, match="get it whole"):
        parsed("netflix-prize", tmp_path, {kept: NETFLIX[kept]})


def test_a_torn_archive_is_bad_data(tmp_path):
    path = official(tmp_path)
    whole = path.read_bytes()
    for cut in (20, len(whole) // 2, len(whole) - 12):
        path.write_bytes(whole[:cut])
        with pytest.raises(BadData, match="not a sound tar or gzip"):
            parse(path)


def test_what_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = official(tmp_path)
    monkeypatch.setenv("TACIT_MOST_UNPACKED", "4096")
    with pytest.raises(BadData, match="unpacks to more than 4,096 bytes"):
        parse(path)


def test_memory_grows_by_the_columns_and_not_by_the_text(tmp_path, monkeypatch):
    """Three times as many lines: at most 24 bytes more for each."""
    monkeypatch.setattr(number_tables, "_BLOCK", 1 << 14)
    monkeypatch.setattr(netflix, "_AT_ONCE", 1 << 12)
    peaks = []
    for n in (50_000, 150_000):
        some = "".join(f"{2_000_000 + i},{1 + i % 5},2004-02-29\n" for i in range(500))
        lines = some * (n // 500)
        place = tmp_path / str(n)
        place.mkdir()
        (place / "combined_data_1.txt").write_text(f"1:\n{lines}")
        (place / "movie_titles.txt").write_bytes(LISTED)
        tracemalloc.start()
        log = parse(place).interactions
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(log) == n
    assert peaks[1] - peaks[0] < 24 * 100_000, peaks


@pytest.mark.parametrize("seed", range(4))
def test_the_log_is_that_of_its_columns(tmp_path, monkeypatch, seed):
    """Blocks of 200 bytes, runs of 7 ratings, days in any order, and ties."""
    monkeypatch.setattr(number_tables, "_BLOCK", 200)
    monkeypatch.setattr(netflix, "_AT_ONCE", 7)
    generator = np.random.default_rng(seed)
    columns, lines = [], []
    for movie in (2, 1, 3):
        lines.append(f"{movie}:")
        for _ in range(generator.integers(1, 60)):
            customer, stars = generator.integers(5, 15), generator.integers(1, 6)
            day = generator.integers(1, 6)
            columns.append((customer, movie, stars, day))
            lines.append(f"{customer},{stars},1970-01-0{day}")
    (tmp_path / "combined_data_1.txt").write_text("\n".join([*lines, ""]))
    (tmp_path / "movie_titles.txt").write_text("3,1990,C\n1,1991,A\n2,1992,B\n")
    found = parse(tmp_path)
    customer, movie, stars, day = np.array(columns).T
    ids, users = np.unique(customer, return_inverse=True)
    expected = Interactions.of_columns(
        users,
        np.array([1, 2, 0])[movie - 1],  # as the titles are listed
        values=stars,
        times=(day - 1) * 86_400,
        n_users=len(ids),
        n_items=3,
    )
    assert list(found.profiles.ids) == [str(one) for one in ids]
    for name in ("offsets", "items", "values", "times"):
        ours, theirs = getattr(found.interactions, name), getattr(expected, name)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.data
def test_the_real_one(real):
    log = real("netflix-prize").interactions
    assert (log.n_users, log.n_items, len(log)) == (480_189, 17_770, 100_480_507)
