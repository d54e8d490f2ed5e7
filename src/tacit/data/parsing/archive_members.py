"""The files of a release, whether it is still a zip or already a folder."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tacit.data.parsing.limits import LONGEST_ROW, most_unpacked, refuse_unpacked
from tacit.data.parsing.quote import quoted
from tacit.errors import BadData, TacitError

# What the standard library raises on bytes that are no zip, or one that it cannot read.
NO_ZIP = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(RuntimeError, ValueError, OverflowError),  # encrypted, unknown packing, odd sizes
)


@dataclass(frozen=True)
class Members:
    """Files by their name inside `folder` of an archive; "" if they are in none."""

    archive: Path
    folder: str

    def label(self, name: str) -> str:
        """The name by which errors call a file: its path, or archive and path."""
        if self.archive.is_dir():
            return str(self.archive / name)
        return f"{self.archive}:{self._path(name)}"

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A file's bytes; a broken archive or a missing file is `BadData`."""
        opened = self._in_folder if self.archive.is_dir() else self._in_zip
        with opened(name) as stream:
            yield stream

    def lines(self, name: str, *, encoding: str) -> Iterator[tuple[int, str]]:
        """Each line with its number, decoded, without its line end."""
        with self.open(name) as stream:
            number = 0
            while raw := stream.readline(LONGEST_ROW):
                number += 1
                if len(raw) == LONGEST_ROW:
                    problem = f"longer than {LONGEST_ROW:,} bytes"
                    raise BadData(self.label(name), number, problem)
                yield number, decode_line(raw, encoding, self.label(name), number)
        if not number:
            raise BadData(self.label(name), None, "is empty")

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name

    @contextmanager
    def _in_folder(self, name: str) -> Iterator[IO[bytes]]:
        path = self.archive / name
        if not path.is_file():
            raise BadData(path, None, "is missing; unpack the whole archive")
        with path.open("rb") as stream:
            yield stream

    @contextmanager
    def _in_zip(self, name: str) -> Iterator[IO[bytes]]:
        try:
            with (
                zipfile.ZipFile(self.archive) as packed,
                self._member(packed, name) as stream,
            ):
                yield stream
        except TacitError:  # of whoever reads the file; some are ValueErrors
            raise
        except NO_ZIP as error:
            problem = f"is not a sound zip file ({quoted(str(error))}); get it again"
            raise BadData(self.archive, None, problem) from error

    def _member(self, packed: zipfile.ZipFile, name: str) -> IO[bytes]:
        path = self._path(name)
        if path not in packed.namelist():
            raise BadData(
                self.archive, None, f"has no {path}; is it the right archive?"
            )
        self._check_size(packed.getinfo(path), name)
        opened = packed.open(path)
        return io.BufferedReader(opened)  # type: ignore[type-var]  # faster by line

    def _check_size(self, member: zipfile.ZipInfo, name: str) -> None:
        """Refuse what could unpack to more than memory or the disk should take."""
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # zipfile unpacks the others by the block, however large that becomes.
            problem = "is packed by another method than deflate; pack it anew"
            raise BadData(self.label(name), None, problem)
        # zipfile gives no more than the size that is declared, so that is what counts.
        most = most_unpacked(os.path.getsize(self.archive))
        if member.file_size > most:
            raise refuse_unpacked(self.label(name), most)


def decode_line(raw: bytes, encoding: str, file: str, line: int) -> str:
    """A line as text, without its line end; another encoding is `BadData`."""
    try:
        text = raw.decode(encoding).rstrip("\r\n")
    except UnicodeDecodeError as error:
        problem = f"is not {encoding}: {error.reason} at byte {error.start + 1}"
        raise BadData(file, line, problem) from None
    if "\0" in text:
        problem = f"holds a zero byte; text must be {encoding}"
        raise BadData(file, line, problem)
    if encoding == "latin-1" and not text.isascii() and _is_utf8(raw):
        problem = "is UTF-8, the official file is Latin-1; get it again"
        raise BadData(file, line, problem)
    return text


def _is_utf8(raw: bytes) -> bool:
    """Whether bytes make sense as UTF-8; accented Latin-1 text hardly ever does."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
