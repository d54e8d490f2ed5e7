"""What is remembered of a file outside of it; damage there is as if it were gone."""

import os
import stat

import pytest

from tacit.file_marks import MarkAnchor, Marks, anchors_at, place_of


def test_it_says_what_was_written_and_is_private(tmp_path):
    anchor = MarkAnchor("kind", "a")
    assert anchor.read() is None
    marks = Marks("one", "two", place_of(tmp_path / "file"), ("x", "y"))
    anchor.write(marks)
    assert MarkAnchor("kind", "a").read() == marks
    assert marks.knows("one")
    assert marks.knows("two")
    assert not marks.knows("three")
    assert stat.S_IMODE(os.stat(anchor.path).st_mode) == 0o600
    anchor.drop()
    anchor.drop()
    assert anchor.read() is None


def test_an_anchor_of_before_has_no_place():
    anchor = MarkAnchor("services", "a")
    anchor.write(Marks("one", "one"))
    anchor.path.write_text('{"current": "one", "next": "two"}')
    assert anchor.read() == Marks("one", "two")


@pytest.mark.parametrize("content", [b"", b"[]", b'{"current": "a"}', b"\xff", b"7"])
def test_damage_is_as_if_it_were_gone(content):
    anchor = MarkAnchor("kind", "a")
    anchor.write(Marks("one", "one"))
    anchor.path.write_bytes(content)
    assert anchor.read() is None


def test_files_are_found_by_their_place(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    MarkAnchor("kind", "a").write(Marks("m", "m", place_of(here)))
    MarkAnchor("kind", "b").write(Marks("m", "m", place_of(there)))
    MarkAnchor("kind", "c").write(Marks("", "m", place_of(here)))  # never made
    MarkAnchor("other", "d").write(Marks("m", "m", place_of(here)))
    assert [anchor.id for anchor, _ in anchors_at("kind", here)] == ["a"]
