"""`python -m benchmarks.relay_kills [--times 1000]`: nothing is lost or doubled.

A life is a run of a real relay, a real collector, a durable client and a driver that
sends seven uploads per epoch, some of them twice, until each is acknowledged. The relay
forwards an epoch in four batches. Relay, collector and client are killed with SIGKILL
at named points and at random moments and started again. There are lives of

    one, two    epochs that end when everybody has reported
    window      an epoch that ends with its window: some uploads may come too late
    few         an epoch of too few uploads, which the relay destroys

After each life

- the collector has opened every message of every upload that was acknowledged exactly
  once, those of another at most once and all or none of them, and of the durable client
  those of one upload that it has sealed; of an epoch that is void it has used nothing;
- what it has learnt is what the method makes of just these messages;
- the client's ledger has one entry per epoch, the relay has nothing left, the keys are
  gone. A life does not end before the relay has erased its messages, as it does after
  they are forgotten, or when it is started again.

Processes are forked from one that has imported everything. Every named point of every
role is hit at least once in a run of a few hundred kills, or the exit code is 1. A
process that is killed keeps what it has written; a power cut is another matter, for
which there is `synchronous = FULL`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.federation_kills import memory
from benchmarks.federation_lives import _warm as warm
from benchmarks.federation_place import die_with_parent
from benchmarks.relay_place import COLLECTOR, RELAY, RelayPlace
from tacit.errors import TacitError
from tacit.service.federation.client import FederationClient, Kind
from tacit.service.federation.history import History
from tacit.service.manifest import read_manifest
from tacit.service.relay import batches, collector, uploads
from tacit.service.relay import messages as forms
from tacit.service.relay.collected_run import CollectedRun
from tacit.service.relay.relay_store import FOLDER_NAME, OF_AN_EPOCH
from tacit.service.relay.services import serve_collector, serve_relay
from tacit.service.relay.uploads import EpochManifest, MessageFields

CLIENT, DRIVER = "client", "driver"
POINTS: dict[str, tuple[str, ...]] = {
    RELAY: (
        *("before_commit", "in_transaction", "after_commit", "before_answers"),
        *("scattering", "scattered", "deciding", "decided", "before_put", "after_put"),
        *("told", "forgotten", "destroying"),
    ),
    COLLECTOR: (
        *("planned", "ledger_line", "before_commit", "after_commit", "closing"),
        *("closed", "messages_opened", "aggregated", "folded", "key_deleted", "done"),
        *("model_written", "published"),
    ),
    CLIENT: ("noted", "kept", "answered", "finished"),
}
MOMENT = "a random moment"
UPLOADS, VOTES, ITEMS, LEAST = 7, 4, 12, 5
BATCH_BYTES = 500  # of a relay's batch: an epoch has four of them
OF_FEW: dict[str, tuple[str, ...]] = {  # points that an epoch of too few passes
    RELAY: (
        *("before_commit", "in_transaction", "after_commit", "scattering", "scattered"),
        "destroying",
    ),
    COLLECTOR: ("planned", "ledger_line", "key_deleted", "done"),
    CLIENT: ("noted", "kept"),
}


@dataclass(frozen=True)
class Sort:
    """A sort of life: how many epochs, and how they end."""

    name: str
    epochs: int = 1
    uploads: int = UPLOADS
    spare: int = 0  # users who never report, so that the window ends the epoch
    window: int = 24 * 3600  # seconds

    @property
    def is_sure(self) -> bool:
        """Whether every upload is in the end acknowledged and counted."""
        return not self.spare

    def run(self, place: RelayPlace) -> CollectedRun:
        """The run of such a life."""
        people = UPLOADS + 1 + self.spare
        return place.run(
            people=people, votes=VOTES, items=ITEMS, least=LEAST, rounds=self.epochs
        )


ONE, TWO = Sort("one"), Sort("two", epochs=2)
WINDOW = Sort("window", spare=3, window=4)
FEW = Sort("few", uploads=LEAST - 2, spare=3, window=3)
_LAST = ("done", "model_written", "published", "forgotten", "destroying")
_PATIENCE = 10.0  # seconds for a published run to die of it
LONGEST = 90.0  # seconds after which a life is wrong
USUAL = 1.5  # seconds within which a random moment falls
HISTORY = ("item 1", "item 4", "item 9")
AT_ONCE = (2, 5)  # kills in a life


@dataclass(frozen=True)
class Kill:
    """The death of one role: at a named point, or at a random moment."""

    role: str
    point: str
    time: int = 1  # the how-manieth passage of the point
    after: float = 0.0  # seconds, of a random moment


@dataclass
class Life:
    """One run, and whoever is killed in it."""

    place: RelayPlace
    run: CollectedRun
    seed: int
    kills: list[Kill]
    sort: Sort = ONE
    fired: list[Kill] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def play(self) -> None:
        """Until the model is published and everybody was heard."""
        self.place.folder.mkdir(parents=True)
        os.environ["TACIT_STATE"] = str(self.place.folder / "anchors")
        self._processes: dict[str, tuple[int, float, Kill | None]] = {}
        until = time.monotonic() + LONGEST
        try:
            for role in (RELAY, COLLECTOR, DRIVER, CLIENT):
                self._start(role)
            while not self.wrong and not self._is_over():
                self._bury()
                self._kill_late()
                if time.monotonic() > until:
                    self.wrong.append(f"no end: {self._state()}")
                time.sleep(0.003)
        finally:
            for process, _, _ in self._processes.values():
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
        if not self.wrong:
            self.wrong += problems(self)

    def _start(self, role: str) -> None:
        kill = next((one for one in self.kills if one.role == role), None)
        if kill is not None:
            self.kills.remove(kill)
        sys.stdout.flush()
        child = os.fork()
        if not child:
            _be_born(self, role, kill)
        self._processes[role] = child, time.monotonic(), kill

    def _bury(self) -> None:
        for role, (process, _, kill) in [*self._processes.items()]:
            found, status = os.waitpid(process, os.WNOHANG)
            if not found:
                continue
            del self._processes[role]
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGKILL and kill is not None:
                self.fired.append(kill)
                self._start(role)
            elif code or role not in (DRIVER, CLIENT):
                said = self.place.folder / f"said-{role}"
                why = said.read_text() if said.exists() else ""
                self.wrong.append(f"{role} ended with {code}: {why}")

    def _kill_late(self) -> None:
        for process, began, kill in self._processes.values():
            is_moment = kill is not None and kill.point == MOMENT
            if kill and is_moment and time.monotonic() > began + kill.after:
                os.kill(process, signal.SIGKILL)

    def _is_over(self) -> bool:
        if {DRIVER, CLIENT} & {*self._processes}:
            return False
        for role in (COLLECTOR, RELAY):
            _, began, kill = self._processes[role]
            is_last = kill is not None and kill.point in _LAST
            if is_last and time.monotonic() < began + _PATIENCE:
                return False  # it dies of it
        found = self.rows(COLLECTOR, "SELECT is_published FROM run")
        return (found == [(1,)] or self.is_void()) and self._forgotten()

    def is_void(self) -> bool:
        """Whether the last epoch is void, which none of a sure life may be."""
        states = self.rows(COLLECTOR, "SELECT state FROM epochs ORDER BY number")
        return not self.sort.is_sure and states[-1:] == [("void",)]

    def _forgotten(self) -> bool:
        states = self.rows(RELAY, "SELECT state FROM epochs")
        left = [*(self.place.folder / RELAY / FOLDER_NAME).glob("*")]  # goes after it
        return {*states} <= {("forwarded",), ("destroyed",)} and not left

    def _state(self) -> str:
        state = self.rows(COLLECTOR, "SELECT number, state, why FROM epochs")
        own = self.rows(RELAY, "SELECT number, state FROM epochs")
        return f"{state}, relay {own}, alive {sorted(self._processes)}"

    def rows(self, role: str, query: str) -> list[tuple[Any, ...]]:
        """What a role has on its disk; nothing if it has no file yet."""
        path = self.place.folder / role / f"{role}.db"
        with contextlib.suppress(sqlite3.Error):
            file = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            with contextlib.closing(file):
                return [*file.execute(query)]
        return []


# --- What must hold -------------------------------------------------------------------


def problems(life: Life) -> list[str]:
    """What is wrong after a life; nothing, if it is as promised."""
    folder, server = life.place.folder, life.run.start
    query = "SELECT state, learnt, messages, dropped, uploads FROM epochs"
    epochs = life.rows(COLLECTOR, f"{query} ORDER BY number")
    found = [] if len(epochs) == life.sort.epochs else [f"{len(epochs)} epochs"]
    for number, (state, learnt, messages, dropped, uploaded) in enumerate(epochs):
        if state == "void":
            if learnt is not None or messages is not None:
                found.append(f"something was learnt from epoch {number}, which is void")
            server = life.run.without(server)
            continue
        rows = np.load(folder / f"opened-{number}.npy")
        found += _miscounted(life, number, rows)
        if (messages, dropped) != (uploaded * VOTES, 0):
            found.append(f"{messages} messages were folded and {dropped} dropped")
        server = life.run.next(server, rows, uploads=uploaded)
        is_last = number == life.sort.epochs - 1
        if learnt != (life.run.to_bytes(server) if is_last else None):
            found.append("what was learnt is not what these messages give")
    if life.sort is FEW and not life.is_void():
        found.append("an epoch of too few was used")
    found += [
        f"the relay has {table} of an epoch that is over"
        for table in OF_AN_EPOCH
        if life.rows(RELAY, f"SELECT * FROM {table}")
    ]
    if life.rows(COLLECTOR, "SELECT * FROM batches"):
        found.append("the collector has batches of an epoch that is over")
    if [*(folder / COLLECTOR / "keys").glob("*.key")]:
        found.append("the key of an epoch is still there")
    with FederationClient(folder / CLIENT) as client:
        entries = [one.round for one in client.show().entries]
        wanted = [*range(life.sort.epochs)]
        if entries != wanted and (life.sort.is_sure or entries):
            found.append(f"the client's ledger has entries of {entries}")
    return found


def _miscounted(life: Life, number: int, rows: np.ndarray) -> list[str]:
    """What was opened of an epoch but was not sent, or the other way round."""
    folder = life.place.folder
    opened = Counter(row.tobytes() for row in rows)
    acknowledged = Counter(_messages(folder / f"acknowledged-{number}"))
    if acknowledged - opened:
        n = (acknowledged - opened).total()
        return [f"{n} acknowledged messages are lost in epoch {number}"]
    known = _uploads(folder / f"acknowledged-{number}")
    doubtful = [one for one in _uploads(folder / f"made-{number}") if one not in known]
    own = _uploads(folder / f"sealed-{number}")
    if not life.sort.is_sure:
        own.append([])  # it came too late
    for count in range(len(doubtful) + 1):
        for some in combinations(doubtful, count):
            for one in own:
                told = acknowledged + Counter(chain(*some)) + Counter(one)
                if told == opened:
                    return []
    return [f"{opened.total()} messages of epoch {number} are of no set of uploads"]


def _messages(path: Path) -> list[bytes]:
    return [one for each in _uploads(path) for one in each]


def _uploads(path: Path) -> list[list[bytes]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [[bytes.fromhex(one) for one in json.loads(line)] for line in lines]


# --- In a child -----------------------------------------------------------------------


def _be_born(life: Life, role: str, kill: Kill | None) -> None:
    """Do what the role does, and never return."""
    code, folder = 1, life.place.folder
    try:
        die_with_parent()
        log = logging.FileHandler(folder / f"log-{role}")
        logging.basicConfig(handlers=[log], level=logging.WARNING, force=True)
        passing = _passing(kill)
        if role == RELAY:
            batches._BYTES_AT_ONCE = BATCH_BYTES
            serve_relay(life.place.relay(), passing=passing)
        elif role == COLLECTOR:
            _collect(life, passing)
        elif role == DRIVER:
            _drive(life)
        else:
            _participate(life, passing)
        code = 0
    except BaseException as error:
        (folder / f"said-{role}").write_text(f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _passing(kill: Kill | None) -> Callable[[str], None]:
    seen: Counter[str] = Counter()

    def passing(point: str) -> None:
        seen[point] += 1
        if kill is not None and (kill.point, kill.time) == (point, seen[point]):
            os.kill(os.getpid(), signal.SIGKILL)

    return passing


def _collect(life: Life, passing: Callable[[str], None]) -> None:
    """Collect, overheard: the messages that were opened."""
    open_all = collector.open_all  # type: ignore[attr-defined]

    def overheard(
        bodies: Any, manifest: EpochManifest, *args: Any, **kwargs: Any
    ) -> Any:
        found = open_all(bodies, manifest, *args, **kwargs)
        path = life.place.folder / f"opened-{manifest.round}.npy"
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            np.save(file, found.rows)
        os.replace(file.name, path)
        return found

    collector.open_all = overheard  # type: ignore[attr-defined]
    settings = life.place.collector(window=life.sort.window)
    serve_collector(settings, life.run, passing=passing)


def _drive(life: Life) -> None:
    """Send uploads of known votes until each is acknowledged, some of them twice."""
    draws, folder = random.Random(life.seed), life.place.folder
    url = f"{life.place.url(0)}/v1/reports"
    for number in range(life.sort.epochs):
        manifest = _manifest(life, number)
        for _ in range(life.sort.uploads):
            messages = [_vote(draws) for _ in range(VOTES)]
            body = uploads.upload(messages, manifest)
            _note(folder / f"made-{number}", messages)
            if _is_acknowledged(life, url, body):
                _note(folder / f"acknowledged-{number}", messages)
            if draws.random() < 0.5:
                _is_acknowledged(life, url, body)


def _vote(draws: random.Random) -> bytes:
    vote = draws.choice((-1, 1)) * draws.randint(1, 5 * ITEMS)
    return vote.to_bytes(4, "little", signed=True) + bytes(4)


def _is_acknowledged(life: Life, url: str, body: bytes) -> bool:
    """Send until there is an answer for good; whether it is that it was kept."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError):
            found = httpx.post(url, content=body, timeout=5)
            if found.status_code in (200, 202):
                return True
            if found.status_code == 410:  # kept or not: the answer may have been lost
                return life.sort.is_sure
            if found.status_code == 409 and not life.sort.is_sure:
                return False
            if found.status_code not in (404, 503):
                raise RuntimeError(f"{found.status_code}: {found.text}")
        time.sleep(0.01)
    raise RuntimeError("never acknowledged")


