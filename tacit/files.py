"""Files that are there as a whole or not at all.

A file is written beside its place, flushed, and renamed over it, so that whoever reads
sees the old content or the new one.
"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import IO, Any


def write_atomically(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Replace a file in one step; readers see the old content or the new.

    A private one is readable by its owner alone, from its first byte on.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    opener = partial(os.open, mode=0o600 if is_private else 0o666)
    try:
        with open(beside, "wb", opener=opener) as file:
            file.write(content)
            flush(file)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _flush_directory(path.parent)


def flush(file: IO[Any]) -> None:
    """Wait until what was written is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def write_json(path: Path, document: object) -> None:
    """Replace a JSON file in one step."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(path, (text + "\n").encode())


def _flush_directory(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
