"""kill -9 at every step of a participation: never under-counted, never said anew."""

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from quick import some_or_all
from runtime.handset import ITEMS, METHOD, PLAN, broadcast
from safetensors.numpy import load

from tacit.data.catalog import Catalog
from tacit.errors import BadData, BadMessage
from tacit.keys import Key
from tacit.ledger.durable import ClientLedger
from tacit.transport.codec import decode_broadcast, decode_reports

HANDSET = Path(__file__).with_name("handset.py")


@dataclass
class Nursery:
    """The process that forks clients, one at a time, and how many were killed."""

    process: subprocess.Popen[str]
    killed: int = 0

    def live(
        self,
        folder: Path,
        *,
        seed=1,
        die: int | None = None,
        after: float | None = None,
        look: bool = False,
    ) -> bool:
        """One life; it ends by itself, at a step or after some seconds. Whether it did.

        After each life, whatever was received stands in the ledger.
        """
        life = {"folder": str(folder), "round": 3, "seed": seed}
        life |= {"die": die, "after": after, "look": look}
        self.process.stdin.write(json.dumps(life) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        self.killed += code != 0
        assert_nothing_under_counted(folder)
        return code == 0


@contextmanager
def nursery() -> Iterator[Nursery]:
    with subprocess.Popen(
        [sys.executable, str(HANDSET)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Nursery(process)
        finally:
            process.stdin.close()


def received(folder: Path) -> dict[int, set[str]]:
    """Everything different that arrived, by round."""
    found = defaultdict(set)
    log = folder / "received"
    for line in log.read_text().splitlines() if log.exists() else ():
        round_, digest = line.split()
        found[int(round_)].add(digest)
    return found


def assert_nothing_under_counted(folder: Path) -> None:
    os.environ["TACIT_STATE"] = str(folder / "state")  # put back by conftest
    try:
        opened = ClientLedger(folder / "ledger.db", create=False)
    except BadData:  # killed while the file was made
        assert not received(folder)
        return
    with opened as ledger:
        assert ledger.doubt is None  # no kill locks an honest client out
        counted = {entry.round for entry in ledger.entries()}
        rounds = sum(len(taken) for _, taken in ledger.taken())
    assert received(folder).keys() <= counted
    assert rounds == len(counted)


def assert_said_once(folder: Path) -> None:
    """In the end one entry, one report, and at most one step of the private state.

    None where the charge was written and the report was not: the round is answered
    without the history then.
    """
    assert {r: len(words) for r, words in received(folder).items()} == {3: 1}
    with ClientLedger(folder / "ledger.db", create=False) as ledger:
        [entry] = ledger.entries()
        assert entry.sent is not None
        assert ledger.pending() == []
        state = load(ledger.joined(entry.run).state)
        [answer] = [ledger.answer(entry.run, entry.round)]
    [digest] = received(folder)[3]
    assert hashlib.sha256(answer.report).hexdigest() == digest
    assert state["rounds"].tolist() == [contributed(answer.report)]


def contributed(report: bytes) -> int:
    """Whether a report has anything of the history in it: the factors have no noise."""
    catalog = Catalog.of_ids([f"item {i}" for i in range(ITEMS)])
    layout = METHOD.layout(PLAN, catalog, round=3)
    for seed in (1, 2):
        with suppress(BadMessage):  # it answers the other question
            told = decode_reports(
                decode_broadcast(broadcast(3, seed)), [report], layout
            )
            return int(told.tree.leaves["V"].left.any())
    pytest.fail("a report that answers neither question")


@pytest.fixture
def memory(tmp_path) -> Iterator[Path]:
    """A folder in memory where there is one: a killed process loses no file there."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@some_or_all("kills", 9, 300)
def test_many_kills(kills, memory):
    """In a first life wherever the disk has changed; then, for some, in a second life.

    Three hundred kills look at every change of the disk, the few at some of them.

    The second life asks something else for the same round, as a server would that wants
    a second report; it dies at any line, or at any moment, also inside SQLite. The last
    two lives are not killed; whichever question was charged is answered in one of them.
    """
    draws = Key.from_seed(4).generator()
    with nursery() as clients:
        assert clients.live(memory, look=True)
        told = json.loads((memory / "steps").read_text())
        steps, changes = told["steps"], told["changes"]
        assert 50 < len(changes) < 100
        looked_at = changes[:: math.ceil(3 * len(changes) / kills)]
        lives = iter([*looked_at, *looked_at])
        while clients.killed < kills:
            step = next(lives, int(draws.integers(steps)))
            folder = memory / str(clients.killed)
            folder.mkdir()
            assert not clients.live(folder, die=step)
            if clients.killed > len(looked_at):
                kill_again(clients, folder, draws, steps)
            assert clients.live(folder, seed=2)
            assert clients.live(folder, seed=1)
            assert_said_once(folder)


def kill_again(clients: Nursery, folder: Path, draws, steps: int) -> None:
    """Until a life of the device is cut short: by chance one may end before."""
    before = clients.killed
    while clients.killed == before:
        if draws.random() < 0.5:
            clients.live(folder, seed=2, after=0.03 * draws.random())
        else:
            clients.live(folder, seed=2, die=int(draws.integers(steps // 2)))
