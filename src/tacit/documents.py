"""JSON documents that say so when they were damaged.

    write_document   a table with a checksum of the rest of it
    read_document    the table without it; refuses one that is not as it was written
    sealed, opened   the same for a table that is a line of a larger file

A flipped bit can turn one epsilon into another one that looks as good. The checksum
finds what a disk, a copy or an editor changed. It has no key, so it does not stop
somebody who means to lie. A document without one was written by an earlier version: it
is read, and a line on the log says that nothing vouches for it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import BadRun, Damaged
from tacit.files import write_json

Json = dict[str, Any]

CHECKSUM = "checksum"
LOG = logging.getLogger("tacit.files")


def write_document(
    path: Path, document: Mapping[str, Any], *, is_private: bool = False
) -> None:
    """Replaces the document in a file in one step, with its checksum."""
    write_json(path, sealed(document), is_private=is_private)


def read_document(path: Path, *, needs_checksum: bool = False) -> Json:
    """The document in a file, as it was written, without its checksum.

    With `needs_checksum` one that has none counts as damaged.
    """
    found = parsed(path, read_bytes(path))
    if CHECKSUM not in found and not needs_checksum:
        say_unverified(path)
        return found
    return opened(path, found)


def sealed(document: Mapping[str, Any]) -> Json:
    """The document with its checksum as the last entry."""
    return {**document, CHECKSUM: checksum_of(document)}


def opened(path: Path, document: Mapping[str, Any]) -> Json:
    """The document without its checksum, which must match; `path` is for errors."""
    rest = {name: value for name, value in document.items() if name != CHECKSUM}
    if document.get(CHECKSUM) != checksum_of(rest):
        raise Damaged(path, "its checksum does not match")
    return rest


def checksum_of(document: Mapping[str, Any]) -> str:
    """32 digits that change with any entry, but not with spaces or the order."""
    plain = json.loads(json.dumps(document, allow_nan=False))  # as it will be read
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return digest_of(text.encode())


def digest_of(content: bytes | bytearray) -> str:
    """32 hexadecimal digits of BLAKE2b over these bytes."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_bytes(path: Path) -> bytes:
    """All of a file; BadRun if it cannot be read."""
    try:
        refuse_pipe(path)
        return path.read_bytes()
    except OSError as error:
        raise BadRun(f"{path} cannot be read: {error.strerror or error}") from error


def refuse_pipe(path: Path) -> None:
    """Refuse what is neither file nor folder: a pipe would be waited for, for ever."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise BadRun(f"{path} is no file; remove it, or choose another place")


def parsed(path: Path, content: bytes) -> Json:
    """The table in this JSON text, whatever it says; `path` is where it stood."""
    try:
        # JSON has no NaN, and 1e999 would be read as infinity: both are refused.
        found = json.loads(
            content.decode(), parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:  # deep brackets end the recursion
        raise Damaged(path, f"it is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Damaged(path, f"{content[:40]!r} is not a table")
    return found


def say_unverified(path: Path) -> None:
    """Tell whoever reads the log that nothing vouches for a file."""
    LOG.warning(
        "%s has no checksum, as an earlier version wrote it: it is read unverified",
        path,
    )


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number[:20]} is too large")
    return value


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number")
