"""Processes that this one starts: it watches them, and none of them outlives it.

    ChildProcess      one of them, and the file that it logs to
    stop_all          ends several
    end_with_parent   what a program of ours calls first, if it is such a process
    become            what starts any other program, with a watcher beside it

A child holds the read end of a pipe, its lifeline. Its parent alone has the write end
and never writes: once the parent is gone, however it was killed, the child reads the
end of the file and ends itself. Of a program that knows nothing of pipes a watcher in
its process group reads that, and ends the group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

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
    lifeline: int | None  # the write end of the pipe; None: stopped

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str],
        reads_lifeline: bool = False,
    ) -> ChildProcess:
        """Start a program whose output goes to a log.

        `reads_lifeline`: the program calls `end_with_parent`, and needs no watcher.
        """
        make_folders(log.parent)
        watched = () if reads_lifeline else (sys.executable, "-m", __name__)
        with contextlib.ExitStack() as stack:
            # Other programs inherit neither end: Python opens both close-on-exec.
            read, write = os.pipe()
            stack.callback(os.close, read)
            out = stack.enter_context(resumed(log, at_end=True, is_private=True))
            popen = subprocess.Popen(
                [*watched, *command],
                env={**environment, LIFELINE: str(read)},
                pass_fds=(read,),
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
    handle = _lifeline()
    if handle is not None:
        threading.Thread(
            target=_end_after, args=(handle,), name="lifeline", daemon=True
        ).start()


def become(command: Sequence[str]) -> NoReturn:
    """Turn this process into another program, and leave a watcher of its lifeline.

    The watcher is in the program's process group, ends with that, and is no child of
    the program: it would wait for children of its own alone.
    """
    handle = _lifeline()
    if handle is not None:
        child = os.fork()
        if not child:
            if not os.fork():
                _watch(handle)
            os._exit(0)
        os.waitpid(child, 0)
    os.execvp(command[0], [*command])


def _lifeline() -> int | None:
    """The read end of the pipe; programs that this one starts do not have it."""
    name = os.environ.pop(LIFELINE, "")
    if not name.isdigit():
        return None
    os.set_inheritable(int(name), False)
    return int(name)


def _watch(handle: int) -> NoReturn:
    """End the program whose group this process is in, when its parent has ended."""
    _wait_for_end(handle)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    time.sleep(ORPHANS_GRACE)
    os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _end_after(handle: int) -> None:
    """Wait for the end of the pipe; then end as on SIGTERM, by force if need be."""
    _wait_for_end(handle)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHANS_GRACE)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with all that it started
    os._exit(1)


def _wait_for_end(handle: int) -> None:
    while os.read(handle, 1):
        pass


if __name__ == "__main__":
    become(sys.argv[1:])