def _manifest(life: Life, number: int) -> EpochManifest:
    invitation = life.run.invitation
    keys = {"relay": invitation.leader, "collector": invitation.helper}
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError):
            found = httpx.get(f"{life.place.url(2)}/v1/manifest", timeout=5)
            if found.status_code == 200:
                read = read_manifest(found.content, MessageFields, keys)
                if read.round == number:
                    return read
        time.sleep(0.01)
    raise RuntimeError("no epoch was ever open")


def _participate(life: Life, passing: Callable[[str], None]) -> None:
    """Join, and report; what is sealed is overheard."""
    folder = life.place.folder / CLIENT
    seal = forms.upload  # type: ignore[attr-defined]

    def sealed(messages: Sequence[bytes], manifest: EpochManifest) -> bytes:
        _note(life.place.folder / f"sealed-{manifest.round}", messages)
        return seal(messages, manifest)

    forms.upload = sealed  # type: ignore[attr-defined]
    while not (folder / "client.json").exists():
        with contextlib.suppress(TacitError):
            FederationClient.join(folder, life.place.url(2), lambda _: History(HISTORY))
        time.sleep(0.01)
    quick = lambda seconds: time.sleep(min(seconds, 0.02))  # noqa: E731
    with FederationClient(folder, sleep=quick, seconds=5.0) as client:
        _overhear(client, passing)
        for outcome in client.outcomes(now=True, every=0.02):
            is_last = outcome.round == life.sort.epochs - 1
            if outcome.kind is Kind.OVER or (outcome.kind is Kind.SENT and is_last):
                return
            if outcome.kind in (Kind.REFUSED, Kind.DROPPED, Kind.GIVEN_UP):
                if life.sort.is_sure and not _is_late(outcome.message):
                    raise RuntimeError(f"{outcome.kind}: {outcome.message}")
                if is_last or not life.sort.is_sure:
                    return


