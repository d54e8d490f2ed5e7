"""What this machine remembers of a ledger outside the ledger's own file.

An anchor has the key that authenticates the ledger, and a mark of its last state: the
number and the head of its chain, what was agreed in each run, and the caps. Two marks
while a change is being written: the file is then at `current` or at `pending`.

    save(current=old, pending=new)      before the file commits
    save(current=new, pending=None)     after it; only now may anything be said

A killed process leaves the file at one of the two. A file that is put back from a
backup, that was used on another machine or that was edited is at neither.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tacit.errors import BadData
from tacit.files import state_folder, write_atomically
from tacit.ledger.records import Doubt

KEY_BYTES = 32  # as long as the SHA-256 that the key authenticates with
_SUFFIX = ".anchor.json"
_ID = re.compile(r"[0-9a-f]{32}")


Agreed = tuple[str, str | None]  # the terms of a run, and what they rest on


@dataclass(frozen=True)
class Mark:
    """One state of a ledger, as its anchor remembers it."""

    number: int  # how many changes were made so far
    head: str  # of the chain, in hexadecimal
    runs: Mapping[str, Agreed] = field(default_factory=dict)
    caps: tuple[tuple[str, str, float, float], ...] = ()  # unit, view, epsilon, delta

    def is_of(self, number: int, head: str) -> bool:
        """Whether a file with this number and head is in this state."""
        return (self.number, self.head) == (number, head)


@dataclass(frozen=True)
class Anchor:
    """The key of one ledger, where its file was last, and its state."""

    id: str
    place: str  # the resolved path of the file when it was last written
    key: bytes = field(repr=False)
    current: Mark | None = None  # None while the file is being made
    pending: Mark | None = None

    @classmethod
    def fresh(cls, place: Path) -> Anchor:
        """The anchor of a new ledger; its key comes from the operating system."""
        return cls(secrets.token_hex(16), _place(place), secrets.token_bytes(KEY_BYTES))

    def knows(self, number: int, head: str) -> bool:
        """Whether a file with this number and head is the one that was last written."""
        marks = (self.current, self.pending)
        return any(mark is not None and mark.is_of(number, head) for mark in marks)

    def at(self, place: Path, *, current: Mark | None, pending: Mark | None) -> Anchor:
        """The same anchor with other marks, of a file that lies here."""
        return replace(self, place=_place(place), current=current, pending=pending)

    def save(self) -> None:
        """Writes the anchor durably, readable by its owner alone."""
        body = vars(self) | {"key": self.key.hex()}
        text = json.dumps(body, sort_keys=True, default=vars)
        document = {"anchor": json.loads(text), "check": _check(text)}
        path = _path(self.id)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            content = (json.dumps(document, indent=2) + "\n").encode()
            write_atomically(path, content, is_private=True)
        except OSError as error:
            said = (
                f"the anchor of a ledger cannot be written: {error.strerror or error}; "
                "nothing is said without it. Make room, or set $TACIT_STATE to a "
                "folder that lasts and can be written"
            )
            raise BadData(path, None, said) from error


def find(id: str) -> Anchor | Doubt:
    """The anchor of the ledger with this id, or why there is none to rely on."""
    return _load(_path(id)) if _ID.fullmatch(id) else Doubt.ALTERED


def at_place(place: Path) -> Anchor | None:
    """The anchor of the ledger that was last seen here, whatever is here now."""
    mine = (one for one in _all() if one.place == _place(place))
    return next((one for one in mine if one.current is not None), None)  # the newest


def others_at(place: Path, own: Anchor) -> tuple[Anchor, ...]:
    """The anchors of other ledgers that were last seen where this one lies now.

    Empty if this one was here before: then the others replaced it, or were accepted.
    """
    if own.place == _place(place):
        return ()
    mine = (one for one in _all() if one.place == _place(place))
    return tuple(one for one in mine if one.current is not None and one.id != own.id)


def drop(id: str) -> None:
    """Forget an anchor: its ledger is gone, or has another one."""
    if _ID.fullmatch(id):
        _path(id).unlink(missing_ok=True)


def drop_unfinished(place: Path, *, keep: str = "") -> None:
    """Sweep the anchors of files here that were never made to the end."""
    for one in _all():
        if one.place == _place(place) and one.current is None and one.id != keep:
            drop(one.id)


def _all() -> Iterator[Anchor]:
    """Every anchor that can be read, the last one written first."""
    paths = _folder().glob(f"*{_SUFFIX}")
    for path in sorted(paths, key=lambda one: one.stat().st_mtime_ns, reverse=True):
        found = _load(path)
        if isinstance(found, Anchor):
            yield found


def _load(path: Path) -> Anchor | Doubt:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return Doubt.NO_ANCHOR
    except OSError:
        return Doubt.BAD_ANCHOR
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        document = json.loads(raw)
        text = json.dumps(document["anchor"], sort_keys=True)
        if document["check"] == _check(text):
            return _anchor(document["anchor"])
    return Doubt.BAD_ANCHOR


def _anchor(body: Mapping[str, Any]) -> Anchor:
    return Anchor(
        body["id"],
        body["place"],
        bytes.fromhex(body["key"]),
        _mark(body["current"]),
        _mark(body["pending"]),
    )


def _mark(body: Mapping[str, Any] | None) -> Mark | None:
    if body is None:
        return None
    caps = tuple((unit, view, e, d) for unit, view, e, d in body["caps"])
    runs = {run: (terms, assumes) for run, (terms, assumes) in body["runs"].items()}
    return Mark(body["number"], body["head"], runs, caps)


def _check(text: str) -> str:
    """A checksum against damage; the anchor's secrecy is that of its file."""
    return hashlib.sha256(text.encode()).hexdigest()


def _folder() -> Path:
    return state_folder() / "ledgers"


def _path(id: str) -> Path:
    return _folder() / f"{id}{_SUFFIX}"


def _place(path: Path) -> str:
    return str(path.resolve())
