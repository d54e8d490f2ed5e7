from __future__ import annotations

import gzip
import os
import subprocess
import sys

import pytest

from tacit.data.parsing import csv_rows, limits
from tacit.data.parsing.csv_rows import batches
from tacit.data.sources.table import EventsTable
from tacit.errors import BadData, BadValue

MEGABYTE = 1 << 20


def rows_of(path, *wanted) -> list[list[str]]:
    return [row for batch in batches(path, wanted, None) for row in batch.rows]


def refused(path, *wanted) -> BadData:
    with pytest.raises(BadData) as caught:
        rows_of(path, *wanted)
    return caught.value


@pytest.mark.parametrize("where", ["header", "row"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_has_a_longest_length(tmp_path, where, pack):
    """131,072 is the longest field, so many of them make the line."""
    fields = ["x" * 131_000] * 8
    line = ",".join([*fields, "x" * (MEGABYTE - 8 * 131_001)])
    names = ",".join("abcdefghi")
    lines = [line, names] if where == "header" else [names, line]
    path = tmp_path / "t.csv"
    path.write_bytes(pack("\n".join([*lines, ""]).encode()))
    if where == "row":
        assert [len(",".join(row)) for row in rows_of(path, "a")] == [MEGABYTE]
    lines = [one + "x" if one is line else one for one in lines]
    path.write_bytes(pack("\n".join([*lines, ""]).encode()))
    error = refused(path, "a" if where == "row" else "x" * 131_000)
    assert error.line == (1 if where == "header" else 2)
    assert "1,048,576 characters" in error.problem


def test_a_row_counts_all_the_lines_of_its_quoted_fields(tmp_path):
    path = tmp_path / "t.csv"
    field = '"' + "y\n" * 50_000 + '"'
    path.write_text("a,b\n1,2\n" + ",".join([field] * 12) + "\n")
    error = refused(path, "a")
    assert error.line == 3
    assert "a row of more than 1,048,576 characters" in error.problem


def test_a_row_that_never_ends_is_given_up(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b\n1,2\n")
        for _ in range(40):
            file.write(b'"y\n",' * (MEGABYTE // 5))
    error = refused(path, "a")
    assert error.line == 3
    assert "a row of more than" in error.problem


def test_many_long_rows_come_in_small_batches(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b,c,d,e,f,g,h\n")
        for _ in range(40):
            file.write(b",".join([b"x" * 130_000] * 8) + b"\n")
    sizes = [len(batch.rows) for batch in batches(path, ["a"], None)]
    assert sum(sizes) == 40
    assert max(sizes) <= csv_rows._STEP


def test_columns_are_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{i}" for i in range(10_001)) + "\n")
    assert "10,001 columns; a table may have 10,000" in refused(path, "c0").problem


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_zero_byte_is_named_with_its_line(tmp_path, pack):
    path = tmp_path / "t.csv"
    path.write_bytes(pack(b"a,b\r\n" * 50_000 + b"1,\0\n"))
    error = refused(path, "a")
    assert (error.line, "zero byte" in error.problem) == (50_001, True)


@pytest.mark.parametrize("ends", ["\n", "\r", "\r\n"])
def test_lines_are_whole_wherever_blocks_end(tmp_path, ends, monkeypatch):
    text = "a,b" + ends + ends.join(f"ü{i},x" for i in range(50)) + ends
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    expected = [[f"ü{i}", "x"] for i in range(50)]
    for block in range(1, 40):
        monkeypatch.setattr(limits, "_BLOCK", block)
        assert rows_of(path, "a") == expected


def test_a_text_that_breaks_off_within_a_character_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\n1,ü".encode()[:-1])
    assert refused(path, "a").line == 2


def test_what_is_unpacked_has_a_largest_size(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 50_000))
    assert len(rows_of(path, "a")) == 50_000
    monkeypatch.setattr(limits, "_ALWAYS", 1000)
    assert "unpacks to more than" in refused(path, "a").problem
    assert f"${limits.UNPACKED}" in refused(path, "a").problem
    monkeypatch.setenv(limits.UNPACKED, "200004")
    assert len(rows_of(path, "a")) == 50_000
    monkeypatch.setenv(limits.UNPACKED, "200003")
    assert "unpacks to more than 200,003 bytes" in refused(path, "a").problem


@pytest.mark.parametrize("text", ["", "-1", "1e9", "many", "1" * 19])
def test_a_limit_that_is_no_number_is_refused(monkeypatch, text):
    monkeypatch.setenv(limits.UNPACKED, text)
    with pytest.raises(BadValue, match="whole number of bytes"):
        limits.most_unpacked(1)


LOAD = """
import resource, sys
from pathlib import Path
from tacit.data.sources.table import EventsTable
from tacit.errors import BadData

used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)
try:
    EventsTable(Path(sys.argv[1]), user="a", item="b").parse()
except BadData as error:
    print(error.problem)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_three_megabytes_of_gzip_do_not_become_three_gigabytes(tmp_path):
    """One endless line; reading it may take 100 MB beyond what the imports take."""
    path = tmp_path / "t.csv.gz"
    part = gzip.compress(b"x" * (1 << 26))  # parts of a gzip file follow each other
    path.write_bytes(gzip.compress(b"a,b\n1,2\n") + part * 48)
    assert path.stat().st_size < 3.3e6
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "a row of more than 1,048,576 characters" in done.stdout


def test_a_table_of_own_says_the_limit(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1," + "x" * MEGABYTE * 2)
    with pytest.raises(BadData, match="line 2: a row of more than 1,048,576"):
        EventsTable(tmp_path / "t.csv", user="a", item="b").parse()
