"""What is remembered of a file outside of it; damage there never goes unseen."""

import stat
from dataclasses import replace

import pytest

from tacit.errors import Damaged
from tacit.storage import anchor
from tacit.storage.anchor import Anchor, Mark
from tacit.system_errors import DiskError

NOTES = {"runs": {"run": ["terms", None]}, "caps": [["user", "server", 1.0, 1e-6]]}


def made_at(place, *, kind="kind", **marks) -> Anchor:
    found = replace(Anchor.fresh(kind, place), **marks)
    found.save()
    return found


def test_it_reads_what_it_wrote_and_is_private(tmp_path):
    made = made_at(tmp_path / "x", current=Mark(3, "ab", NOTES))
    assert anchor.find("kind", made.id) == made
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert made.key.hex() not in repr(made)
    assert made.knows(3, "ab")
    assert not made.knows(4, "ab")
    assert anchor.find("kind", "../x") is None
    made.drop()
    made.drop()
    assert anchor.find("kind", made.id) is None


def test_the_anchor_as_it_was_seen_last_is_that_of_the_same_bytes_alone(tmp_path):
    made = made_at(tmp_path / "x", current=Mark(3, "ab", NOTES))
    assert anchor.find("kind", made.id, last=made) is made
    changed = replace(made, current=Mark(4, "cd", NOTES))
    changed.save()
    assert anchor.find("kind", made.id, last=made) == changed
    made.path.write_bytes(made.content[:-9])
    with pytest.raises(Damaged):
        anchor.find("kind", made.id, last=made)
    made.drop()
    assert anchor.find("kind", made.id, last=made) is None


def test_files_are_found_by_their_place(tmp_path):
    here, there, last = tmp_path / "here", tmp_path / "there", Mark(1, "a")
    own = made_at(here, current=last)
    made_at(there, current=last)
    unfinished = made_at(here, pending=last)
    made_at(here, kind="other", current=last)
    assert anchor.at_place("kind", here) == (own,)
    anchor.drop_unfinished("kind", here, keep=own.id)
    assert anchor.find("kind", unfinished.id) is None
    moved = made_at(there, current=last)
    assert anchor.others_at(here, moved) == (own,)
    assert anchor.others_at(there, moved) == ()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"current": "a"}', b"\xff", b"7"])
def test_what_cannot_be_read_is_damaged(tmp_path, content):
    made = made_at(tmp_path, current=Mark(1, "a"))
    made.path.write_bytes(content)
    with pytest.raises(Damaged):
        anchor.find("kind", made.id)
    assert anchor.at_place("kind", tmp_path) == ()


def test_one_that_cannot_be_written_is_told_in_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "file"))
    with pytest.raises(DiskError, match=r"the anchor of .* cannot be written"):
        Anchor.fresh("kind", tmp_path / "x").save()


def test_the_state_folder(monkeypatch):
    monkeypatch.setenv("TACIT_STATE", "/from/environment")
    assert str(anchor.state_folder()) == "/from/environment"
    monkeypatch.delenv("TACIT_STATE")
    assert anchor.state_folder().name == "tacit"
