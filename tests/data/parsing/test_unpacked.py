from __future__ import annotations

import gzip
import io
import zipfile

import pytest

from tacit.data.parsing.unpacked import unpacked
from tacit.errors import BadData

TEXT = b"user,item\na,b\n"


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name.replace("_SLASH_", "/"), content)
    return out.getvalue()


def content(path) -> bytes:
    with unpacked(path) as opened:
        return opened.stream.read()


@pytest.mark.parametrize(
    "packed",
    [
        TEXT,
        gzip.compress(TEXT),
        zipped(table=TEXT),
        zipped(folder_SLASH_table=TEXT),
        zipped(table=TEXT, __MACOSX_SLASH_table=b"x", folder_SLASH_=b""),
    ],
    ids=["text", "gzip", "zip", "zip of a folder", "zip of a Mac"],
)
def test_what_it_is_follows_from_its_bytes(tmp_path, packed):
    path = tmp_path / "any.name"
    path.write_bytes(packed)
    assert content(path) == TEXT


@pytest.mark.parametrize(
    ("packed", "problem"),
    [
        (zipped(one=TEXT, two=TEXT), "must hold one file and has these: 'one', 'two'"),
        (zipped(folder_SLASH_=b""), "must hold one file and has none"),
        (zipped(table=TEXT)[:-30], "is not a sound zip file"),
        (gzip.compress(TEXT)[:-9], "is not a sound gzip file"),
    ],
    # Bytes hold the time, and processes that collect a second apart must agree.
    ids=["two files", "none", "half a zip", "half a gzip"],
)
def test_what_cannot_be_unpacked_is_refused(tmp_path, packed, problem):
    path = tmp_path / "t.csv"
    path.write_bytes(packed)
    with pytest.raises(BadData, match=problem):
        content(path)


def test_what_is_unpacked_is_bounded(tmp_path, monkeypatch):
    path = tmp_path / "t.zip"
    path.write_bytes(zipped(table=b"x" * 10_000))
    monkeypatch.setenv("TACIT_MOST_UNPACKED", "9999")
    with pytest.raises(BadData, match="unpacks to more than 9,999 bytes"):
        content(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_progress_is_told_in_bytes_of_the_file(tmp_path, pack):
    path = tmp_path / "t.csv"
    path.write_bytes(pack(TEXT * 1000))
    with unpacked(path) as opened:
        assert opened.size == path.stat().st_size
        opened.stream.read()
        assert opened.read_so_far() == opened.size
