"""Files that are there as a whole or not at all; every file of a program goes through.

    write_atomically, write_json   a whole file
    draft                          the same for a file that is written piece by piece
    draft_directory, new_file      a folder that appears with all its files
    append, resumed                one more piece at the end of a file
    locked                         keeps a second process out
    sweep, remove_directory        what is not needed any more
    state_folder                   where programs remember what outlives their files

A file is written beside its final path, flushed, and renamed over it, so that whoever
reads sees the old content or the new one. The draft has a name that nobody can guess,
is made by this process (no link is followed) and has its final mode before its first
byte: 0600 for what is private, else 0644, both less the umask. Its writer holds a lock
on it. A draft without a lock was left by a process that is dead, and the next one to
write into the same folder removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

PRIVATE, PUBLIC = 0o600, 0o644
_ENTERED = 0o100  # of folders: who may read them may enter them
_DRAFT = ".tacit-draft-"  # of one length: a draft's name is never too long
_IS_DRAFT = re.compile(r"\.tacit-draft-[0-9a-f]{16}")
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_WRONLY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomically(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Replace a file in one step; readers see the old content or the new.

    A link of that name is replaced, not followed. A private file is
    readable by its owner alone, from its first byte on.
    """
    with draft(path, is_private=is_private) as file:
        file.write(content)


def write_json(path: Path, document: object, *, is_private: bool = False) -> None:
    """Replaces a file by a document as JSON, in one step."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    # Half of a surrogate pair is no text, but JSON has an escape for it: this one.
    content = text.encode("utf-8", "backslashreplace")
    write_atomically(path, content, is_private=is_private)


def state_folder() -> Path:
    """`$TACIT_STATE`, or the platform's own folder for what programs remember."""
    if environment := os.environ.get("TACIT_STATE"):
        return Path(environment)
    import platformdirs  # needed only when nobody says where

    return platformdirs.user_state_path("tacit")


def make_folders(folder: Path) -> None:
    """Make a folder and those above it that are missing.

    Nobody but their owner may write to them, whatever the umask allows: who can write
    to a folder can replace the files in it.
    """
    if folder.is_dir():
        return
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o755, exist_ok=True)
    folder.mkdir(exist_ok=True)  # says what is wrong if it is a file


def make_private_folder(folder: Path) -> None:
    """Make a folder that its owner alone may enter, also if it was there before."""
    mode = PRIVATE | _ENTERED
    with contextlib.suppress(OSError):  # what it is, making it says
        if os.lstat(folder).st_mode == stat.S_IFDIR | mode:
            return
    make_folders(folder.parent)
    folder.mkdir(mode=mode, exist_ok=True)
    folder.chmod(mode)


