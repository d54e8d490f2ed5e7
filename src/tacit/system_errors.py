"""What the disk or the memory refused, in one sentence that says what to do.

The command line prints the sentence. The Python API raises it: `DiskError` is also an
`OSError` and `TooLittleMemory` a `MemoryError`, so whoever catches those still does.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit.errors import TacitError

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


class DiskError(TacitError, OSError):
    """A file or folder that could not be read or written."""

    def __init__(self, number: int | None, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(number, sentence)

    def __str__(self) -> str:
        return self.sentence


class TooLittleMemory(TacitError, MemoryError):
    """An allocation that this machine could not give."""


@contextmanager
def explained() -> Iterator[None]:
    """Raise what the system refuses inside as one of the two errors above."""
    try:
        yield
    except TacitError:
        raise
    except OSError as error:
        raise DiskError(error.errno, disk_sentence(error)) from error
    except (MemoryError, RuntimeError) as error:
        if not is_of_memory(error):
            raise
        raise TooLittleMemory(memory_sentence(error)) from error


def disk_sentence(error: OSError) -> str:
    """What the disk refused, and what to do."""
    if isinstance(error, DiskError):
        return error.sentence
    known = _OF_THE_DISK.get(error.errno or 0)
    problem = known or f"{error.strerror or error}"
    if error.errno == errno.EEXIST and _is_file(error.filename):  # a folder was to be
        problem = f"it is a file, and a folder is needed; {_PLACE}"
    return f"{error.filename}: {problem}" if error.filename is not None else problem


def _is_file(name: object) -> bool:
    return isinstance(name, str | Path) and Path(name).is_file()


def is_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is too little memory."""
    if isinstance(error, MemoryError):
        return True
    said = str(error)  # torch has no error of its own for it
    return isinstance(error, RuntimeError) and "can't allocate memory" in said


def memory_sentence(error: BaseException) -> str:
    """How much memory was wanted, and what to do."""
    said = str(error).splitlines()[0] if str(error) else "an allocation failed"
    return (
        f"there is not enough memory: {said}; use fewer items or users, a smaller "
        "run.chunk, or a larger machine"
    )
