"""Where a run or a comparison lives: the caller's folder, or one that goes with it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import BadValue
from tacit.runtime.run import RunDirectory


@dataclass(frozen=True, eq=False)
class Folder:
    """A folder; a temporary one is deleted when nobody refers to it any more."""

    path: Path

    @classmethod
    def of(cls, out: str | Path | None, name: str) -> Folder:
        """The folder that the caller named, or a temporary one."""
        if out is not None:
            return cls(refuse_file(Path(out)))
        made = Path(tempfile.mkdtemp(prefix="tacit-"))
        folder = cls(made / name)
        weakref.finalize(folder, shutil.rmtree, made, ignore_errors=True)
        return folder

    def copied_to(self, path: str | Path) -> Folder:
        """A copy at a new place; nothing that is there is replaced."""
        place = refuse_file(Path(path))
        if place.exists() and any(place.iterdir()):
            raise BadValue(
                f"{place} is there already, and not empty; choose another place"
            )
        lock = RunDirectory(self.path).lock.name
        ignored = shutil.ignore_patterns(lock)
        shutil.copytree(self.path, place, ignore=ignored, dirs_exist_ok=True)
        return Folder(place)


def refuse_file(path: Path) -> Path:
    """The path, unless it is a file."""
    if path.exists() and not path.is_dir():
        raise BadValue(f"{path} is a file, and a folder is needed; choose another")
    return path
