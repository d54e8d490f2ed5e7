"""Seeds of noise, noted while they are on a disk: sums are compared without noise.

An aggregator erases the seed of a round in the step that keeps its result, so a program
that takes the noise off again must have looked before. `Noting` does so at the points
that an aggregator passes from the moment it draws a seed until it has a result; one of
the two is passed whatever was killed in between.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.service.federation.store import FILE_NAME

_POINTS = ("closing", "computed")
_FOLDER = "noted-seeds"


@dataclass(frozen=True)
class Noting:
    """Called at the named points of the aggregator of a role, under this folder."""

    folder: Path
    role: str
    then: Callable[[str], None] = lambda _: None

    def __call__(self, point: str) -> None:
        """Note all seeds that are on the disk, then do what else is to be done."""
        if point in _POINTS:
            self._note()
        self.then(point)

    def _note(self) -> None:
        path = self.folder / self.role / FILE_NAME
        with contextlib.closing(
            sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        ) as file:
            query = "SELECT id, noise FROM rounds WHERE noise IS NOT NULL"
            rows = file.execute(query).fetchall()
        for round_id, seed in rows:
            place = self.folder / _FOLDER / self.role / round_id.hex()
            place.mkdir(parents=True, exist_ok=True)
            (place / seed.hex()).touch()


def noted_seed(folder: Path, role: str, round_id: bytes) -> bytes:
    """The one seed that an aggregator has drawn for a round; refuses none, and two."""
    place = folder / _FOLDER / role / round_id.hex()
    found = [one.name for one in place.glob("*")]
    if len(found) != 1:
        raise ValueError(f"the {role} has drawn {len(found)} seeds for a round")
    return bytes.fromhex(found[0])
