"""What this machine remembers of a file outside of it, so that a copy is told apart.

An anchor has the key that authenticates the file's rows, and a mark of its last state:
a number, a head, and notes, which must be known even if the file is gone. Two marks
while a change is being written: the file is then at `current` or at `pending`.

    save(current=old, pending=new)      before the file commits
    save(current=new, pending=None)     after it; only now may anything be said

A killed process leaves the file at one of the two. A file that is put back from a
backup, that was used on another machine or that was edited is at neither. A copy of
the whole machine cannot be told from inside.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit.errors import Damaged
from tacit.files import make_private_folder, state_folder, write_atomically
from tacit.system_errors import DiskError

KEY_BYTES = 32  # as long as the SHA-256 that the key authenticates with
SUFFIX = ".anchor.json"
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Mark:
    """One state of a file, as its anchor remembers it; `notes` are plain JSON."""

    number: int  # of changes so far
    head: str
    notes: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The mark as plain data."""
        return {"number": self.number, "head": self.head, **self.notes}

    @classmethod
    def from_json(cls, body: Mapping[str, Any] | None) -> Mark | None:
        """The mark that was written so, if there was one."""
        if body is None:
            return None
        notes = dict(body)
        return cls(notes.pop("number"), notes.pop("head"), notes)


@dataclass(frozen=True)
class Anchor:
    """The key of one file, where it was last, and its state."""

    kind: str  # the folder of anchors of all files of this kind
    id: str
    place: str  # the resolved path of the file when it was last written
    key: bytes = field(repr=False)
    current: Mark | None = None  # None while the file is being made
    pending: Mark | None = None

    @classmethod
    def fresh(cls, kind: str, place: Path) -> Anchor:
        """The anchor of a new file; its key comes from the operating system."""
        key = secrets.token_bytes(KEY_BYTES)
        return cls(kind, secrets.token_hex(16), place_of(place), key)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The states that the file may be in."""
        return tuple(mark for mark in (self.current, self.pending) if mark is not None)

    def knows(self, number: int, head: str) -> bool:
        """Whether a file with this number and head is the one that was last written."""
        return any((mark.number, mark.head) == (number, head) for mark in self.marks)

    def at(self, place: Path, *, current: Mark | None, pending: Mark | None) -> Anchor:
        """The same anchor with other marks, of a file that lies here."""
        return replace(self, place=place_of(place), current=current, pending=pending)

    @property
    def path(self) -> Path:
        """Where the anchor lies, outside of what is backed up with its file."""
        return _path(self.kind, self.id)

    @cached_property
    def content(self) -> bytes:
        """The bytes of the anchor's file."""
        marks = {"current": self.current, "pending": self.pending}
        body = {
            "id": self.id,
            "place": self.place,
            "key": self.key.hex(),
            **{name: mark and mark.to_json() for name, mark in marks.items()},
        }
        text = json.dumps(body, sort_keys=True)
        return f'{{"anchor": {text}, "check": "{_check(text)}"}}\n'.encode()

    def save(self) -> None:
        """Writes the anchor durably, readable by its owner alone."""
        path = self.path
        try:
            make_private_folder(path.parent)
            write_atomically(path, self.content, is_private=True)
        except OSError as error:
            raise DiskError(
                error.errno,
                f"{path}: the anchor of {self.place} cannot be written: "
                f"{error.strerror or error}; nothing is said without it. Make room, or "
                "set $TACIT_STATE to a folder that lasts and can be written",
            ) from error

    def drop(self) -> None:
        """Forget the file: it is gone, or has another anchor."""
        drop(self.kind, self.id)


def find(
    kind: str, id: str, *, state: Path | None = None, last: Anchor | None = None
) -> Anchor | None:
    """The anchor of a file; None if there is none, `Damaged` if it is unreadable.

    `state` is the folder for what programs remember, if it is another process's. `last`
    is the anchor as this process saw it last: the same bytes are not parsed again.
    """
    if not _ID.fullmatch(id):
        return None
    return _load(kind, _path(kind, id, state), last=last)


def at_place(kind: str, place: Path) -> tuple[Anchor, ...]:
    """The anchors of finished files that were last written here, the newest first."""
    mine = (one for one in _all(kind) if one.place == place_of(place))
    return tuple(one for one in mine if one.current is not None)


def others_at(
    place: Path, own: Anchor, here: Sequence[Anchor] | None = None
) -> tuple[Anchor, ...]:
    """The anchors of other files that were last written where this one lies now.

    Empty if this one was here before: then the others replaced it, or were accepted.
    `here` are all that were last written here, if they were looked up before.
    """
    if own.place == place_of(place):
        return ()
    here = at_place(own.kind, place) if here is None else here
    return tuple(one for one in here if one.id != own.id)


def drop(kind: str, id: str) -> None:
    """Forget an anchor, whether it can be read or not."""
    if _ID.fullmatch(id):
        _path(kind, id).unlink(missing_ok=True)


def drop_unfinished(kind: str, place: Path, *, keep: str) -> None:
    """Sweep the anchors of files here that were never made to the end."""
    for one in _all(kind):
        if one.place == place_of(place) and one.current is None and one.id != keep:
            one.drop()


def place_of(path: Path) -> str:
    """A path as anchors know it."""
    return str(path.resolve())


def _all(kind: str) -> Iterator[Anchor]:
    """Every anchor of a kind that can be read, the last one written first."""
    paths = [*(state_folder() / kind).glob(f"*{SUFFIX}")]
    for path in sorted(paths, key=lambda one: one.stat().st_mtime_ns, reverse=True):
        with contextlib.suppress(Damaged):
            if (anchor := _load(kind, path)) is not None:
                yield anchor


def _load(kind: str, path: Path, *, last: Anchor | None = None) -> Anchor | None:
    try:
        content = path.read_bytes()
        if last is not None and content == last.content:
            return last
        document = json.loads(content)
        body = document["anchor"]
        if document["check"] == _check(json.dumps(body, sort_keys=True)):
            marks = (Mark.from_json(body[name]) for name in ("current", "pending"))
            key = bytes.fromhex(body["key"])
            return Anchor(kind, body["id"], body["place"], key, *marks)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass
    raise Damaged(path, "this anchor cannot be read")


def _check(text: str) -> str:
    """A checksum against damage; the anchor's secrecy is that of its file."""
    return hashlib.sha256(text.encode()).hexdigest()


def _path(kind: str, id: str, state: Path | None = None) -> Path:
    return (state or state_folder()) / kind / f"{id}{SUFFIX}"
