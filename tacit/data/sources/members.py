"""The files of a release, whether it is still a zip or already a folder."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tacit.errors import BadData

_LONGEST_LINE = 1 << 20  # bytes; no release comes near


@dataclass(frozen=True)
class Members:
    """Files by their name inside `folder` of an archive."""

    archive: Path
    folder: str

    def label(self, name: str) -> str:
        """What errors call a file."""
        if self.archive.is_dir():
            return str(self.archive / name)
        return f"{self.archive}:{self.folder}/{name}"

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
            while raw := stream.readline(_LONGEST_LINE):
                number += 1
                if len(raw) == _LONGEST_LINE:
                    problem = f"longer than {_LONGEST_LINE:,} bytes"
                    raise BadData(self.label(name), number, problem)
                yield number, self._decoded(raw, encoding, name, number)
        if not number:
            raise BadData(self.label(name), None, "is empty")

    def _decoded(self, raw: bytes, encoding: str, name: str, line: int) -> str:
        try:
            return raw.decode(encoding).rstrip("\r\n")
        except UnicodeDecodeError as error:
            problem = f"is not {encoding}: {error.reason} at byte {error.start + 1}"
            raise BadData(self.label(name), line, problem) from None

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
                self._member(packed, name) as m,
            ):
                yield m
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            problem = f"is not a sound zip file ({error}); get it again"
            raise BadData(self.archive, None, problem) from error

    def _member(self, packed: zipfile.ZipFile, name: str) -> IO[bytes]:
        path = f"{self.folder}/{name}"
        if path not in packed.namelist():
            raise BadData(
                self.archive, None, f"has no {path}; is it the right archive?"
            )
        try:
            return packed.open(path)
        except RuntimeError as error:  # encrypted, or packed in a way unknown here
            raise BadData(self.archive, None, str(error)) from error