def _is_late(message: str) -> bool:
    """Killed after it was acknowledged: the relay has forwarded and forgotten it."""
    return "is over" in message


def _overhear(client: FederationClient, passing: Callable[[str], None]) -> None:
    own, exchange = client._client, client._exchange
    participate, finished, post = own.participate, own.finished, exchange.post_report

    def noted(*args: Any, **kwargs: Any) -> bytes | None:
        passing("noted")
        found = participate(*args, **kwargs)
        passing("kept")
        return found

    def posted(*args: Any, **kwargs: Any) -> Any:
        found = post(*args, **kwargs)
        passing("answered")
        return found

    def ended(*args: Any, **kwargs: Any) -> None:
        finished(*args, **kwargs)
        passing("finished")

    own.participate = noted  # type: ignore[method-assign]
    own.finished = ended  # type: ignore[method-assign]
    exchange.post_report = posted  # type: ignore[method-assign]


def _note(path: Path, messages: Sequence[bytes]) -> None:
    line = json.dumps([one.hex() for one in messages]) + "\n"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, line.encode())
    os.close(descriptor)


# --- Many lives -----------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill as often as asked, print a table; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relay_kills")
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        kills, lives, wrong = killed(Path(folder), asked.times, asked.seed)
    for (role, point), n in sorted(kills.items()):
        print(f"{role:10}{point:20}{n:6}")
    seconds = time.monotonic() - began
    print(
        f"{kills.total()} kills in {lives} lives, {len(wrong)} wrong, {seconds:.0f} s"
    )
    named = [(role, point) for role, points in POINTS.items() for point in points]
    missed = [] if asked.times < 4 * len(named) else [n for n in named if not kills[n]]
    for line in (*wrong, *(f"never killed: {one}" for one in missed)):
        print(f"WRONG: {line}")
    return 1 if wrong or missed else 0


