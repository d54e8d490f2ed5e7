"""Bar 16: a data set from the cache, against parsing its archive.

MovieLens 1M where `$TACIT_DATA` has it, and always a written table of as many lines.
Reading the cache compares every checksum. Parsing is timed without the writing that
follows it the first time.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest
from tacit.data.dataset import Dataset
from tacit.data.sources import load
from tacit.data.sources.movielens import SOURCES
from tacit.data.sources.table import EventsTable

EVENTS, USERS, ITEMS = 1_000_000, 6_000, 4_000


def measure(quick: bool) -> list[Case]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cases = [_table(place, EVENTS // 10 if quick else EVENTS)]
        archive = Path(os.environ.get("TACIT_DATA", "")) / "ml-1m.zip"
        if archive.is_file():
            cases.append(_movielens(place, archive))
    return cases


def _movielens(place: Path, archive: Path) -> Case:
    name = "movielens-1m"
    return _case(
        "MovieLens 1M",
        lambda: SOURCES[name].parse(archive),
        lambda: load(name, where=archive, cache=place),
    )


def _table(place: Path, events: int) -> Case:
    path = place / "events.csv"
    path.write_text("".join(_lines(events)))
    table = EventsTable(path, user="user", item="item", time="time")
    return _case(
        f"a table of {events} lines", table.parse, lambda: table.load(cache=place)
    )


def _lines(events: int) -> Iterator[str]:
    rng = np.random.default_rng(0)
    yield "user,item,time\n"
    columns = [rng.integers(n, size=events) for n in (USERS, ITEMS, 10**9)]
    for user, item, time in zip(*columns, strict=True):
        yield f"u{user},i{item},{time}\n"


def _case(name: str, parse: Callable[[], Dataset], read: Callable[[], Dataset]) -> Case:
    same = parse().interactions.items == read().interactions.items
    if not same.all():
        raise AssertionError("the logs differ")
    best = fastest({"parsed": parse, "from the cache": read})
    return Case(name, best["parsed"] / best["from the cache"], best)


BAR = Bar(16, "a second load from the cache, against parsing", 20.0, measure)
