"""A file is there as a whole or not at all."""

import os
import threading

import pytest

from tacit.files import write_atomically, write_json


def test_a_file_is_made_with_its_folders_and_nothing_else(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [*tmp_path.rglob("*")] == [tmp_path / "a", tmp_path / "a" / "b", path]


def test_when_writing_fails_the_old_file_stays_alone(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"old"


def test_a_reader_during_replacement_sees_whole_files(tmp_path):
    path, size, done = tmp_path / "file", 200_000, threading.Event()
    write_atomically(path, bytes(size))

    def write() -> None:
        for number in range(1, 30):
            write_atomically(path, bytes([number]) * size)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        content = path.read_bytes()
        assert len(content) == size
        assert len(set(content)) == 1
        seen.add(content[0])
    writer.join()
    assert len(seen) > 1


def test_json_is_for_people_and_refuses_what_json_cannot_say(tmp_path):
    path = tmp_path / "facts.json"
    write_json(path, {"who": "Amélie"})
    assert path.read_text("utf-8") == '{\n  "who": "Amélie"\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"loss": float("nan")})
    assert "Amélie" in path.read_text("utf-8")
