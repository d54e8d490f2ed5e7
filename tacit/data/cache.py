"""Parsed data sets on disk: a file for each column, memory-mapped when read again.

    <cache>/downloads/ml-1m.zip
    <cache>/parsed/movielens-1m/manifest.json, 0000.npy, 0001.npy, …

An entry is written beside its place and renamed into it, so it is whole or absent. One
that is damaged, of another format or made from another archive is made anew. Arrays
read from an entry are read-only. The folder may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.archives import Stamp
from tacit.data.columns import describe, restore
from tacit.data.dataset import Dataset
from tacit.errors import BadValue

FORMAT = 2  # raise it when this layout or what any parser yields changes

_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError)


def folder(given: Path | None = None) -> Path:
    """The cache: the folder given, `$TACIT_CACHE`, or the platform's own place."""
    if given is not None:
        return given
    if environment := os.environ.get("TACIT_CACHE"):
        return Path(environment)
    import platformdirs  # needed only when nobody says where

    return platformdirs.user_cache_path("tacit")


def downloads(cache: Path) -> Path:
    """Where downloaded archives are kept."""
    return cache / "downloads"


def entry(cache: Path, name: str) -> Path:
    """Where a parsed data set is kept."""
    return cache / "parsed" / name


def through(place: Path, *, stamp: Stamp, build: Callable[[], Dataset]) -> Dataset:
    """The data set kept at `place` if its stamp is `stamp`; else built and kept."""
    kept = read(place, stamp=stamp)
    if kept is not None:
        return kept
    _make_writable(place.parent)
    built = build()
    write(built, place, stamp=stamp)
    kept = read(place, stamp=stamp)
    return built if kept is None else kept  # None: somebody replaced it already


def read(place: Path, *, stamp: Stamp | None = None) -> Dataset | None:
    """The data set kept at `place`, memory-mapped; None if there is no sound one.

    Every column's checksum is compared, which reads each file once. With a `stamp`, an
    entry made from anything else does not count.
    """
    try:
        manifest = json.loads((place / "manifest.json").read_text())
        if manifest["format"] != FORMAT or stamp not in (None, manifest["stamp"]):
            return None
        columns = {
            name: _read_column(place, column)
            for name, column in manifest["columns"].items()
        }
        restored = restore(manifest["dataset"], columns)
    except _DAMAGED:
        return None
    return restored if isinstance(restored, Dataset) else None


def write(dataset: Dataset, place: Path, *, stamp: Stamp) -> None:
    """Keep a data set at `place`, in one step; of two writers the last one wins."""
    _make_writable(place.parent)
    draft = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}-"))
    try:
        _write_files(dataset, draft, stamp)
        _move_into(draft, place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_files(dataset: Dataset, draft: Path, stamp: Stamp) -> None:
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
    (draft / "manifest.json").write_text(json.dumps(manifest, indent=1))


def _move_into(draft: Path, place: Path) -> None:
    """Rename `draft` to `place`, moving aside whatever stands there."""
    for _ in range(10):  # another writer may step in between the two renames
        old = Path(f"{draft}.old")
        try:
            os.rename(place, old)
            shutil.rmtree(old, ignore_errors=True)
        except FileNotFoundError:
            pass
        try:
            os.rename(draft, place)
        except OSError:
            continue
        return
    raise BadValue(f"cache entry {place} could not be replaced; delete it")


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
    np.save(draft / file, column, allow_pickle=False)
    return {"file": file, **_facts(column)}


def _read_column(place: Path, listed: Mapping[str, Any]) -> NDArray[Any]:
    mapped = np.load(place / listed["file"], mmap_mode="r", allow_pickle=False)
    column = np.asarray(mapped)  # a plain view; the subclass would slow every slice
    if {"file": listed["file"], **_facts(column)} != listed:
        raise ValueError(f"{place / listed['file']} is damaged")
    return column


def _facts(column: NDArray[Any]) -> dict[str, Any]:
    raw = np.ascontiguousarray(column).data.cast("B") if column.size else b""
    return {
        "dtype": column.dtype.str,
        "shape": list(column.shape),
        "crc32": zlib.crc32(raw),
    }
