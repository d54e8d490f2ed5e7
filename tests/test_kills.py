"""A smoke of `python -m benchmarks.kills`, in a process that ran no kernel before."""

import subprocess
import sys
from pathlib import Path

COMMANDS = ("train", "release", "compare", "export", "cache", "ledger", "query")


def test_a_kill_of_each_command_loses_nothing():
    """`make test-all` has 1,400 kills."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.kills", "--times", "7"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    _, *lines = done.stdout.splitlines()
    rows = [line.split() for line in lines]
    assert tuple(row[0] for row in rows) == COMMANDS
    assert [row[1] for row in rows] == ["1"] * 7  # kills
    assert all(int(row[2]) > 0 for row in rows)  # resumed
    assert {row[3] for row in rows} == {"0"}  # wrong
