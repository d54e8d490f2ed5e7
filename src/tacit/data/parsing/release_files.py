"""Every file of a release in turn, for those that come as tar or gzip as well as zip.

A tar is read once from front to back, a tar inside of it as well, and a gzip as it is
unpacked, so that memory holds a block of one file however large the release is.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tacit.data.parsing.archive_members import NO_ZIP, Members
from tacit.data.parsing.limits import most_unpacked, refuse_unpacked
from tacit.data.parsing.quote import quoted
from tacit.errors import BadData, TacitError

_BROKEN = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, OSError)
_DEEPEST = 3  # tars within tars: the files of a release are in the second


@dataclass(frozen=True, eq=False)
class ReleaseFile:
    """One file: its last name without `.gz`, what errors call it, and its bytes."""

    name: str
    label: str
    stream: IO[bytes]


def files_of(archive: Path) -> Iterator[ReleaseFile]:
    """Every file of a folder, a zip, a tar or a tar.gz; each is open until the next.

    A broken archive is `BadData`, and so is one that unpacks to too much.
    """
    if archive.is_dir():
        for path in sorted(path for path in archive.rglob("*") if path.is_file()):
            with path.open("rb") as stream:
                yield from _one(stream, path.name, str(path), _Room.of(path), 0)
    elif zipfile.is_zipfile(archive):
        for name in _names(archive):
            with Members(archive, "").open(name) as stream:
                label = f"{archive}:{name}"
                yield from _one(stream, name, label, _Room.of(archive), 0)
    else:
        with archive.open("rb") as stream:
            yield from _one(stream, archive.name, str(archive), _Room.of(archive), 0)


@dataclass
class _Room:
    """How many bytes may still be unpacked from a file."""

    archive: Path
    most: int
    taken: int = 0

    @classmethod
    def of(cls, path: Path) -> _Room:
        return cls(path, most_unpacked(os.path.getsize(path)))

    def take(self, n: int) -> None:
        self.taken += n
        if self.taken > self.most:
            raise refuse_unpacked(self.archive, self.most)


class _Counted(io.RawIOBase):
    """A stream of which every byte that is read takes room."""

    def __init__(self, stream: IO[bytes], room: _Room) -> None:
        self.stream, self.room = stream, room

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.stream.read(len(buffer))
        self.room.take(len(data))
        buffer[: len(data)] = data
        return len(data)


def _names(archive: Path) -> list[str]:
    try:
        with zipfile.ZipFile(archive) as packed:
            return [info.filename for info in packed.infolist() if not info.is_dir()]
    except NO_ZIP as error:
        problem = f"is not a sound zip file ({quoted(str(error))}); get it again"
        raise BadData(archive, None, problem) from error


def _one(
    stream: IO[bytes], name: str, label: str, room: _Room, depth: int
) -> Iterator[ReleaseFile]:
    """The file itself, or those in it if it is a tar; gzip is unpacked first."""
    last = name.rsplit("/", 1)[-1].lower()
    if last.endswith((".gz", ".tgz")):
        with gzip.GzipFile(fileobj=stream) as plain, _explained(label):
            inner = io.BufferedReader(_Counted(plain, room))  # type: ignore[arg-type]
            unpacked = last.removesuffix(".gz").replace(".tgz", ".tar")
            yield from _one(inner, unpacked, label, room, depth)
    elif last.endswith(".tar"):
        if depth == _DEEPEST:
            raise BadData(label, None, f"has tars {depth} deep; unpack them yourself")
        yield from _in_tar(stream, label, room, depth + 1)
    else:
        yield ReleaseFile(last, label, stream)


def _in_tar(
    stream: IO[bytes], label: str, room: _Room, depth: int
) -> Iterator[ReleaseFile]:
    with _explained(label), tarfile.open(fileobj=stream, mode="r|") as packed:
        for member in packed:
            inside = packed.extractfile(member) if member.isfile() else None
            if inside is not None:  # no folder, link or device
                name = f"{label}:{member.name}"
                yield from _one(inside, member.name, name, room, depth)


@contextmanager
def _explained(label: str) -> Iterator[None]:
    try:
        yield
    except TacitError:  # of whoever reads the file
        raise
    except _BROKEN as error:
        problem = (
            f"is not a sound tar or gzip file ({quoted(str(error))}); get it again"
        )
        raise BadData(label, None, problem) from error
