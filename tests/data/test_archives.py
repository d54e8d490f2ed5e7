from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tacit.data import archives
from tacit.data.archives import Download
from tacit.errors import BadData, MissingData

BODY = bytes(range(256)) * 4000  # about a megabyte
MD5 = hashlib.md5(BODY).hexdigest()


OFFICIAL = Download("https://example.org/small.zip")


@dataclass(frozen=True)
class Release:
    name: str = "small"
    home: str = "https://example.org/small"
    archives: tuple[str, ...] = ("small.zip",)
    folder: str = "small"
    download: Download | None = OFFICIAL


@dataclass
class Site:
    """A server on this machine that can misbehave; `asked` lists the ranges wanted."""

    url: str = ""
    cut_after: int | None = None  # bytes, then the connection closes
    knows_ranges: bool = True
    body: bytes = BODY
    asked: list[str | None] = None  # type: ignore[assignment]


class Handler(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *args) -> None:
        self.site = site
        super().__init__(*args)

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.site.asked.append(wanted)
        if self.path != "/small.zip":
            return self.send_error(404)
        body, start = self.site.body, 0
        if wanted and self.site.knows_ranges:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            if start >= len(body):
                return self.send_error(416)
            self.send_response(206)
            span = f"bytes {start}-{len(body) - 1}/{len(body)}"
            self.send_header("Content-Range", span)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        end = len(body) if self.site.cut_after is None else start + self.site.cut_after
        self.wfile.write(body[start:end])
        return None

    def log_message(self, format, *args) -> None:
        """Keep quiet."""


@pytest.fixture
def site(monkeypatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site(asked=[])
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, site))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_address[1]}/small.zip"
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_download_is_whole_verified_and_told_of(site, tmp_path):
    told = []
    to = tmp_path / "deep" / "small.zip"
    download = Download(site.url, md5=MD5)
    found = archives.fetch(download, to, progress=lambda *now: told.append(now))
    assert found == to
    assert to.read_bytes() == BODY
    assert told[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert os.listdir(to.parent) == ["small.zip"]


def test_an_interrupted_download_is_kept_and_continued(site, tmp_path):
    to, part = tmp_path / "small.zip", tmp_path / "small.zip.part"
    site.cut_after = 300_000
    download = Download(site.url, md5=MD5)
    with pytest.raises(MissingData, match=r"small\.zip\.part; ask again to continue"):
        archives.fetch(download, to)
    assert not to.exists()
    assert part.read_bytes() == BODY[:300_000]
    site.cut_after = None
    archives.fetch(download, to)
    assert to.read_bytes() == BODY
    assert site.asked == [None, "bytes=300000-"]
    assert not part.exists()


def test_a_server_without_ranges_starts_over(site, tmp_path):
    (tmp_path / "small.zip.part").write_bytes(BODY[:1000])
    site.knows_ranges = False
    archives.fetch(Download(site.url, md5=MD5), tmp_path / "small.zip")
    assert (tmp_path / "small.zip").read_bytes() == BODY


def test_a_part_that_is_already_whole_is_verified_and_used(site, tmp_path):
    (tmp_path / "small.zip.part").write_bytes(BODY)
    archives.fetch(Download(site.url, md5=MD5), tmp_path / "small.zip")
    assert (tmp_path / "small.zip").read_bytes() == BODY


def test_without_a_checksum_nothing_is_joined(site, tmp_path):
    (tmp_path / "small.zip.part").write_bytes(b"of another edition")
    archives.fetch(Download(site.url), tmp_path / "small.zip")
    assert (tmp_path / "small.zip").read_bytes() == BODY
    assert site.asked == [None]


@pytest.mark.parametrize("wrong", [{"md5": "0" * 32}, {"sha256": "0" * 64}])
def test_a_wrong_checksum_leaves_nothing(site, tmp_path, wrong):
    with pytest.raises(BadData, match="expected 0000"):
        archives.fetch(Download(site.url, **wrong), tmp_path / "small.zip")
    assert os.listdir(tmp_path) == []


def test_sha256_is_preferred(site, tmp_path):
    right = hashlib.sha256(BODY).hexdigest()
    download = Download(site.url, md5="not looked at", sha256=right)
    assert archives.fetch(download, tmp_path / "small.zip").exists()


def test_an_address_that_is_not_there(site, tmp_path):
    with pytest.raises(MissingData, match="404"):
        archives.fetch(Download(site.url + "x", md5=MD5), tmp_path / "small.zip")
    assert os.listdir(tmp_path) == []


def test_a_server_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(MissingData, match="stopped"):
        archives.fetch(Download("http://127.0.0.1:9/x"), tmp_path / "x")


def test_places_are_searched_in_order(tmp_path, monkeypatch):
    given, environment, downloads = (tmp_path / n for n in ("given", "env", "down"))
    for place in (given, environment, downloads):
        place.mkdir()
        (place / "small.zip").touch()
    monkeypatch.setenv("TACIT_DATA", str(environment))
    find = partial(archives.search, Release(), downloads=downloads)
    for place in (given, environment, downloads):
        assert find(where=given) == place / "small.zip"
        (place / "small.zip").unlink()
    assert find(where=given) is None


def test_a_file_given_is_taken_whatever_its_name(tmp_path):
    other = tmp_path / "renamed.zip"
    other.touch()
    assert archives.search(Release(), where=other, downloads=tmp_path) == other


@pytest.mark.parametrize("inside", [True, False])
def test_an_unpacked_folder_is_found(tmp_path, inside, monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    folder = tmp_path / "small"
    folder.mkdir()
    where = tmp_path if inside else folder
    found = archives.search(Release(), where=where, downloads=tmp_path / "none")
    assert found == folder


def test_a_place_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(MissingData, match="typo does not exist"):
        archives.search(Release(), where=tmp_path / "typo", downloads=tmp_path)


def test_a_missing_archive_says_what_where_and_how(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", "/no/such/place")
    say: Callable[[Release], str] = lambda release: str(  # noqa: E731
        archives.missing(release, where=Path("here"), downloads=tmp_path / "downloads")
    )
    text = say(Release())
    for part in (
        *("small.zip", "the place given: here", "$TACIT_DATA: /no/such/place"),
        *(str(tmp_path / "downloads"), "https://example.org/small"),
        *("tacit data prepare small --from PATH", "prepare small --download"),
    ):
        assert part in text
    assert "--download" not in say(replace(Release(), download=None))


def test_a_stamp_changes_with_content_and_name_and_not_with_time(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"one")
    stamps = [archives.stamp(path)]
    os.utime(path, ns=(1, 1))
    assert archives.stamp(path) == stamps[0]
    path.write_bytes(b"two")  # as long, and of the same time
    os.utime(path, ns=(1, 1))
    stamps.append(archives.stamp(path))
    path.write_bytes(b"longer")
    os.utime(path, ns=(1, 1))
    stamps.append(archives.stamp(path))
    path.rename(tmp_path / "b.zip")
    stamps.append(archives.stamp(tmp_path / "b.zip"))
    (tmp_path / "folder").mkdir()
    stamps.append(archives.stamp(tmp_path / "folder"))
    (tmp_path / "folder" / "x").touch()
    stamps.append(archives.stamp(tmp_path / "folder"))
    assert all(a != b for i, a in enumerate(stamps) for b in stamps[:i])
