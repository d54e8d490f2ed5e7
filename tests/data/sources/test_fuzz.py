"""Every loader, every file, harmed in every way: a clear error or a sound data set.

A clear error is `BadData` that names the file and, unless the whole file is at fault,
the line, in a message that fits on a screen. Whatever happens, the cache holds a whole
entry or none. For more rounds set `TACIT_FUZZ_ROUNDS`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from data.sources import harm
from data.sources.releases import RELEASES, Files, write
from quick import some_or_all

from tacit.data import cache
from tacit.data.dataset import Dataset
from tacit.data.sources import load, names, source
from tacit.data.sources.table import EventsTable
from tacit.errors import BadData
from tacit.keys import Key

ROUNDS = int(os.environ.get("TACIT_FUZZ_ROUNDS", "4"))  # in `make test-all`
TWINS = {  # of a source that takes part: the same code reads them
    *("movielens-20m", "movielens-25m", "movielens-latest"),
    *("mind-small", "mind-large", "adressa"),
}
SHOP: Files = {
    "shop.csv": (
        "who,what,when,how much,name,kind\n"
        'ann,7,1600000000,5,"Lamp, ""old"" one",light\n'
        "bob,x,2020-09-13T12:26:40,2.5,Café,\nann,x,1599999999,1e1,,seat\n"
    ).encode()
}
FILES = {"table": SHOP} | {n: r.files for n, r in RELEASES.items() if n not in TWINS}
WHOLE_FILE = re.compile(
    r"is empty|is missing|has no |not a sound|no lines after|nobody keeps|"
    r"is packed by|unpack"
)


def opened(name: str, place: Path, files: Files) -> Dataset:
    """A release, or the table, with these files; kept in the cache of `place`."""
    if name != "table":
        return load(name, where=write(name, place, files), cache=place / "cache")
    (place / "shop.csv").write_bytes(files["shop.csv"])
    columns = {"time": "when", "value": "how much", "title": "name"}
    table = EventsTable(
        place / "shop.csv", user="who", item="what", **columns, item_columns=("kind",)
    )
    return table.load(cache=place / "cache")


def outcome(place: Path, load_it: Callable[[], Dataset]) -> BadData | None:
    """The error, which must be a clear one; None for a data set, which must be kept."""
    place.mkdir(exist_ok=True)
    try:
        load_it()
    except BadData as found:
        error = found
    else:
        (kept,) = entries(place)
        assert cache.read(kept) is not None
        shutil.rmtree(place)  # many rounds are many files
        return None
    assert str(place) in error.file
    assert len(error.problem) < 1000
    assert error.line is not None or WHOLE_FILE.search(error.problem), str(error)
    assert not entries(place)
    return error


def entries(place: Path) -> list[Path]:
    parsed = cache.entry(place / "cache", "")
    return list(parsed.iterdir()) if parsed.exists() else []


def harmed(name: str, member: str, how: harm.Harm, turn: int) -> Files:
    draw = Key.from_seed(turn).at(name, member, how.__name__).generator()
    return FILES[name] | {member: how(FILES[name][member], draw)}


def test_every_source_that_reads_files_takes_part():
    reading = {name for name in names() if source(name).archives}
    assert reading - TWINS == set(FILES) - {"table"}


@pytest.mark.parametrize("name", FILES)
def test_unharmed_they_load(name, tmp_path):
    assert outcome(tmp_path, lambda: opened(name, tmp_path, FILES[name])) is None


@pytest.mark.parametrize(
    "how",
    [
        *(harm.flip, harm.cut, harm.insert, harm.replace_field, harm.shuffle_lines),
        *(harm.swap_columns, harm.drop_column, harm.double_column, harm.long_field),
    ],
)
@pytest.mark.parametrize("name", FILES)
@some_or_all("rounds", 1, ROUNDS)
def test_harm_by_chance_is_named_or_harmless(name, how, rounds, tmp_path):
    for turn in range(rounds):
        for number, member in enumerate(FILES[name]):
            files = harmed(name, member, how, turn)
            place = tmp_path / f"{turn}-{number}"
            outcome(place, partial(opened, name, place, files))


@pytest.mark.parametrize(
    "how",
    [
        *(harm.garble, harm.long_line, harm.emptied),
        *(harm.in_utf_16, harm.in_utf_16_without_mark, harm.in_the_other_encoding),
    ],
)
@pytest.mark.parametrize("name", FILES)
def test_harm_that_cannot_be_missed_is_named(name, how, tmp_path):
    for number, member in enumerate(FILES[name]):
        files, place = harmed(name, member, how, 0), tmp_path / str(number)
        if files == FILES[name]:  # all ASCII: the same in either encoding
            continue
        error = outcome(place, partial(opened, name, place, files))
        assert error is not None, member
        assert Path(member).name in error.file


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", RELEASES)
def test_a_missing_file_is_named(name, packed, tmp_path):
    for number, member in enumerate(RELEASES[name].files):
        files = {m: raw for m, raw in RELEASES[name].files.items() if m != member}
        place = tmp_path / str(number)
        place.mkdir()
        where = write(name, place, {"README": b"", **files}, packed=packed)
        load_it = partial(load, name, where=where, cache=place / "cache")
        error = outcome(place, load_it)
        assert error is not None
        assert member in str(error)


@pytest.mark.parametrize("how", [harm.flip, harm.cut, harm.insert, harm.garble])
@pytest.mark.parametrize("name", ["movielens-1m", "steam-200k"])
@some_or_all("rounds", 1, ROUNDS)
def test_a_harmed_archive_is_named_or_harmless(name, how, rounds, tmp_path):
    whole = write(name, tmp_path, RELEASES[name].files).read_bytes()
    for turn in range(10 * rounds):
        draw = Key.from_seed(turn).at(name, how.__name__).generator()
        place = tmp_path / str(turn)
        place.mkdir()
        (place / "harmed.zip").write_bytes(how(whole, draw))
        where = place / "harmed.zip"
        outcome(place, partial(load, name, where=where, cache=place / "cache"))
