"""The log of a node, for its operator alone: what is in it may tell of users."""

from __future__ import annotations

import contextlib
import traceback
from datetime import UTC, datetime
from pathlib import Path

from tacit.files import append

NAME = "node.log"  # in the folder of a node


def note_failure(folder: Path, error: Exception) -> None:
    """Write what went wrong to the log in a node's folder; its owner alone reads it.

    A full disk must not change what a node answers: then nothing is written.
    """
    told = "".join(traceback.format_exception(error))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with contextlib.suppress(OSError):
        line = f"{now} {told}\n".encode("utf-8", "replace")
        append(folder / NAME, line, is_private=True)
