"""Lives of `tacit up`: something is killed in each, and what is left is looked at.

A life is one command in a process of its own. It is told when to begin by what it
prints: the preparation, the start of its processes, each round, the published model.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

EXPERIMENT = """
[data]
source = "synthetic"
validation = 10
test = 10
[data.world]
users = 60
items = 30
events_per_user = 8.0
[method]
name = "federated_popularity"
[privacy]
mechanism = "central"
channel = "two_servers"
target_epsilon = 8.0
delta = 1e-6
[run]
rounds = 1
"""
SHUFFLED = (
    *("privacy.mechanism=local_item", "privacy.channel=shuffle"),
    "privacy.min_contributors=5",
)
ROLES = {
    "two_servers": ("leader", "helper", "coordinator"),
    "shuffle": ("relay", "collector"),
}
STAGES = ("up: preparing", "up: starting", "up: round 1", "is published")
LONGEST = 180.0  # seconds for anything here; a loaded machine needs some


@dataclass
class Life:
    """One `tacit up`, which serves until it is ended."""

    place: Path
    channel: str = "two_servers"
    more: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        experiment = self.place / "exp.toml"
        experiment.write_text(EXPERIMENT)
        command = ["up", str(experiment), "--out", str(self.out), "--clients", "25"]
        command += ["--port", "0"]
        if self.channel == "shuffle":
            command += [word for one in SHUFFLED for word in ("--set", one)]
        with (self.place / "said").open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tacit", *command, *self.more],
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=_heed_signals,
                env={**os.environ, "TACIT_STATE": str(self.place / "state")},
            )

    @property
    def out(self) -> Path:
        """The folder of the trial."""
        return self.place / "federation"

    @property
    def said(self) -> str:
        """All that the command has printed so far."""
        return (self.place / "said").read_text()

    def wait_for(self, text: str) -> None:
        """Until the command has printed this, or has ended."""
        until = time.monotonic() + LONGEST
        while text not in self.said and self.process.poll() is None:
            assert time.monotonic() < until, self.said
            time.sleep(0.02)

    def child(self, role: str) -> int | None:
        """The process of a role, as soon as it runs; None if the command has ended."""
        until = time.monotonic() + LONGEST
        while self.process.poll() is None:
            for pid, words in self._processes():
                if f"serve\0{role}\0" in words:
                    return pid
            assert time.monotonic() < until, self.said
            time.sleep(0.02)
        return None

    def ports(self) -> list[int]:
        """The ports of all roles whose settings are there."""
        texts = [path.read_text() for path in self.out.glob("*.toml")]
        return [int(one) for text in texts for one in re.findall(r"\.1:(\d+)", text)]

    def orphans(self) -> list[str]:
        """The processes that were started for this trial and still run."""
        return [words for _, words in self._processes() if "serve\0" in words]

    def _processes(self) -> list[tuple[int, str]]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_text("utf-8", "replace")
            except OSError:  # it has ended meanwhile
                continue
            if f"{self.out}/" in words:
                found.append((int(path.parent.name), words))
        return found

    def end(self) -> int:
        """Wait until the command has ended; its exit code."""
        return self.process.wait(LONGEST)

    def kill(self) -> None:
        """End the command, whatever it does, and all that it has left behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pid, _ in self._processes():
            os.kill(pid, signal.SIGKILL)

    def sentences(self) -> list[str]:
        """The lines that say why it has ended."""
        ends = ("error: ", "interrupted", "stopped")
        return [line for line in self.said.splitlines() if line.startswith(ends)]


def _heed_signals() -> None:
    """Undo what whoever started the tests may have ignored, as `nohup` does SIGHUP."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def assert_nothing_is_left(life: Life, ports: list[int]) -> None:
    """No process of the trial runs any more, and none of its ports is taken."""
    until = time.monotonic() + 30
    while (left := life.orphans()) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left, life.said
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
