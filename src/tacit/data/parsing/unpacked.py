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

_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second of one without a file
_OTHER_PACKING = "is packed as {}; unpack it, or pack it as gzip or zip"
_OTHERS = {  # by their first bytes: no text begins like this
    b"BZh": _OTHER_PACKING.format("bzip2"),
    b"\xfd7zXZ\x00": _OTHER_PACKING.format("xz"),
    b"\x28\xb5\x2f\xfd": _OTHER_PACKING.format("zstd"),
    b"7z\xbc\xaf": _OTHER_PACKING.format("7z"),
    b"SQLite f": "is an SQLite database; export the table as CSV",
    b"%PDF-": "is a PDF; get the table as CSV",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook; save the sheet as CSV",
}


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
        elif start in _ZIP:
            with Members(path, "").open(_only_file(path)) as stream:
                yield Unpacked(stream, most, file, size)
        else:
            _refuse_known(path, file.peek(8))
            yield Unpacked(file, None, file, size)


def _refuse_known(path: Path, start: bytes) -> None:
    """Refuse what is neither text nor anything that is unpacked here, by its name."""
    for magic, problem in _OTHERS.items():
        if start.startswith(magic):
            raise BadData(path, None, problem)


def _only_file(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as packed:
            names = [name for name in packed.namelist() if _is_table(name)]
    except NO_ZIP as error:
        problem = f"is not a sound zip file ({quoted(str(error))}); get it again"
        raise BadData(path, None, problem) from error
    if len(names) == 1:
        return names[0]
    if "xl/workbook.xml" in names:
        raise BadData(path, None, "is an Excel workbook; save the sheet as CSV")
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