def killed(
    folder: Path, times: int, seed: int
) -> tuple[Counter[tuple[str, str]], int, list[str]]:
    """So many kills: who was killed where, in how many lives, and what was wrong."""
    draws, kills = random.Random(seed), Counter[tuple[str, str]]()
    place = RelayPlace.made_in(folder / "operators")
    runs = {sort: sort.run(place) for sort in (ONE, TWO, WINDOW, FEW)}
    warm()
    wrong: list[str] = []
    lives = 0
    while kills.total() < times and len(wrong) < 3:
        [sort] = draws.choices((ONE, TWO, WINDOW, FEW), (5, 3, 1, 1))
        chosen = _chosen(sort, kills, draws)
        own = place.elsewhere(folder / str(lives))
        life = Life(own, runs[sort], lives + seed, chosen, sort)
        life.play()
        lives += 1
        kills.update((one.role, one.point) for one in life.fired)
        wrong += [f"life {lives} ({sort.name}): {one}" for one in life.wrong]
    return kills, lives, wrong


def _chosen(
    sort: Sort, kills: Counter[tuple[str, str]], draws: random.Random
) -> list[Kill]:
    """The kills of a life, of which rare ones are preferred."""
    points = OF_FEW if sort is FEW else POINTS
    named = [
        (role, point)
        for role, points_of in points.items()
        for point in points_of
        if sort is FEW or point != "destroying"
    ]
    chosen = []
    for _ in range(draws.randint(*AT_ONCE)):
        if draws.random() < 0.4:
            role = draws.choice([*POINTS])
            chosen.append(Kill(role, MOMENT, after=draws.uniform(0, USUAL)))
            continue
        rare = min(named, key=lambda one: (kills[one], draws.random()))
        role, point = rare if draws.random() < 0.5 else draws.choice(named)
        # The second passage of a point is that of a second epoch, if there is one.
        is_often = point.endswith(("commit", "put")) or sort.epochs > 1
        chosen.append(Kill(role, point, draws.randint(1, 2) if is_often else 1))
    if sort is FEW and draws.random() < 0.5:  # a rare life, and its only point
        chosen.insert(0, Kill(RELAY, "destroying"))
    return chosen


if __name__ == "__main__":
    sys.exit(main())
