"""Where a release's archive lies, and how it gets there when somebody asks for it.

Looked for in order: the place given, `$TACIT_DATA`, the cache's download folder.
Nothing is downloaded unless it is asked for, and nothing is printed here.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from tacit import files
from tacit.errors import BadData, MissingData
from tacit.version import __version__

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all if known
Stamp = dict[str, int | str | list[list[int | str]]]

_BLOCK = 1 << 18  # bytes between two calls of `progress`
_PATIENCE = 30.0  # seconds without a byte


@dataclass(frozen=True)
class Download:
    """An official address; `size` is for display, the checksum is what counts."""

    url: str
    md5: str | None = None
    sha256: str | None = None
    size: int | None = None

    @property
    def checksum(self) -> tuple[str, str] | None:
        """The strongest known checksum: its algorithm and its hexadecimal digits."""
        if self.sha256:
            return "sha256", self.sha256
        return ("md5", self.md5) if self.md5 else None


class Release(Protocol):
    """The facts by which a published release is looked for on disk."""

    @property
    def name(self) -> str:
        """The name by which Tacit knows the release."""

    @property
    def home(self) -> str:
        """The address of the publisher's page, for error messages."""

    @property
    def archives(self) -> tuple[str, ...]:
        """File names of the official archive, the usual one first."""

    @property
    def folder(self) -> str:
        """The folder inside the archive, and of an unpacked copy."""

    @property
    def download(self) -> Download | None:
        """The official address, if there is one."""


def search(release: Release, *, where: Path | None, downloads: Path) -> Path | None:
    """The first archive or unpacked folder found, or None."""
    if where is not None and not where.exists():
        raise MissingData(f"{where} does not exist; {_remedy(release)}")
    if where is not None and where.is_file():
        return where
    for folder in _folders(where, downloads):
        if folder is not None and (found := _in_folder(release, folder)) is not None:
            return found
    return None


def missing(release: Release, *, where: Path | None, downloads: Path) -> MissingData:
    """The error for an archive that is nowhere: what, where, and what to do."""
    given, environment, cache = _folders(where, downloads)
    return MissingData(
        f"{release.name}: no {' or '.join(release.archives)} (nor a folder "
        f"{release.folder}/) in\n"
        f"  - the place given: {given or 'none given'}\n"
        f"  - $TACIT_DATA: {environment or 'not set'}\n"
        f"  - the cache: {cache}\n{_remedy(release)}"
    )


def stamp(archive: Path) -> Stamp:
    """What tells one archive from another: its name, and a digest of every file in it.

    Every file is read. Sizes and times do not tell: an editor may keep both, and a
    copy or a `touch` changes a time only.
    """
    if archive.is_file():
        return {"archive": archive.name, "files": [["", *_size_and_digest(archive)]]}
    # Sorted: the order in which a disk lists files must not change the stamp.
    found = sorted(path for path in archive.rglob("*") if path.is_file())
    listed: list[list[int | str]] = [
        [path.relative_to(archive).as_posix(), *_size_and_digest(path)]
        for path in found
    ]
    return {"archive": archive.name, "files": listed}


def fetch(download: Download, to: Path, *, progress: Progress | None = None) -> Path:
    """Download to `to`, whole and verified, or not at all.

    Bytes go to `to` + ".part", which is kept when the connection breaks and continued
    by the next call, provided a checksum is known to tell a good join from a bad one.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    part = to.with_name(to.name + ".part")
    if download.checksum is None:  # a bad join could not be told from a good one
        part.unlink(missing_ok=True)
    try:
        _receive(download.url, part, progress or _silent)
    except (OSError, http.client.HTTPException) as error:
        kept = f"what has arrived is kept in {part}; " if part.exists() else ""
        raise MissingData(
            f"download of {download.url} stopped: {error}; {kept}ask again to continue"
        ) from error
    _verify(download, part)
    os.replace(part, to)  # one step: whoever reads `to` finds it whole
    files.flush_directory(to.parent)
    return to


def _folders(
    where: Path | None, downloads: Path
) -> tuple[Path | None, Path | None, Path]:
    environment = os.environ.get("TACIT_DATA")
    return where, Path(environment) if environment else None, downloads


def _in_folder(release: Release, folder: Path) -> Path | None:
    candidates = [
        *(folder / name for name in release.archives),
        folder / release.folder,
    ]
    if folder.name == release.folder:  # the unpacked folder itself was given
        candidates.append(folder)
    return next((path for path in candidates if path.exists()), None)


def _remedy(release: Release) -> str:
    how = f"Get it from {release.home} and say `tacit data prepare {release.name} "
    how += "--from PATH`, or put it into $TACIT_DATA"
    if release.download is None:
        return f"{how}."
    return f"{how}; or let `tacit data prepare {release.name} --download` fetch it."


def _size_and_digest(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")  # computers have it in hardware
        return file.tell(), digest.hexdigest()


def _silent(_done: int, _total: int | None) -> None:
    """Ignores progress, where nobody asked to be told."""


def _receive(url: str, part: Path, progress: Progress) -> None:
    """Fill `part` from where it ends; raise OSError if the server stops short."""
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": f"tacit/{__version__}"}
    if done:
        headers["Range"] = f"bytes={done}-"
    request = urllib.request.Request(url, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=_PATIENCE)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and done:  # nothing after `done`: whole, or not our file
            return
        raise
    with response:
        # A server may ignore the range and send everything: then from the start.
        continues = response.status == 206 and _starts_at(response, done)
        done = done if continues else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length is not None else None
        with files.resumed(part, at_end=continues) as out:
            for block in _blocks(response):
                out.write(block)
                done += len(block)
                progress(done, total)
    if total is not None and done < total:  # urllib ends without a word of it
        raise OSError(f"the connection closed after {done:,} of {total:,} bytes")


def _blocks(response: IO[bytes]) -> Iterator[bytes]:
    while block := response.read(_BLOCK):
        yield block


def _starts_at(response: http.client.HTTPResponse, start: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {start}-")


def _verify(download: Download, part: Path) -> None:
    if download.checksum is None:
        return
    algorithm, expected = download.checksum
    with part.open("rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    if found != expected:
        part.unlink()  # to continue it would only append to bytes that are wrong
        raise BadData(
            download.url,
            None,
            f"{algorithm} of the download is {found}, expected {expected}; it was "
            "deleted, download it again",
        )
