"""Where a run lives, and what is never replaced."""

import gc

import pytest

from tacit.api.folders import Folder
from tacit.errors import BadValue


def test_a_temporary_folder_goes_with_whoever_refers_to_it():
    folder = Folder.of(None, "run")
    place = folder.path.parent
    assert place.is_dir()
    del folder
    gc.collect()
    assert not place.exists()


def test_a_folder_of_the_caller_stays(tmp_path):
    assert Folder.of(tmp_path / "run", "x").path == tmp_path / "run"


def test_nothing_is_replaced(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").write_text("x")
    (tmp_path / "run" / ".lock").touch()
    folder = Folder(tmp_path / "run")
    copied = folder.copied_to(tmp_path / "copy")
    assert [path.name for path in copied.path.iterdir()] == ["file"]
    with pytest.raises(BadValue, match="not empty"):
        folder.copied_to(tmp_path / "copy")
    with pytest.raises(BadValue, match="is a file"):
        folder.copied_to(tmp_path / "run" / "file")
    with pytest.raises(BadValue, match="is a file"):
        Folder.of(tmp_path / "run" / "file", "x")
