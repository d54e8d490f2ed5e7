"""Bad input of each kind to `tacit init`: one sentence, exit code 2, nothing written.

Most of these are what somebody really has: a table saved by another program, half a
download, a database, a column that is called a little differently.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zipfile

import pyarrow as pa
import pyarrow.parquet
import pytest

TABLE = "user,item,stars\n" + "".join(
    f"u{u},i{(u * 7 + k * k) % 9},{1 + (u + k) % 5}\n"
    for u in range(30)
    for k in range(5)
)
USER_ITEM = ("--user", "user", "--item", "item")
STARS = (*USER_ITEM, "--value", "stars")


def zipped(*names: str, content: str = TABLE) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return made.getvalue()


def parquet(**columns) -> bytes:
    made = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), made)
    return made.getvalue()


OF_FILES = {  # what the file holds, and what is said of it
    "empty": (b"", "t.csv: is empty"),
    "blank lines": ("\n\n\n", "line 1: is blank; the first line must name the col"),
    "header only": ("user,item\n", "has a header and no lines after it"),
    "zero byte": (TABLE.replace("i3", "i\0", 1), "line 16: holds a zero byte"),
    "utf-16": (TABLE.encode("utf-16"), "is not UTF-8; .* such as 'utf-16'"),
    "cp1252": (
        TABLE.replace("i3", "caf\xe9", 1).encode("cp1252"),
        "line 16: is not UTF-8; .* such as 'cp1252'",
    ),
    "half a gzip": (gzip.compress(TABLE.encode())[:-40], "not a sound gzip file"),
    "gzip, other sum": (
        gzip.compress(TABLE.encode())[:-8] + bytes(8),
        "not a sound gzip file",
    ),
    "half a zip": (zipped("t.csv")[:-30], "not a sound zip file"),
    "zip of two": (zipped("a.csv", "b.csv"), "must hold one file and has these: 'a"),
    "zip of none": (zipped(), "must hold one file and has none"),
    "workbook": (zipped("xl/workbook.xml", "xl/styles.xml"), "is an Excel workbook"),
    "half a parquet": (parquet(user=["a"], item=["b"])[:60], "is not a sound table"),
    "parquet, lists": (
        parquet(user=["a"], item=[["b"]]),
        "column 'item' is list<.*>; needed are texts or numbers",
    ),
    "arrow's name only": (b"ARROW1xxxx", "is not a sound table"),
    "bzip2": (bz2.compress(TABLE.encode()), "is packed as bzip2; unpack it"),
    "xz": (lzma.compress(TABLE.encode()), "is packed as xz; unpack it"),
    "sqlite": (b"SQLite format 3\0" + bytes(84), "is an SQLite database; export"),
    "pdf": (b"%PDF-1.4\n" + bytes(range(256)), "is a PDF"),
    "json": ('[{"user": 1, "item": 2}]', "looks like JSON; write it as CSV"),
    "web page": ("<!DOCTYPE html><html>404</html>\n", "looks like a web page"),
    "blanks between": (
        TABLE.replace(",", " "),
        "the columns are 'user item stars'; if there are more, name the delimiter",
    ),
    "two of a name": (
        TABLE.replace("stars", "user", 1),
        "there are two columns 'user'; rename one",
    ),
    "blank id": (TABLE + ",i3,4\n", "line 152: column 'user' is blank"),
    "id of blanks": (TABLE + "u1,  ,4\n", "line 152: column 'item' is blank"),
    "field missing": (TABLE + "u1,i3\n", "line 152: 2 fields, the header has 3"),
    "open quotation": (TABLE + '"u1,i3,4\nu2,i2,2\n', "line 152: .*quotation marks"),
    "endless line": (
        "user,item\n" + "x" * 1_200_000 + ",y\n",
        "line 2: a row of more than 1,048,576 characters",
    ),
    "one user": (
        "user,item\na,x\na,y\na,z\n",
        "1 of 1 users have 2 different items; at least 3 must",
    ),
    "one item each": (
        "user,item\n" + "".join(f"u{i},i{i}\n" for i in range(50)),
        "0 of 50 users have 2 different items",
    ),
}

OF_OPTIONS = {  # what was asked of a sound table, and what is said of it
    "no option": ((), "--user is missing; .*the columns are 'user', 'item', 'stars'"),
    "no item": (("--user", "user"), "--item is missing; .* the columns are"),
    "other case": (
        ("--user", "User", "--item", "ITEM"),
        "no columns 'User', 'ITEM'; did you mean 'user' and 'item'\\?",
    ),
    "blanks": (
        ("--user", " user ", "--item", "it em"),
        "did you mean 'user' and 'item'\\?",
    ),
    "near": (
        ("--user", "usr", "--item", "item"),
        "there is no column 'usr'; did you mean 'user'\\?",
    ),
    "far": (
        ("--user", "zz", "--item", "item"),
        "no column 'zz'; the columns are 'user', 'item', 'stars'",
    ),
    "one column twice": (
        ("--user", "user", "--item", "user"),
        "user='user' and item='user' are one column; name two",
    ),
    "threshold alone": ((*USER_ITEM, "--min-value", 3), "--min-value 3 needs --value"),
    "threshold of nan": ((*STARS, "--min-value", "nan"), "must be a finite number"),
    "threshold too high": (
        (*STARS, "--min-value", 9),
        "0 of 30 users have 2 different items of 9 or more",
    ),
    "values of text": (
        (*USER_ITEM, "--value", "item"),
        "line 2: item='i0' must be a finite number",
    ),
    "times of text": (
        (*USER_ITEM, "--time", "item"),
        "line 2: item='i0' must be unix seconds",
    ),
    "other delimiter": (
        (*USER_ITEM, "--delimiter", ";"),
        "no columns 'user', 'item'; the columns are 'user,item,stars'",
    ),
    "long delimiter": ((*USER_ITEM, "--delimiter", "123456789"), "one to 8 characters"),
    "delimiter of a mark": ((*USER_ITEM, "--delimiter", '"'), "must not hold a quot"),
    "escape of a mark": ((*USER_ITEM, "--escape", '"'), "escape='\"' is a quotation"),
    "escape of two": ((*USER_ITEM, "--escape", "ab"), "must be one character"),
    "no such encoding": ((*USER_ITEM, "--encoding", "klingon"), "is not known; use"),
    "encoding of no text": ((*USER_ITEM, "--encoding", "rot13"), "is not known; use"),
    "number too high": (
        ("--no-header", "--user", 1, "--item", 9),
        "there is no column '9'; without a header columns are called 1 to 3",
    ),
    "number zero": (
        ("--no-header", "--user", 0, "--item", 1),
        "there is no column '0'",
    ),
    "names without header": (("--no-header", *USER_ITEM), "columns are called 1 to 3"),
    "matrix and item": ((*USER_ITEM, "--matrix"), "leave out item"),
    "matrix of text": (
        ("--user", "user", "--matrix"),
        "line 2: column 'item': 'i0' must be a finite number",
    ),
    "impression, no value": ((*USER_ITEM, "--impression", "stars"), "needs value"),
    "impression, no time": (
        (*STARS, "--impression", "stars"),
        "needs the column with the time",
    ),
    "no table of items": ((*USER_ITEM, "--items", "no.csv"), "no.csv is not a file"),
    "items twice": ((*USER_ITEM, "--items", "t.csv"), "item='i0' occurs twice"),
    "users twice": (
        (*USER_ITEM, "--users", "t.csv", "--group", "stars"),
        "user='u0' occurs twice",
    ),
    "group alone": ((*USER_ITEM, "--group", "stars"), "names a column of --users"),
    "items-id alone": ((*USER_ITEM, "--items-id", "x"), "names a column of --items"),
    "nothing listed": (
        (*USER_ITEM, "--items", "items.csv", "--title", "title"),
        "0 of 30 users .*; 150 events have items that items.csv lacks",
    ),
    "nobody listed": (
        (*USER_ITEM, "--users", "users.csv", "--group", "plan"),
        "users.csv: none of the 30 users with an event has a value in 'plan'",
    ),
    "few declared": ((*USER_ITEM, "--population", 3), "less than the 30 users"),
    "out a folder": ((*USER_ITEM, "--out", "."), "is there already"),
    "out below a file": ((*USER_ITEM, "--out", "t.csv/e.toml"), "a folder is needed"),
}


@pytest.fixture
def refused(tacit, tmp_path, monkeypatch):
    """Calls `tacit init` and gives the sentence of its refusal."""
    monkeypatch.chdir(tmp_path)

    def call(content: str | bytes | None, *options: object, file: str = "t.csv") -> str:
        (tmp_path / "items.csv").write_text("item,title\nI1,One\nI2,Two\n")
        (tmp_path / "users.csv").write_text("user,plan\nU1,free\nU2,paid\n")
        if content is not None:
            raw = content if isinstance(content, bytes) else content.encode()
            (tmp_path / file).write_bytes(raw)
        before = sorted(os.listdir(tmp_path))
        answer = tacit("init", file, *options)
        assert answer.code == 2, answer
        assert answer.out == ""
        assert sorted(os.listdir(tmp_path)) == before
        (line,) = answer.err.splitlines()  # one sentence, no traceback
        assert line.startswith("error: ")
        assert len(line) < 300
        return line

    return call


@pytest.mark.parametrize("name", OF_FILES)
def test_a_bad_file_is_refused_in_one_sentence(refused, name):
    content, sentence = OF_FILES[name]
    said = refused(content, *USER_ITEM)
    assert_matches(said, sentence)


@pytest.mark.parametrize("name", OF_OPTIONS)
def test_bad_options_are_refused_in_one_sentence(refused, name):
    options, sentence = OF_OPTIONS[name]
    assert_matches(refused(TABLE, *options), sentence)


@pytest.mark.parametrize("file", [".", "nope.csv"])
def test_what_is_no_file_is_refused(refused, file):
    assert f"{file} is not a file" in refused(None, *USER_ITEM, file=file)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(refused, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "t.csv").chmod(0)
    assert "t.csv" in refused(None, *USER_ITEM)


@pytest.mark.parametrize(
    "written",
    [
        TABLE.replace("\n", "\r"),
        "\ufeff" + TABLE,
        TABLE.replace("user,item", '"user","item"', 1),
        TABLE.replace(",1\n", ",False\n").replace(",2\n", ",true\n"),
    ],
)
def test_what_only_looks_odd_is_read(tacit, tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(written.encode())
    made = tacit("init", "t.csv", *STARS)
    assert "150 lines, 30 users, 9 items" in made.out, made.err


def assert_matches(said: str, sentence: str) -> None:
    assert re.search(sentence, said), said
