"""A client that takes part, to be killed: `python handset.py`, then a life a line.

For each line, a JSON table, it forks a child that opens its ledger, sends what is
pending, answers one broadcast and says that the report has arrived. With `die` the
child kills itself, with SIGKILL, at that line of code in the ledger, in its anchor, in
the client, in the thread that computes or in its own sending; with `after` it is killed
after so many seconds, wherever it is. Where reports arrive is a file that is only ever
appended to.

With `look` the child writes down before which of its lines the disk had changed. To be
killed at one of them or at a later one, up to the next, is the same: a process that is
killed leaves the disk and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import numpy as np
from dp_accounting import GaussianDpEvent

from tacit import files
from tacit.data.catalog import Catalog
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.keys import Key
from tacit.ledger import durable, schema
from tacit.ledger.budget import Cap
from tacit.plans import Plan
from tacit.privacy.guarantees import local
from tacit.release import Release
from tacit.runtime import client as device_module
from tacit.runtime.client import Client
from tacit.storage import anchor, sqlite_file
from tacit.testing.toy import ToyFactors
from tacit.transport.codec import encode_broadcast

ITEMS, ROUNDS = 6, 10
STEPS = (anchor, device_module, durable, files, schema, sqlite_file)  # those that write
WATCHED = {__file__, *(module.__file__ for module in STEPS)}


@dataclass(frozen=True)
class Noisy(ToyFactors):
    """The toy with noise worth a guarantee, as far as its ledger is concerned."""

    dither: float = 5.0

    def terms(self, plan: Plan) -> dict[str, object]:
        """Without the class: as a script it has another name than as a module."""
        return {"plan": plan.digest}

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        cells = local(plan, GaussianDpEvent(5.0), reason="a test")
        return (Release("noisy gradients", "server", "each round", cells),)


CATALOG = Catalog.of_ids([f"item {i}" for i in range(ITEMS)])
METHOD, PLAN = Noisy(), Plan(100, rounds=ROUNDS, delta=1e-6)
HISTORY = Shards.of(
    Interactions.of_columns(np.zeros(3, np.int64), [0, 2, 5], n_users=1, n_items=ITEMS)
)


def broadcast(round_: int, seed: int) -> bytes:
    """A broadcast; another seed asks something else."""
    server = METHOD.start(PLAN, CATALOG, Key.from_seed(seed))
    return encode_broadcast(METHOD.broadcast(replace(server, round=round_)))


def live(folder: Path, round_: int, seed: int) -> None:
    """One life of the device."""
    path, known = folder / "ledger.db", {"catalog": CATALOG, "history": HISTORY}
    client = Client(path, METHOD, PLAN, **known)
    client.ledger.set_cap(Cap(50.0))
    for parcel in client.pending():
        send(folder, parcel.round, parcel.report)
        client.delivered(parcel.round)
    report = client.participate(broadcast(round_, seed))
    if report is not None:
        send(folder, round_, report)
        client.delivered(round_)
    client.close()


def send(folder: Path, round_: int, report: bytes) -> None:
    line = f"{round_} {hashlib.sha256(report).hexdigest()}\n".encode()
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
    handle = os.open(folder / "received", flags)
    os.write(handle, line)
    os.close(handle)


class Steps:
    """Counts the lines run in the watched files, and dies at one of them."""

    def __init__(self, die: int | None, *, look: Path | None = None) -> None:
        self.die, self.count = die, 0
        self.look, self.disk = look, dict[str, bytes]()
        self.changes: list[int] = []  # lines before which the disk had changed

    def __call__(self, frame: FrameType, event: str, arg: object) -> Steps | None:
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            if self.count == self.die:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.look is not None:
                self.compare(self.look)
            self.count += 1
        return self

    def compare(self, folder: Path) -> None:
        files = [path for path in folder.rglob("*") if path.is_file()]
        disk = {str(path): path.read_bytes() for path in files}
        if disk != self.disk or not self.count:
            self.disk = disk
            self.changes.append(self.count)


def main() -> None:
    Cap(50.0).holds([])  # imports the accountant once
    for line in sys.stdin:
        life = json.loads(line)
        child = os.fork()
        if not child:
            folder = Path(life["folder"])
            steps = Steps(life["die"], look=folder if life["look"] else None)
            os.environ["TACIT_STATE"] = str(folder / "state")
            threading.settrace(steps)
            sys.settrace(steps)
            live(folder, life["round"], life["seed"])
            sys.settrace(None)
            told = {"steps": steps.count, "changes": steps.changes}
            (folder / "steps").write_text(json.dumps(told))
            os._exit(0)
        if life["after"] is not None:
            time.sleep(life["after"])
            os.kill(child, signal.SIGKILL)  # it is ours until we wait for it
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
