"""What every data set says of itself, and the two ways to get one: read or made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tacit.data import archives
from tacit.data import cache as cached
from tacit.data.archives import Download, Progress, Stamp
from tacit.data.dataset import Dataset


class Source(Protocol):
    """A data set that can be listed, described and opened."""

    @property
    def name(self) -> str:
        """The name by which Tacit knows the data set."""

    @property
    def title(self) -> str:
        """The name under which people know the data set."""

    @property
    def home(self) -> str:
        """The address of the publisher's page."""

    @property
    def terms(self) -> str:
        """What its publisher allows, in one line."""

    @property
    def citation(self) -> str:
        """The publication that users of the data set should cite."""

    @property
    def archives(self) -> tuple[str, ...]:
        """File names it is recognised by; none if it is made, not read."""

    @property
    def download(self) -> Download | None:
        """Where it can be fetched from, if anywhere."""

    def open(
        self,
        *,
        where: Path | None = None,
        cache: Path | None = None,
        download: bool = False,
        progress: Progress | None = None,
    ) -> Dataset:
        """The parsed data set, from the cache if it is there."""


@dataclass(frozen=True)
class Archived:
    """A data set that is read from its publisher's archive."""

    name: str
    title: str
    home: str
    terms: str
    citation: str
    archives: tuple[str, ...]
    folder: str
    parse: Callable[[Path], Dataset]
    download: Download | None = None
    companions: tuple[str, ...] = ()  # beside the archive; read with it if there

    def open(
        self,
        *,
        where: Path | None = None,
        cache: Path | None = None,
        download: bool = False,
        progress: Progress | None = None,
    ) -> Dataset:
        """Read from the cache, else parsed from the archive, else downloaded first.

        Where no archive is to be found, an entry parsed earlier serves as well, unless
        a path was given: then the archive must be there.
        """
        folder = cached.folder(cache)
        downloads = cached.downloads(folder)
        place = cached.entry(folder, self.name)
        archive = archives.search(self, where=where, downloads=downloads)
        if archive is None and where is None and (kept := cached.read(place)):
            return kept
        if archive is None and download and self.download is not None:
            to = downloads / self.archives[0]
            archive = archives.fetch(self.download, to, progress=progress)
        if archive is None:
            raise archives.missing(self, where=where, downloads=downloads)
        found = archive  # a name of its own, so that the closures below are typed
        return cached.through(
            place, stamp=lambda: self._stamp(found), build=lambda: self.parse(found)
        )

    def _stamp(self, archive: Path) -> Stamp:
        """The archive's own stamp and, if any are there, those of its companions."""
        beside = [archive.parent / name for name in self.companions]
        found = {p.name: archives.stamp(p)["files"] for p in beside if p.exists()}
        return archives.stamp(archive) | found


@dataclass(frozen=True)
class Generated:
    """A data set that is computed: there is nothing to find or to fetch.

    One with a `stamp`, which says what it follows from, is made once and kept.
    """

    name: str
    title: str
    home: str
    terms: str
    citation: str
    make: Callable[[], Dataset]
    stamp: Stamp | None = None
    archives: tuple[str, ...] = ()
    download: Download | None = None

    def open(
        self,
        *,
        where: Path | None = None,
        cache: Path | None = None,
        download: bool = False,
        progress: Progress | None = None,
    ) -> Dataset:
        """Made, or read from the cache if it is kept; `where` does not matter."""
        if self.stamp is None:  # small enough to be made each time
            return self.make()
        place, stamp = cached.entry(cached.folder(cache), self.name), self.stamp
        return cached.through(place, stamp=lambda: stamp, build=self.make)