@contextlib.contextmanager
def draft(path: Path, *, is_private: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to that gets its name when the context ends without an error."""
    folder = path.parent
    with _naming(path):
        make_folders(folder)
        sweep(folder)
        handle, beside = _new_draft(folder, PRIVATE if is_private else PUBLIC)
    try:
        with _naming(path), open(handle, "wb") as file:  # closing lets the lock go
            yield file
            flush(file)
            os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    flush_directory(folder)  # the new name, too, survives a power cut


@contextlib.contextmanager
def draft_directory(
    path: Path, *, is_private: bool = False, replaces: bool = False
) -> Iterator[Path]:
    """A folder to fill that gets its name when the context ends without an error.

    With `replaces` it replaces what stands there, else only an empty folder. Write into
    it with `new_file`.
    """
    parent = path.parent
    with _naming(path):
        make_folders(parent)
        sweep(parent)
        handle, beside = _new_draft_directory(parent, is_private=is_private)
    try:
        with _naming(path):
            yield beside
            os.fsync(handle)
            _move_into(beside, path, replaces=replaces)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    finally:
        os.close(handle)  # lets the lock go
    flush_directory(parent)


@contextlib.contextmanager
def new_file(path: Path, *, is_private: bool = False) -> Iterator[IO[bytes]]:
    """A file that was not there; on the disk when the context ends."""
    handle = os.open(path, _NEW, PRIVATE if is_private else PUBLIC)
    with open(handle, "wb") as file:
        yield file
        flush(file)


def append(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Add to the end of a file, which is made if need be, and wait for the disk.

    Refuses a link and whatever else is no file. Killed in between, a process leaves
    the beginning of `content` there.
    """
    with resumed(path, at_end=True, is_private=is_private) as file:
        file.write(content)


@contextlib.contextmanager
def resumed(
    path: Path, *, at_end: bool, is_private: bool = False
) -> Iterator[IO[bytes]]:
    """A file to write on with, at its end or from its beginning; made if need be."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if at_end else os.O_TRUNC)
    handle = _opened(path, flags, is_private=is_private)
    with _naming(path), open(handle, "wb") as file:
        yield file
        flush(file)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that this file stands for; BlockingIOError if another one does."""
    handle = _opened(path, os.O_RDWR | os.O_CREAT, is_private=True)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove the drafts in this folder whose writers are dead."""
    with os.scandir(folder) as entries:
        found = [entry.name for entry in entries if _IS_DRAFT.fullmatch(entry.name)]
    for name in found:
        with contextlib.suppress(OSError):  # gone meanwhile, or not ours to remove
            _remove_if_abandoned(folder / name)


def remove_directory(path: Path) -> None:
    """Remove a folder with all that is in it; at once it no longer has its name."""
    beside = path.parent / _draft_name()
    os.rename(path, beside)  # from here on it is an abandoned draft, which others sweep
    shutil.rmtree(beside, ignore_errors=True)


def flush(file: IO[Any]) -> None:
    """Wait until what was written is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def flush_directory(folder: Path) -> None:
    """Wait until the names in this folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors of the disk name the file that was asked for, not the draft of it."""
    try:
        yield
    except OSError as error:
        if error.filename is None or _IS_DRAFT.search(str(error.filename)):
            error.filename, error.filename2 = str(path), None
        raise


def _draft_name() -> str:
    return _DRAFT + secrets.token_hex(8)


def _new_draft(folder: Path, mode: int) -> tuple[int, Path]:
    """A new draft file of this process, open and locked, and its path."""
    while True:
        path = folder / _draft_name()
        handle = os.open(path, _NEW, mode)
        if _is_locked(handle, path):
            return handle, path


def _new_draft_directory(parent: Path, *, is_private: bool) -> tuple[int, Path]:
    """A new draft folder of this process, open and locked, and its path."""
    mode = PRIVATE | _ENTERED if is_private else PUBLIC | 0o111
    while True:
        path = parent / _draft_name()
        os.mkdir(path, mode)
        try:
            handle = os.open(path, _FOLDER)
        except FileNotFoundError:  # swept before it could be locked
            continue
        if _is_locked(handle, path):
            return handle, path


def _is_locked(handle: int, path: Path) -> bool:
    """Lock a draft; False, and closed, if it was swept before the lock was ours."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(handle), os.lstat(path)):
            return True
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return False


def _remove_if_abandoned(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if its writer lives
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    finally:
        os.close(handle)


def _opened(path: Path, flags: int, *, is_private: bool) -> int:
    """A file that may be there already: a file, not a link to one, nor a pipe."""
    mode = PRIVATE if is_private else PUBLIC
    safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(path, flags | safe, mode)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is no ordinary file", str(path))
    return handle


def _move_into(beside: Path, path: Path, *, replaces: bool) -> None:
    """Renames a finished folder; what had its name becomes an abandoned draft."""
    while True:
        try:
            os.rename(beside, path)
        except OSError as error:
            taken = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
            if not replaces or error.errno not in taken:
                raise
        else:
            return
        # Another writer was quicker: what had the name is gone, or a new folder has it.
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_directory(path)
    else:
        path.unlink()
