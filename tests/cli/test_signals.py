"""SIGTERM and SIGHUP interrupt a command as Ctrl-C does, with their own exit codes."""

import asyncio
import os
import signal
import time

import pytest
import typer

from tacit.cli.signals import like_ctrl_c

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_command_with_its_own_code(number, capsys):
    before, cleared = signal.getsignal(number), []

    @like_ctrl_c()
    def command():
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        finally:
            cleared.append(True)

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == 128 + number
    assert cleared
    assert capsys.readouterr().err == f"interrupted by {number.name}\n"
    assert signal.getsignal(number) == before


def test_an_event_loop_ends_in_order():
    """Its tasks are cancelled, as they are by Ctrl-C."""
    cancelled = []

    async def work():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    with pytest.raises(typer.Exit), like_ctrl_c():
        asyncio.run(work())
    assert cancelled


def test_ctrl_c_is_told_as_ever_and_what_is_ignored_stays_so():
    before = [signal.signal(one, signal.SIG_IGN) for one in SIGNALS]

    @like_ctrl_c()
    def command():
        for one in (*SIGNALS, signal.SIGINT):  # under nohup SIGHUP is ignored
            os.kill(os.getpid(), one)
        time.sleep(10)

    try:
        with pytest.raises(KeyboardInterrupt):
            command()
    finally:
        for one, handler in zip(SIGNALS, before, strict=True):
            signal.signal(one, handler)
