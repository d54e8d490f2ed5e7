"""What went wrong, as one sentence and an exit code; only bugs show a traceback.

error of ours, of the disk, of memory, of usage   one sentence, code 2
Ctrl-C                                            one line, code 130
whoever reads us is gone                          nothing, code 141
anything else                                     is a bug: traceback, code 1
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

from tacit.errors import TacitError

BAD_INPUT, INTERRUPTED, UNHEARD = 2, 130, 141  # as shells count SIGINT and SIGPIPE

_ROOM = "make room, then give the same command again"
_PLACE = "change that, or choose another place"
_OF_THE_DISK = {
    errno.ENOSPC: f"the disk is full; {_ROOM}",
    errno.EDQUOT: f"the quota of the disk is used up; {_ROOM}",
    errno.EFBIG: f"the file would be larger than this system allows; {_ROOM}",
    errno.EACCES: f"this user may not read or write there; {_PLACE}",
    errno.EPERM: f"this user may not read or write there; {_PLACE}",
    errno.EROFS: f"it lies on a disk that can only be read; {_PLACE}",
    errno.ENOENT: "there is no such file, or none can be made there; is it right?",
    errno.EEXIST: "it is there already; choose another place",
    errno.ENOTEMPTY: "it is there already, and not empty; choose another place",
    errno.ENOTDIR: f"a part of its path is a file and no folder; {_PLACE}",
    errno.EISDIR: f"it is a folder, and a file is needed; {_PLACE}",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ELOOP: f"it is a link, and links are not followed here; {_PLACE}",
    errno.EIO: "the disk reports an error; look after the disk",
    errno.EMFILE: "too many files are open; raise `ulimit -n`",
}


@dataclass(frozen=True)
class Failure:
    """What is printed about an error that is no bug."""

    kind: str
    message: str
    code: int = BAD_INPUT


def failure_of(error: BaseException) -> Failure | None:
    """What to say of an error; None if it is a bug."""
    if isinstance(error, TacitError):
        return Failure(type(error).__name__, str(error))
    if isinstance(error, BrokenPipeError):
        return Failure("BrokenPipe", "", UNHEARD)
    if isinstance(error, OSError):
        return Failure("OSError", _of_the_disk(error))
    if _is_of_memory(error):
        return Failure("MemoryError", _of_memory(error))
    if isinstance(error, KeyboardInterrupt):
        return Failure("Interrupted", "interrupted", INTERRUPTED)
    sqlite = sys.modules.get("sqlite3")  # a ledger is open only if it was imported
    if sqlite is not None and isinstance(error, sqlite.Error):
        return Failure("BadData", f"the ledger cannot be read or written: {error}")
    return None


def silence() -> None:
    """Redirect stdout to nowhere, because whoever read it is gone."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _of_the_disk(error: OSError) -> str:
    known = _OF_THE_DISK.get(error.errno or 0)
    problem = known or f"{error.strerror or error}"
    return f"{error.filename}: {problem}" if error.filename is not None else problem


def _is_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    said = str(error)  # torch has no error of its own for it
    return isinstance(error, RuntimeError) and "can't allocate memory" in said


def _of_memory(error: BaseException) -> str:
    said = str(error).splitlines()[0] if str(error) else "an allocation failed"
    return (
        f"there is not enough memory: {said}; use fewer items or users, a smaller "
        "run.chunk, or a larger machine"
    )
