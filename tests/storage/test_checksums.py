"""The checksum of all rows: the same by every way to the same rows, and no other."""

import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from tacit.storage.checksums import Checksums

KEY = b"k" * 32
TABLES = (
    "CREATE TABLE first (a INTEGER PRIMARY KEY, b BLOB, c REAL)",
    "CREATE TABLE second (a TEXT, b, PRIMARY KEY (a)) WITHOUT ROWID",
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("put", "change", "delete", "other", "none")),
        st.integers(0, 3),
        st.one_of(
            st.binary(max_size=9),
            st.sampled_from((b"l" * 5000, b"m" * 5000)),
            st.none(),
            st.floats(allow_nan=False),
        ),
    ),
    max_size=12,
)


def whole(file: sqlite3.Connection, *, key: bytes = KEY) -> int:
    found = Checksums(file, key, without=("own",))
    found.take_whole()
    return found.total


@given(STEPS)
def test_kept_up_to_date_it_is_that_of_the_whole(steps):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as file:
        for table in TABLES:
            file.execute(table)
        checksums = Checksums(file, KEY)
        checksums.watch()
        statements = {
            "put": ("INSERT OR IGNORE INTO first VALUES (?, ?, 2)", 2),
            "change": ("UPDATE first SET c = 1, b = ?2 WHERE a >= ?1", 2),
            "delete": ("DELETE FROM first WHERE a = ?", 1),
            "other": ("INSERT OR IGNORE INTO second VALUES (?, ?)", 2),
            "none": ("DELETE FROM second", 0),
        }
        for name, number, value in steps:
            statement, n = statements[name]
            file.execute(statement, (number, value)[:n])
            assert checksums.total == whole(file)


def test_it_is_of_rows_tables_and_key():
    totals = set()
    for rows in (
        ["INSERT INTO first VALUES (1, x'00', 1)"],
        ["INSERT INTO first VALUES (1, x'00', 2)"],
        ["INSERT INTO first VALUES (1, '0', 1)"],
        ["INSERT INTO first VALUES (1, NULL, 1)"],
        ["INSERT INTO second VALUES ('ab', 'c')"],
        ["INSERT INTO second VALUES ('a', 'bc')"],
        ["INSERT INTO second VALUES ('1', 1)"],
        ["INSERT INTO second VALUES ('1', '1')"],
        [],
    ):
        with closing(sqlite3.connect(":memory:")) as file:
            for statement in (*TABLES, *rows):
                file.execute(statement)
            totals |= {whole(file), whole(file, key=b"other")}
    assert len(totals) == 17  # of no row it is zero under every key


def test_a_link_is_of_its_facts_and_tables():
    links = set()
    for tables in (TABLES, TABLES[:1]):
        with closing(sqlite3.connect(":memory:")) as file:
            for table in tables:
                file.execute(table)
            links |= {Checksums(file, KEY).link(*facts) for facts in (("a", 1), ("b",))}
    assert len(links) == 4
