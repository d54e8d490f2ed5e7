"""The bytes of one file from outside, plain, gzip or the only file of a zip.

What it is told by its first bytes: a name may say anything. What is unpacked has a
largest size (`limits`).
"""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tacit.data.parsing.archive_members import NO_ZIP, Members
from tacit.data.parsing.limits import most_unpacked
from tacit.data.parsing.quote import listed, quoted
from tacit.errors import BadData

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


@dataclass(frozen=True, eq=False)
class Unpacked:
    """The bytes of a file, and how far it has been read."""

    stream: IO[bytes]
    most: int | None  # how many bytes there may be; None: as many as the file has
    file: IO[bytes]  # the file itself, packed or not
    size: int

    def read_so_far(self) -> int:
        """How many bytes of the file itself have been read."""
        return self.file.tell()


@contextmanager
def unpacked(path: Path) -> Iterator[Unpacked]:
    """The bytes of a file, unpacked as they are read."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        most = most_unpacked(size)
        start = file.peek(4)[:4]
        if start[:2] == _GZIP:
            with _explained(path), gzip.GzipFile(fileobj=file) as stream:
                yield Unpacked(stream, most, file, size)  # type: ignore[arg-type]
        elif start == _ZIP:
            with Members(path, "").open(_only_file(path)) as stream:
                yield Unpacked(stream, most, file, size)
        else:
            yield Unpacked(file, None, file, size)


def _only_file(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as packed:
            names = [name for name in packed.namelist() if _is_table(name)]
    except NO_ZIP as error:
        problem = f"is not a sound zip file ({quoted(str(error))}); get it again"
        raise BadData(path, None, problem) from error
    if len(names) == 1:
        return names[0]
    found = f"these: {listed(names)}" if names else "none"
    problem = f"must hold one file and has {found}; unpack it and name the table"
    raise BadData(path, None, problem)


def _is_table(name: str) -> bool:
    """Whether it is a file, and not what a desktop adds to archives."""
    last = name.rsplit("/", 1)[-1]
    return bool(last) and not last.startswith(".") and not name.startswith("__MACOSX/")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadData(path, None, f"is not a sound gzip file ({error})") from error
