"""SIGTERM and SIGHUP end a command as Ctrl-C does, so that it clears up first."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import typer

from tacit.cli import console

_LIKE_CTRL_C = (signal.SIGTERM, signal.SIGHUP)
_SIGNALLED = 128  # and the number of the signal: an exit code as shells count


@contextlib.contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Have SIGTERM and SIGHUP interrupt the command; also to decorate one.

    It ends with one sentence and the exit code that shells give to such an end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread alone
        return
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        # By way of SIGINT, which an event loop takes care of while it runs.
        signal.raise_signal(signal.SIGINT)

    # `nohup` ignores SIGHUP, and what a script starts in the background SIGINT.
    ours = [one for one in _LIKE_CTRL_C if signal.getsignal(one) != signal.SIG_IGN]
    before = {one: signal.signal(one, interrupt) for one in ours}
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        before[signal.SIGINT] = signal.SIG_IGN
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        if not received:
            raise
        name = signal.Signals(received[0]).name
        console.note(f"interrupted by {name}")
        raise typer.Exit(_SIGNALLED + received[0]) from None
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
