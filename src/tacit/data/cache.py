"""Parsed data sets on disk: a file for each column, memory-mapped when read again.

    <cache>/downloads/ml-1m.zip
    <cache>/parsed/movielens-1m/manifest.json, 0000.npy, 0001.npy, …
    <cache>/vectors/0123…/manifest.json, 0000.npy    vectors of texts, by their content
    <cache>/frames/0123…/frame.arrow                 what a Python program handed over

An entry is written beside its final path and renamed into it, so it is whole or absent.
It says what it was made from, by the content of the archive, and has a digest of every
column and of itself. One that is damaged, of another format or made from another
archive is made anew. Arrays read from an entry are read-only. The folder may be deleted
at any time; a frame must then be handed over again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.archives import Stamp
from tacit.data.columns import describe, restore
from tacit.data.dataset import Dataset
from tacit.data.features import Vectors
from tacit.documents import LOG, checksum_of, opened, parsed, read_bytes, sealed
from tacit.errors import BadValue
from tacit.files import draft_directory, new_file

FORMAT = 3  # raise it when this layout or what any parser yields changes
MANIFEST = "manifest.json"

Kept = TypeVar("Kept", Dataset, Vectors)

_EARLIER = (1, 2)  # formats without a checksum: made anew without a warning
_PATIENCE = 10  # times that an entry may be replaced while it is read


def folder(given: Path | None = None) -> Path:
    """The cache: the folder given, `$TACIT_CACHE`, or the platform's own folder."""
    if given is not None:
        return given
    if environment := os.environ.get("TACIT_CACHE"):
        return Path(environment)
    import platformdirs  # needed only when nobody says where

    return platformdirs.user_cache_path("tacit")


def downloads(cache: Path) -> Path:
    """The folder of the cache that holds downloaded archives."""
    return cache / "downloads"


def entry(cache: Path, name: str) -> Path:
    """The folder of the cache that holds one parsed data set."""
    return cache / "parsed" / name


def frames(cache: Path) -> Path:
    """The folder of the cache that holds frames which a Python program handed over."""
    return cache / "frames"


def through(
    path: Path, *, stamp: Callable[[], Stamp], build: Callable[[], Dataset]
) -> Dataset:
    """The data set kept at `path` if it was made from the same; else built and kept.

    `stamp` says what it is made from. Asked before and after: what changed while it was
    read is used, since that was asked for, and not kept.
    """
    return _through(path, stamp, build, Dataset)


def vectors_through(
    cache: Path, *, stamp: Stamp, build: Callable[[], Vectors]
) -> Vectors:
    """The vectors kept of the same texts and model, told by `stamp`; else built."""
    name = checksum_of(stamp)  # its own place for all that is made from something else
    return _through(cache / "vectors" / name, lambda: stamp, build, Vectors)


def _through(
    path: Path,
    stamp: Callable[[], Stamp],
    build: Callable[[], Kept],
    kind: type[Kept],
) -> Kept:
    before = stamp()
    kept = _sound(path, before, kind)
    if kept is not None:
        return kept
    _make_writable(path.parent)
    built = build()
    if stamp() != before:
        return built
    write(built, path, stamp=before)
    kept = _sound(path, before, kind)
    return built if kept is None else kept  # None: somebody replaced it already


def read(path: Path, *, stamp: Stamp | None = None) -> Dataset | None:
    """The data set kept at `path`, memory-mapped; None if there is no sound one.

    Every column's digest is compared, which reads each file once. With a `stamp`, an
    entry made from anything else does not count. A line on the log tells of an entry
    that was damaged.
    """
    return _sound(path, stamp, Dataset)


def _sound(path: Path, stamp: Stamp | None, kind: type[Kept]) -> Kept | None:
    for _ in range(_PATIENCE):
        version = _version(path)
        if version is None:
            return None
        try:
            return _read(path, stamp, kind)
        except MemoryError:
            raise
        except Exception as error:  # whatever a damaged file may lead to
            if _version(path) == version:  # else: it was replaced while we read
                LOG.warning("cache entry %s is damaged (%r): made anew", path, error)
                return None
    return None


def write(dataset: Dataset | Vectors, path: Path, *, stamp: Stamp) -> None:
    """Keep a data set or vectors at `path`, in one step; of two writers the last wins.

    A data set is as private as the users in it.
    """
    _make_writable(path.parent)
    with draft_directory(path, is_private=True, replaces=True) as draft:
        _write_files(dataset, draft, stamp)


def _version(path: Path) -> int | None:
    """A number that changes when an entry is replaced; None if there is none."""
    try:
        return os.stat(path / MANIFEST).st_ino
    except OSError:
        return None


def _read(path: Path, stamp: Stamp | None, kind: type[Kept]) -> Kept | None:
    found = parsed(path / MANIFEST, read_bytes(path / MANIFEST))
    if found.get("format") in _EARLIER:
        return None
    manifest = opened(path / MANIFEST, found)
    if stamp not in (None, manifest["stamp"]):
        return None
    listed = manifest["columns"]
    with ThreadPoolExecutor() as pool:  # digests are computed beside each other
        arrays = pool.map(partial(_read_column, path), listed.values())
        columns = dict(zip(listed, arrays, strict=True))
    restored = restore(manifest["dataset"], columns)
    return restored if isinstance(restored, kind) else None


def _write_files(dataset: Dataset | Vectors, draft: Path, stamp: Stamp) -> None:
    described, columns = describe(dataset, "dataset")
    files: dict[int, dict[str, Any]] = {}  # an array in two places is written once
    for column in columns.values():
        if id(column) not in files:
            file = f"{len(files):04}.npy"
            files[id(column)] = _write_column(draft, file, column)
    listed = {name: files[id(column)] for name, column in columns.items()}
    manifest = {
        "format": FORMAT,
        "stamp": stamp,
        "dataset": described,
        "columns": listed,
    }
    text = json.dumps(sealed(manifest), indent=1)
    with new_file(draft / MANIFEST, is_private=True) as out:
        out.write(text.encode())


def _make_writable(parent: Path) -> None:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        writable = os.access(parent, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise BadValue(
            f"cache {parent} cannot be written; set $TACIT_CACHE to a folder that can"
        )


def _write_column(draft: Path, file: str, column: NDArray[Any]) -> dict[str, Any]:
    with new_file(draft / file, is_private=True) as out:
        np.save(out, column, allow_pickle=False)
    return {"file": file, **_facts(column)}


def _read_column(path: Path, listed: Mapping[str, Any]) -> NDArray[Any]:
    mapped = np.load(path / listed["file"], mmap_mode="r", allow_pickle=False)
    column = np.asarray(mapped)  # a plain view; the subclass would slow every slice
    if {"file": listed["file"], **_facts(column)} != listed:
        raise ValueError(f"{path / listed['file']} is damaged")
    return column


def _facts(column: NDArray[Any]) -> dict[str, Any]:
    raw = np.ascontiguousarray(column).data.cast("B") if column.size else b""
    return {
        "dtype": column.dtype.str,
        "shape": list(column.shape),
        "sha256": hashlib.sha256(raw).hexdigest(),  # computers have it in hardware
    }
