"""Arrays in a safetensors file, whose header is believed only as far as it is checked.

    8 bytes   the header's length, little-endian
    header    JSON: name -> {"dtype", "shape", "data_offsets"}, and __metadata__
    data      the arrays, one after the other

Nothing is allocated for a header that is too long, names a type we do not know, or
does not describe exactly the bytes that follow it. So a small file can ask for no more
memory than its own size.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.documents import digest_of, refuse_pipe
from tacit.errors import BadRun, Damaged

MOST_HEADER = 1 << 24  # bytes: some hundred thousand arrays
_MOST_AXES = 32  # of a numpy array

_TYPES = {
    "BOOL": "?",
    **{f"I{8 * n}": f"<i{n}" for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": f"<u{n}" for n in (1, 2, 4, 8)},
    **{f"F{8 * n}": f"<f{n}" for n in (2, 4, 8)},
}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}

Layout = dict[str, tuple[str, tuple[int, ...]]]  # name -> type and shape


@dataclass(frozen=True)
class Entry:
    """An array as the header describes it."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Tensors:
    """The metadata and the arrays of one file."""

    metadata: Mapping[str, str]
    arrays: dict[str, NDArray[Any]]


def layout_of(arrays: Mapping[str, NDArray[Any]]) -> Layout:
    """Names, types and shapes, as a header has them."""
    return {name: (_NAMES[a.dtype], a.shape) for name, a in arrays.items()}


def read_tensors(
    path: Path, *, layout: Layout | None = None, digest: str | None = None
) -> Tensors:
    """The arrays of a file; if given, they must have this layout and it this digest.

    The layout is compared before an array is read.
    """
    try:
        refuse_pipe(path)
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return _read(file, size, path, layout, digest)
    except OSError as error:
        raise BadRun(f"{path} cannot be read: {error.strerror or error}") from error


def tensors_in(content: bytes, *, where: str) -> Tensors:
    """The arrays in these bytes, which are those of a file; `where` is for errors."""
    return _read(BytesIO(content), len(content), Path(where), None, None)


def _read(
    file: IO[bytes],
    size: int,
    path: Path,
    layout: Layout | None,
    digest: str | None,
) -> Tensors:
    head = _head(file, size, path)
    try:
        metadata, entries = _entries(head[8:])
        _check_places(entries, size - len(head))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Damaged(path, f"its header says nothing sound: {error}") from error
    found = {name: (e.dtype, e.shape) for name, e in entries.items()}
    if layout is not None and found != layout:
        raise Damaged(path, _differences(found, layout))
    # One buffer for header and data: the digest is of the file as a whole.
    content = bytearray(size)
    content[: len(head)] = head
    with memoryview(content)[len(head) :] as data:
        if file.readinto(data) != len(data):  # type: ignore[attr-defined]
            raise Damaged(path, "it became shorter while it was read")
    if digest is not None and digest_of(content) != digest:
        raise Damaged(path, "its checksum does not match")
    arrays = {n: _array(content, len(head), e) for n, e in entries.items()}
    return Tensors(metadata, arrays)


def _head(file: IO[bytes], size: int, path: Path) -> bytes:
    """The length and the header that follows it."""
    first = file.read(8)
    length = int.from_bytes(first, "little")
    if len(first) < 8 or not 2 <= length <= min(size - 8, MOST_HEADER):
        raise Damaged(
            path,
            f"a header of {length:,} bytes does not fit into a file of {size:,}, or is "
            f"longer than {MOST_HEADER:,}",
        )
    return first + file.read(length)


def _entries(header: bytes) -> tuple[dict[str, str], dict[str, Entry]]:
    told = json.loads(header.decode(), object_pairs_hook=_once)
    if not isinstance(told, dict):
        raise TypeError("it is no table")
    metadata = told.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise TypeError("its metadata is no table")
    return metadata, {name: _entry(name, one) for name, one in told.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # JSON lets the last one win, and hides the first
        raise ValueError("a name occurs twice")
    return found


def _entry(name: str, told: Mapping[str, Any]) -> Entry:
    if not isinstance(told, dict) or told.keys() != {"dtype", "shape", "data_offsets"}:
        raise TypeError(f"{name!r} has no type, shape and place")
    shape, (start, stop) = tuple(told["shape"]), told["data_offsets"]
    numbers = (*shape, start, stop)
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
        raise ValueError(f"{name!r} has a shape or a place that is no whole number")
    if len(shape) > _MOST_AXES or told["dtype"] not in _TYPES:
        raise ValueError(f"{name!r} has type {told['dtype']!r} and {len(shape)} axes")
    if stop - start != prod(shape) * np.dtype(_TYPES[told["dtype"]]).itemsize:
        raise ValueError(f"{name!r} has {stop - start:,} bytes for shape {shape}")
    return Entry(told["dtype"], shape, start, stop)


def _check_places(entries: Mapping[str, Entry], size: int) -> None:
    """Refuses arrays that do not cover all bytes of the data, each once."""
    end = 0
    for entry in sorted(entries.values(), key=lambda e: (e.start, e.stop)):
        if entry.start != end:
            raise ValueError(f"its arrays leave a gap or overlap at byte {end:,}")
        end = entry.stop
    if end != size:
        raise ValueError(f"its arrays have {end:,} bytes, and the file {size:,}")


def _array(content: bytearray, data: int, entry: Entry) -> NDArray[Any]:
    dtype, count = np.dtype(_TYPES[entry.dtype]), prod(entry.shape)
    if not count:
        return np.empty(entry.shape, dtype)
    flat = np.frombuffer(content, dtype, count, data + entry.start)
    # Aligned and writable: copied only where the header's length is odd.
    return np.require(flat.reshape(entry.shape), requirements=["A", "W"])


def _differences(found: Layout, declared: Layout) -> str:
    for name in sorted({*found, *declared}):
        if found.get(name) != declared.get(name):
            return (
                f"array {name!r} is {_words(found.get(name))} and declared as "
                f"{_words(declared.get(name))}"
            )
    return "its arrays are not those declared"


def _words(one: tuple[str, tuple[int, ...]] | None) -> str:
    return "absent" if one is None else f"{one[0]} of shape {list(one[1])}"
