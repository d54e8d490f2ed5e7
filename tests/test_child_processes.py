"""Processes that this one starts: told when they end, ended with it, never alone."""

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tacit.child_processes import LIFELINE, ChildProcess, end_with_parent, stop_all
from tacit.errors import ChildEnded


def test_a_program_that_ended_is_told_with_its_last_words(tmp_path):
    log = tmp_path / "log" / "program.log"
    command = [sys.executable, "-c", "print('out of luck'); raise SystemExit(3)"]
    made = ChildProcess.start("A program", command, log=log, environment=os.environ)
    made.popen.wait(30)
    with pytest.raises(ChildEnded, match=r"code 3.*out of luck"):
        made.refuse_ended()
    made.stop()


def test_a_program_is_stopped(tmp_path):
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    log = tmp_path / "log"
    made = ChildProcess.start("A program", command, log=log, environment=os.environ)
    made.refuse_ended()
    made.stop()
    assert made.popen.returncode is not None


CHILD = "import time; print('here', flush=True); time.sleep(60)"
PARENT = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
"""


def is_running(pid):
    """Whether a process is there and no zombie, which nobody may have reaped here."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False


@pytest.mark.parametrize("ending", ["time.sleep(60)", "pass"])
def test_a_program_is_stopped_with_all_that_it_started(ending, tmp_path):
    """Also if it has ended before, and left its children alone."""
    log = tmp_path / "log"
    command = [sys.executable, "-c", PARENT + ending]
    made = ChildProcess.start("A program", command, log=log, environment=os.environ)
    if ending == "pass":
        made.popen.wait(30)
    while not (told := log.read_text()).endswith("\n"):
        time.sleep(0.05)
    assert is_running(int(told))
    made.stop()
    ends = time.monotonic() + 10
    while is_running(int(told)) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not is_running(int(told))
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


# --- The lifeline ---------------------------------------------------------------------

LISTENS = """
import os, signal, socket, sys, time
from tacit.child_processes import LIFELINE, end_with_parent
if sys.argv[2] == "ours":
    end_with_parent()
assert LIFELINE not in os.environ
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = socket.create_server(("127.0.0.1", 0))
print(held.getsockname()[1], flush=True)
time.sleep(600)
"""
STARTS = f"""
import os, sys, time
from pathlib import Path
from tacit.child_processes import ChildProcess
for name in ("deaf", "keen"):
    command = [sys.executable, "-c", {LISTENS!r}, name, sys.argv[1]]
    ours = sys.argv[1] == "ours"
    child = ChildProcess.start(
        name, command, log=Path(name), environment=os.environ, reads_lifeline=ours
    )
    print(child.popen.pid, flush=True)
time.sleep(600)
"""


def has_members(group):
    """Whether a process group has a process that is no zombie."""
    for stat_file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, own, *_ = stat_file.read_text().rpartition(")")[2].split()
            if int(own) == group and state != "Z":
                return True
    return False


def wait_until(claim, seconds=60.0):
    until = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("whose", ["ours", "foreign"])
def test_a_killed_parent_leaves_no_child_and_no_port(whose, tmp_path):
    """One of two children ignores SIGTERM; neither keeps the other's pipe open.

    A foreign program knows nothing of the pipe. It, and no wrapper, is the child that
    is told of when it ends, and its watcher ends as well.
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", STARTS, whose], cwd=tmp_path, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    with parent.stdout:
        children = [int(parent.stdout.readline()) for _ in range(2)]
        logs = [tmp_path / name for name in ("deaf", "keen")]
        wait_until(lambda: all(log.read_text().endswith("\n") for log in logs))
        assert all(map(is_running, children))
        parent.kill()
        parent.wait()
        wait_until(lambda: not any(map(is_running, children)))
        wait_until(lambda: not any(map(has_members, children)))
    for log in logs:
        socket.create_server(("127.0.0.1", int(log.read_text()))).close()


def test_without_a_lifeline_nothing_is_watched(monkeypatch):
    monkeypatch.delenv(LIFELINE, raising=False)
    before = threading.active_count()
    end_with_parent()
    monkeypatch.setenv(LIFELINE, "no number")
    end_with_parent()
    assert threading.active_count() == before


def test_a_child_that_was_killed_is_told_by_its_signal(tmp_path):
    made = [
        ChildProcess.start(
            name,
            [sys.executable, "-c", "import time; time.sleep(60)"],
            log=tmp_path / name,
            environment=os.environ,
        )
        for name in ("one", "other")
    ]
    made[0].popen.send_signal(signal.SIGKILL)
    made[0].popen.wait()
    with pytest.raises(ChildEnded, match=r"one was killed by SIGKILL; .* is empty"):
        made[0].refuse_ended()
    stop_all(made)
    assert [one.popen.returncode for one in made] == [-9, -15]


def test_a_stopped_program_takes_its_watcher_along(tmp_path):
    command = [
        sys.executable,
        "-c",
        "import time; print(1, flush=True); time.sleep(60)",
    ]
    made = ChildProcess.start(
        "one", command, log=tmp_path / "log", environment=os.environ
    )
    wait_until(lambda: (tmp_path / "log").read_text())
    began = time.monotonic()
    made.stop()
    assert made.popen.returncode == -signal.SIGTERM  # of the program itself
    assert time.monotonic() - began < 5
    wait_until(lambda: not has_members(made.popen.pid))
