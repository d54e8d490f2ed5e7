"""Bar 14: `tacit --help`, `plan` and `recommend` start without importing torch.

Each command runs in a process of its own, which says at its end whether torch was
imported. The ratio is 1 for a command that did without, so the bar is 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.bar import Bar, Case
from benchmarks.timing import seconds

WATCHED = """
import atexit, sys
atexit.register(lambda: print("torch" in sys.modules, file=sys.stderr))
sys.argv[0] = "tacit"
from tacit.cli import main
main()
"""


def measure(quick: bool) -> list[Case]:  # noqa: ARG001
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder) / "run")
        demo = json.loads(_tacit("demo", "--json", "--out", run).stdout)
        commands = (
            ("--help",),
            ("plan", f"{run}/experiment.toml"),
            ("recommend", run, "--user", demo["user"]),
        )
        return [_case(command) for command in commands]


def _case(command: tuple[str, ...]) -> Case:
    name = f"tacit {command[0]}"
    done = list[subprocess.CompletedProcess[str]]()
    took = {"whole process": seconds(lambda: done.append(_tacit(*command)))}
    imported = done[0].stderr.split()[-1]
    return Case(name, float(imported == "False"), took, f"torch imported: {imported}")


def _tacit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WATCHED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"tacit {arguments[0]} failed: {done.stderr.strip()}")
    return done


BAR = Bar(14, "tacit --help, plan and recommend start without torch", 1.0, measure)
