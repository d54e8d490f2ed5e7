"""Messages at random places: each once, anywhere, and nothing left of them."""

import os

import numpy as np
import pytest

from tacit.service.relay import scattered_file
from tacit.service.relay.scattered_file import ScatteredFile, erase, mixed


def messages(n: int, size: int) -> np.ndarray:
    return np.frombuffer(os.urandom(n * size), np.uint8).reshape(n, size)


def found(file: ScatteredFile, taken: np.ndarray, at_once: int = 7) -> list[bytes]:
    pieces = [*file.pieces(taken, messages=at_once)]
    assert {len(one) for one in pieces[:-1]} <= {at_once * file.size}
    content = b"".join(pieces)
    return [content[i : i + file.size] for i in range(0, len(content), file.size)]


@pytest.mark.parametrize("size", [1, 56, 5000])
@pytest.mark.parametrize("block", [1, 999, 2**20])
def test_what_was_put_is_found_once_in_the_same_order(
    tmp_path, monkeypatch, size, block
):
    """Also in a file that becomes full, and whatever is read at a time."""
    monkeypatch.setattr(scattered_file, "_BLOCK", block)
    file = ScatteredFile(tmp_path / "file", 100, size)
    taken = file.make()
    parts = [messages(n, size) for n in (1, 40, 0, 59)]
    for part in parts:
        file.put(part, taken)
    file.flush()
    rows = [row.tobytes() for part in parts for row in part]
    assert sorted(found(file, taken)) == sorted(rows)
    assert found(file, taken, at_once=100) == found(file, taken)
    assert file.path.stat().st_size == 100 * size


def test_the_room_is_there_before_the_first_message(tmp_path):
    file = ScatteredFile.for_messages(tmp_path / "file", 1001, 4096)
    assert file.places == 1252
    file.make()
    assert file.path.stat().st_blocks * 512 >= file.length
    assert file.path.stat().st_mode & 0o777 == 0o600


def test_every_free_place_is_as_likely_for_every_message(tmp_path):
    """Chi-square over 12 places, of the first and of the last message of each put.

    A false alarm has a chance below 1e-6: 60 is 7.7 deviations of 11 degrees.
    """
    file, trials = ScatteredFile(tmp_path / "file", 12, 1), 1200
    rows = np.arange(1, 10, dtype=np.uint8)[:, None]
    counts = np.zeros((9, 12))
    for _ in range(trials):
        taken = file.make()
        file.put(rows[:3], taken)
        file.put(rows[3:], taken)
        content = file.path.read_bytes()
        for row in range(9):
            counts[row, content.index(bytes([row + 1]))] += 1
    expected = trials / 12
    square = ((counts - expected) ** 2 / expected).sum(axis=1)
    assert (square < 60).all()


def test_what_is_left_at_free_places_is_overwritten(tmp_path):
    file = ScatteredFile(tmp_path / "file", 50, 56)
    taken = file.make()
    kept, lost = messages(10, 56), messages(12, 56)
    file.put(kept, taken)
    file.put(lost, taken.copy())  # by a process that was killed before it noted them
    file.clean(taken)
    content = file.path.read_bytes()
    assert sorted(found(file, taken)) == sorted(row.tobytes() for row in kept)
    assert not any(row.tobytes() in content for row in lost)


def test_a_file_is_overwritten_before_it_is_deleted(tmp_path):
    file = ScatteredFile(tmp_path / "file", 300, 56)
    taken = file.make()
    file.put(messages(200, 56), taken)
    os.link(file.path, tmp_path / "other name")  # to see what was in it last
    assert file.is_whole
    erase(file.path)
    assert not file.is_whole
    assert (tmp_path / "other name").read_bytes() == bytes(file.length)


def test_mixed_messages_are_the_same_in_another_order():
    rows = messages(40, 8)
    once = mixed(rows)
    assert (once != rows).any()
    assert sorted(map(bytes, once)) == sorted(map(bytes, rows))
