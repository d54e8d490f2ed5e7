"""What this machine remembers of a file outside of it: a copy that is put back is told.

A random mark changes with every change that counts, in the file and in an anchor in the
folder for what programs remember (`tacit.files.state_folder`):

    write(current=old, following=new)   before the file commits
    write(current=new, following=new)   after it; only now may anything be said

A process that is killed in between leaves the file at one of the two. A file that is
put back from a backup, or that was used on another machine, is at neither. A copy of
the whole machine cannot be told from inside. Ledgers have anchors of their own, with a
key and the chain of the ledger (`tacit.ledger.anchor`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tacit.files import make_folders, state_folder, write_atomically
from tacit.system_errors import explained


@dataclass(frozen=True)
class Marks:
    """What an anchor says: the marks that its file may have, and what goes with them.

    Without a `current` mark the file is being made, and nothing was ever said by it.
    """

    current: str
    following: str
    place: str = ""  # where the file lay when it was last changed, if anybody asks
    names: tuple[str, ...] = ()  # what must be known even if the file is gone

    def knows(self, mark: str) -> bool:
        """Whether a file with this mark is the one that was last written."""
        return mark in (self.current, self.following)


@dataclass(frozen=True)
class MarkAnchor:
    """The anchor of one file; `kind` is the folder of all files of its kind."""

    kind: str
    id: str

    @property
    def path(self) -> Path:
        """Where the anchor lies, outside of what is backed up with its file."""
        return state_folder() / self.kind / f"{self.id}.json"

    def read(self) -> Marks | None:
        """What the anchor says; None if it is gone or damaged."""
        try:
            found = json.loads(self.path.read_bytes())
            return Marks(
                str(found["current"]),
                str(found["next"]),
                str(found.get("place", "")),
                tuple(map(str, found.get("names", ()))),
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def write(self, marks: Marks) -> None:
        """Replace the anchor, durably and readable by its owner alone."""
        said = {
            "current": marks.current,
            "next": marks.following,
            "place": marks.place,
            "names": [*marks.names],
        }
        with explained():
            make_folders(self.path.parent)
            write_atomically(self.path, json.dumps(said).encode(), is_private=True)

    def drop(self) -> None:
        """Forget the file: it is gone, or has another anchor."""
        self.path.unlink(missing_ok=True)


def anchors_at(kind: str, place: Path) -> Iterator[tuple[MarkAnchor, Marks]]:
    """The anchors of files that were made to the end and were last changed here."""
    for path in sorted((state_folder() / kind).glob("*.json")):
        anchor = MarkAnchor(kind, path.stem)
        marks = anchor.read()
        if marks is not None and marks.current and marks.place == place_of(place):
            yield anchor, marks


def place_of(path: Path) -> str:
    """A path as anchors know it."""
    return str(path.resolve())
