from __future__ import annotations

import zipfile

import pytest

from tacit.data.parsing import archive_members, limits
from tacit.data.parsing.archive_members import Members
from tacit.errors import BadData, BadValue


@pytest.fixture(params=["zip", "folder"])
def release(request, tmp_path) -> Members:
    """A file `a.txt` in a folder `small`, packed or not."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"one\r\ntwo\n\nf\xfcnf")
    (folder / "empty.txt").touch()
    if request.param == "folder":
        return Members(folder, "small")
    with zipfile.ZipFile(tmp_path / "small.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for path in folder.iterdir():
            packed.write(path, f"small/{path.name}")
    return Members(tmp_path / "small.zip", "small")


def test_lines_are_numbered_and_stripped_of_their_ends(release):
    found = list(release.lines("a.txt", encoding="latin-1"))
    assert found == [(1, "one"), (2, "two"), (3, ""), (4, "fünf")]


def test_a_wrong_encoding_is_named_with_its_line(release):
    with pytest.raises(BadData, match=r"line 4: is not utf-8: .* at byte 2") as caught:
        list(release.lines("a.txt", encoding="utf-8"))
    assert caught.value.file.endswith("small/a.txt")


def test_utf_8_is_not_taken_for_latin_1(tmp_path):
    (tmp_path / "a.txt").write_text("one\nfünf", "utf-8")
    with pytest.raises(BadData, match="line 2: is UTF-8, the official file is Latin-1"):
        list(Members(tmp_path, "").lines("a.txt", encoding="latin-1"))


def test_a_zero_byte_is_refused(tmp_path):
    (tmp_path / "a.txt").write_bytes("one\ntwo".encode("utf-16-le"))
    with pytest.raises(BadData, match="line 1: holds a zero byte"):
        list(Members(tmp_path, "").lines("a.txt", encoding="utf-8"))


def test_an_archive_without_a_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "flat.zip", "w") as packed:
        packed.writestr("a.txt", "one")
    flat = Members(tmp_path / "flat.zip", "")
    assert list(flat.lines("a.txt", encoding="utf-8")) == [(1, "one")]
    assert flat.label("a.txt").endswith("flat.zip:a.txt")


def test_an_error_of_who_reads_is_not_blamed_on_the_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "flat.zip", "w") as packed:
        packed.writestr("a.txt", "one")
    with (
        pytest.raises(BadValue, match="mine"),
        Members(tmp_path / "flat.zip", "").open("a.txt"),
    ):
        raise BadValue("mine")


def test_an_empty_file_is_refused(release):
    with pytest.raises(BadData, match=r"empty\.txt: is empty"):
        list(release.lines("empty.txt", encoding="utf-8"))


def test_a_missing_member_is_refused(release):
    with pytest.raises(BadData, match=r"small/b\.txt"), release.open("b.txt"):
        pass


def test_a_long_line_is_refused(release, monkeypatch):
    monkeypatch.setattr(archive_members, "LONGEST_ROW", 4)
    with pytest.raises(BadData, match="line 1: longer than 4 bytes"):
        list(release.lines("a.txt", encoding="latin-1"))


@pytest.mark.parametrize("harm", ["not a zip", "cut", "flipped"])
def test_a_broken_zip_is_refused(tmp_path, harm):
    path = tmp_path / "small.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("small/a.txt", "text " * 1000)
    raw = bytearray(path.read_bytes())
    raw[500] ^= 1  # in the middle of the text; the checksum tells
    broken = {"not a zip": b"<html>", "cut": bytes(raw[:900]), "flipped": bytes(raw)}
    path.write_bytes(broken[harm])
    with pytest.raises(BadData, match="not a sound zip file"):
        list(Members(path, "small").lines("a.txt", encoding="utf-8"))


def test_a_bomb_is_refused_by_what_it_declares(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "_ALWAYS", 1000)
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.txt", "x\n" * 500_000)
    bomb = Members(tmp_path / "b.zip", "")
    with pytest.raises(BadData, match=r"unpacks to more than .* bytes.*TACIT_MOST"):
        list(bomb.lines("a.txt", encoding="utf-8"))
    monkeypatch.setenv(limits.UNPACKED, "1000000")
    assert len(list(bomb.lines("a.txt", encoding="utf-8"))) == 500_000


def test_a_declared_size_that_lies_gives_no_more(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.txt", "x\n" * 500_000)
    raw = (tmp_path / "b.zip").read_bytes()
    size = (1_000_000).to_bytes(4, "little")
    assert raw.count(size) == 2
    (tmp_path / "b.zip").write_bytes(raw.replace(size, (10).to_bytes(4, "little")))
    read = []
    with pytest.raises(BadData, match="not a sound zip"):
        read += list(Members(tmp_path / "b.zip", "").lines("a.txt", encoding="utf-8"))
    assert len(read) <= 5


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_what_is_unpacked_bit_by_bit_is_read(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "b.zip", "w", method) as packed:
        packed.writestr("a.txt", "one")
    with pytest.raises(BadData, match="another method than deflate"):
        list(Members(tmp_path / "b.zip", "").lines("a.txt", encoding="utf-8"))
