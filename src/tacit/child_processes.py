"""Processes that this one starts: it watches them, and none of them outlives it.

    ChildProcess      one of them, and the file that it logs to
    stop_all          ends several
    end_with_parent   what a program of ours calls first, if it is such a process

A child with a lifeline holds the read end of a pipe. Its parent alone has the write
end and never writes: once the parent is gone, however it was killed, the child reads
the end of the file and ends itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import ChildEnded
from tacit.files import make_folders, resumed
from tacit.text import shown

LIFELINE = "TACIT_LIFELINE"  # names the descriptor of the read end, for a child alone
GRACE = 10.0  # seconds for a child to end by itself
ORPHANS_GRACE = 5.0  # seconds for one whose parent is gone
_LAST_LINES = 5


@dataclass
class ChildProcess:
    """A program that this process has started, and the file that it logs to."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    lifeline: int | None = None  # the write end of the pipe

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str],
        has_lifeline: bool = False,
    ) -> ChildProcess:
        """Start a program whose output goes to a log.

        With a lifeline the program must call `end_with_parent`.
        """
        make_folders(log.parent)
        with contextlib.ExitStack() as stack:
            write, own, passed = None, dict[str, str](), tuple[int, ...]()
            if has_lifeline:
                # Other programs inherit neither end: Python opens both close-on-exec.
                read, write = os.pipe()
                stack.callback(os.close, read)
                own, passed = {LIFELINE: str(read)}, (read,)
            out = stack.enter_context(resumed(log, at_end=True, is_private=True))
            popen = subprocess.Popen(
                [*command],
                env={**environment, **own},
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is ours to pass on
            )
        return cls(name, popen, log, write)

    def refuse_ended(self) -> None:
        """Raise with the end of the log if the program has ended."""
        if self.has_ended:
            raise ChildEnded(self.last_words())

    @property
    def has_ended(self) -> bool:
        """Whether the program has ended, for whatever reason."""
        return self.popen.poll() is not None

    def last_words(self) -> str:
        """How a program ended, with the end of its log."""
        return f"{self.ending}; its log {self.log} ends with: {self.last_lines}"

    @property
    def ending(self) -> str:
        """How a program ended: its name, and its exit code or signal."""
        code = self.popen.returncode
        if code >= 0:
            return f"{self.name} ended with code {code}"
        with contextlib.suppress(ValueError):
            return f"{self.name} was killed by {signal.Signals(-code).name}"
        return f"{self.name} was killed by signal {-code}"

    @property
    def last_lines(self) -> str:
        """The end of the log, on one line."""
        lines = self.log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]
        return " | ".join(map(shown, lines)) or "nothing, it is empty"

    def stop(self) -> None:
        """End the program and all that it started, by force if they take their time."""
        ends = time.monotonic() + GRACE
        if self.popen.poll() is None:
            self.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(GRACE)
        if self.popen.returncode is None:
            self._signal(signal.SIGKILL)
            self.popen.wait()
        # It led a group of its own (`start`), in which its children are still.
        self._signal(signal.SIGTERM)
        while self._signal(0) and time.monotonic() < ends:
            time.sleep(0.05)
        self._signal(signal.SIGKILL)
        if self.lifeline is not None:
            os.close(self.lifeline)
            self.lifeline = None

    def _signal(self, number: int) -> bool:
        """Send a signal to the group of the program; whether anybody is left in it."""
        pid = self.popen.pid
        try:
            if self.popen.returncode is not None and _is_there(pid):
                return False  # the number is somebody else's by now
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def stop_all(children: Sequence[ChildProcess]) -> None:
    """End all of them, each at the same time as the others."""
    for one in children:
        if not one.has_ended:
            one.popen.terminate()
    with contextlib.ExitStack() as stack:  # all of them, also if one fails
        for one in children:
            stack.callback(one.stop)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


# --- In a child -----------------------------------------------------------------------


def end_with_parent() -> None:
    """End this process when its parent has ended; nothing if it has no lifeline."""
    name = os.environ.pop(LIFELINE, "")  # programs that this one starts have none
    if not name.isdigit():
        return
    handle = int(name)
    os.set_inheritable(handle, False)
    threading.Thread(
        target=_end_after, args=(handle,), name="lifeline", daemon=True
    ).start()


def _end_after(handle: int) -> None:
    """Wait for the end of the pipe; then end as on SIGTERM, by force if need be."""
    while os.read(handle, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHANS_GRACE)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with all that it started
    os._exit(1)
