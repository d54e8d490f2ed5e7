"""What went wrong, as one sentence and an exit code; only bugs show a traceback.

error of ours, of the disk, of memory, of usage   one sentence, code 2
a process that we started has died                one sentence, code 1
Ctrl-C                                            one line, code 130
whoever reads us is gone                          nothing, code 141
anything else                                     is a bug: traceback, code 1
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass

from tacit.errors import ChildEnded, TacitError
from tacit.system_errors import disk_sentence, is_of_memory, memory_sentence

CHILD_ENDED, BAD_INPUT = 1, 2
INTERRUPTED, UNHEARD = 130, 141  # as shells count SIGINT and SIGPIPE


@dataclass(frozen=True)
class Failure:
    """What is printed about an error that is no bug."""

    kind: str
    message: str
    code: int = BAD_INPUT


def failure_of(error: BaseException) -> Failure | None:
    """What to say of an error; None if it is a bug."""
    if isinstance(error, ChildEnded):
        return Failure(type(error).__name__, str(error), CHILD_ENDED)
    if isinstance(error, TacitError):
        return Failure(type(error).__name__, str(error))
    if isinstance(error, BrokenPipeError):
        return Failure("BrokenPipe", "", UNHEARD)
    if isinstance(error, OSError):
        return Failure("OSError", disk_sentence(error))
    if is_of_memory(error):
        return Failure("MemoryError", memory_sentence(error))
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
