"""Lives of a federation: real processes, some of which are killed, and a supervisor.

A life is a run of two rounds from its first key to its published model. Leader, helper,
coordinator, a driver of a dozen clients and, if it is to be killed, a durable client
are processes that are forked from one that has imported everything. Whoever is killed
is started again. The supervisor stops the coordinator between the last closing and the
sum, when both aggregators still have everything, and writes down what they have.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import logging
import os
import random
import re
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
from httpx._transports import default

from benchmarks.federation_clients import HONEST, IMPATIENT, drive
from benchmarks.federation_place import (
    COORDINATOR,
    HELPER,
    LEADER,
    Operators,
    Place,
    Ports,
    die_with_parent,
    popularity_run,
)
from benchmarks.federation_seeds import Noting
from tacit.errors import TacitError
from tacit.service.federation.client import FederationClient, Kind
from tacit.service.federation.coordinated_run import CoordinatedRun
from tacit.service.federation.coordinator import (
    Coordinator,
    CoordinatorSchedule,
    RoundState,
)
from tacit.service.federation.exchange import Answered, Exchange
from tacit.service.federation.history import History
from tacit.service.federation.intake import IntakeLimits
from tacit.service.federation.operator_client import OperatorClient
from tacit.service.federation.public_rounds import PublicRounds
from tacit.service.federation.sealing import ID_BYTES, ROUND_BYTES, SumFields
from tacit.service.federation.services import serve_aggregator, serve_coordinator
from tacit.service.federation.store import RoundRow
from tacit.service.federation.two_halves import TwoHalves
from tacit.service.manifest import read_document

CLIENT, DRIVER = "client", "driver"
HELD = "held"  # killed while the coordinator is held: the sum is out, and kept
_BATCH = ("before_put", "after_put", "before_commit", "after_commit", "before_answers")
_CLOSE = ("closing", "computed", "closed")
POINTS: dict[str, tuple[str, ...]] = {
    LEADER: (*_BATCH, *_CLOSE, "deleted", HELD),
    HELPER: ("before_commit", "after_commit", *_CLOSE, "deleted", HELD),
    COORDINATOR: (
        *("ledger_line", "coordinator_added", "deleted"),
        *("model_written", "published"),
    ),
    CLIENT: ("noted", "charged", "kept", "answered", "finished"),
}
"""The points of each role, in the order in which a process passes them."""

ROUNDS, ITEMS, PEOPLE = 2, 15, 16
HISTORY = ("item 1", "item 4", "item 9")  # of the durable client
_PATIENCE = 10.0  # seconds for a published run to die of it
LONGEST = 60.0  # seconds after which a life is wrong
_IMPORTED_LATE = (
    *("encodings.idna", "httpcore", "uvloop", "uvicorn.loops.uvloop", "mpmath"),
    *("uvicorn.lifespan.off", "uvicorn.protocols.http.httptools_impl"),
    "cryptography.hazmat.primitives.asymmetric.x25519",
    "cryptography.hazmat.primitives.hpke",
)
_SCHEDULE = CoordinatorSchedule(window=600, poll=0.01)
_INTAKE = IntakeLimits(linger=0.005, few=3)


@dataclass(frozen=True)
class World:
    """What all lives share."""

    folder: Path
    operators: Operators
    run: CoordinatedRun

    @classmethod
    def made_in(cls, folder: Path) -> World:
        """New keys, and a run without anybody's data."""
        operators = Operators.made_in(folder / "operators")
        sizes = {"items": ITEMS, "people": PEOPLE, "rounds": ROUNDS}
        run = popularity_run(operators, folder, **sizes)
        _warm()
        return cls(folder, operators, run)


@dataclass(frozen=True)
class Kill:
    """The death of one role: at a named point, or at a moment of a life."""

    role: str
    point: str | None = None
    time: int = 1  # the how-manieth passage of the point
    share: float = 0.0  # of a usual life, since the process began


@dataclass(frozen=True)
class Snapshot:
    """What both aggregators have of a round when both have closed it."""

    leader: RoundRow
    helper: RoundRow
    counted: list[bytes]  # ids of reports, by the leader
    kept: list[bytes]  # by the helper, in the chosen batches


@dataclass
class Process:
    """A role that lives."""

    id: int
    began: float
    kill: Kill | None


@dataclass
class Life:
    """One run, and whoever is killed in it."""

    world: World
    folder: Path
    seed: int
    kills: list[Kill]
    usual: float = 1.0  # seconds of a life
    enough: int | None = None  # reports with which a round closes
    fired: list[Kill] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.draws = random.Random(self.seed)
        ports = Ports.free(self.draws)
        self.place = Place(self.world.operators, self.folder, ports, _INTAKE)
        self.has_client = any(kill.role == CLIENT for kill in self.kills)
        self._processes: dict[str, Process] = {}

    def play(self) -> None:
        """Until the model is published and everybody has heard."""
        os.environ["TACIT_STATE"] = str(self.folder / "anchors")
        until = time.monotonic() + LONGEST
        try:
            for role in (HELPER, LEADER, COORDINATOR, DRIVER):
                self._start(role)
            if self.has_client:
                self._start(CLIENT)
            while not self.wrong and not self._is_over():
                self._bury()
                self._kill_late()
                self._hold()
                if time.monotonic() > until:
                    self.wrong.append(f"no end; {self._state()}")
                time.sleep(0.003)
        finally:
            for process in self._processes.values():
                os.kill(process.id, signal.SIGKILL)
                os.waitpid(process.id, 0)

    # processes

    def _start(self, role: str) -> None:
        kill = next((one for one in self.kills if one.role == role), None)
        if kill is not None:
            self.kills.remove(kill)
        sys.stdout.flush()
        child = os.fork()
        if not child:
            _be_born(self, role, kill)
        self._processes[role] = Process(child, time.monotonic(), kill)

    def _bury(self) -> None:
        """Start again whoever was killed; whoever failed is wrong."""
        for role, process in [*self._processes.items()]:
            found, status = os.waitpid(process.id, os.WNOHANG)
            if not found:
                continue
            del self._processes[role]
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGKILL and process.kill is not None:
                self.fired.append(process.kill)
                self._start(role)
            elif code or role not in (DRIVER, CLIENT):
                self.wrong.append(f"{role} ended with {code}: {self._said(role)}")

    def _kill_late(self) -> None:
        for process in self._processes.values():
            kill = process.kill
            if kill is None or kill.point is not None:
                continue
            if time.monotonic() > process.began + kill.share * self.usual:
                os.kill(process.id, signal.SIGKILL)

    def _kill_held(self) -> None:
        """Kill who is to be killed now, and wait until it has begun again."""
        for role in (LEADER, HELPER):
            process = self._processes[role]
            if process.kill is not None and process.kill.point == HELD:
                os.kill(process.id, signal.SIGKILL)
                os.waitpid(process.id, 0)
                self.fired.append(process.kill)
                self._start(role)

    # what is seen from outside

    def _hold(self) -> None:
        for number in range(ROUNDS):
            added, checked = (self.folder / f"{w}-{number}" for w in ("added", "held"))
            if added.exists() and not checked.exists():
                self._kill_held()
                self.snapshots[number] = self._snapshot(number)
                self._ask_again(self.snapshots[number])
                checked.touch()

    def _snapshot(self, number: int) -> Snapshot:
        query = "SELECT * FROM rounds WHERE number = ?"
        with _reading(self.folder / LEADER / "aggregator.db") as file:
            [leader] = (RoundRow(*row) for row in file.execute(query, (number,)))
            of = "SELECT report FROM seen WHERE round = ?"
            counted = [one for (one,) in file.execute(of, (leader.id,))]
        with _reading(self.folder / HELPER / "aggregator.db") as file:
            [helper] = (RoundRow(*row) for row in file.execute(query, (number,)))
            of = "SELECT report, batch FROM seeds WHERE round = ?"
            ids = helper.chosen or b""
            chosen = {ids[i : i + ID_BYTES] for i in range(0, len(ids), ID_BYTES)}
            rows = file.execute(of, (helper.id,))
            kept = [report for report, batch in rows if batch in chosen]
        return Snapshot(leader, helper, counted, kept)

    def _ask_again(self, found: Snapshot) -> None:
        """Whatever an aggregator says of a closed round is what it said before."""
        for role, row in ((LEADER, found.leader), (HELPER, found.helper)):
            client = self.place.client_of(role, seconds=10.0)
            chosen = (row.chosen or b"") if role == HELPER else b""
            for _ in range(200):
                said = None
                with contextlib.suppress(TacitError):
                    said = client.close(row.id, chosen)
                if said is not None:
                    note(self.folder / "overheard", f"{role} {_names(row.id, said)}")
                    break
                time.sleep(0.01)
            client.close_connection()

    def _is_over(self) -> bool:
        if (self.folder / "void").exists():
            self.wrong.append(f"the run is void; {self._state()}")
            return True
        if len(self.snapshots) < ROUNDS or {DRIVER, CLIENT} & {*self._processes}:
            return False
        coordinator = self._processes[COORDINATOR]
        kill, age = coordinator.kill, time.monotonic() - coordinator.began
        if kill is not None and kill.point == "published" and age < _PATIENCE:
            return False  # it dies of it
        with _reading(self.folder / COORDINATOR / "coordinator.db") as file:
            return file.execute("SELECT is_published FROM run").fetchone() == (1,)

    def _state(self) -> str:
        """How far the rounds are, and who still lives."""
        path = self.folder / COORDINATOR / "coordinator.db"
        if not path.exists():
            return "the coordinator never began"
        with _reading(path) as file:
            rows = file.execute("SELECT number, state, reports, why FROM rounds")
            return f"rounds {[*rows]}, alive {sorted(self._processes)}"

    def _said(self, role: str) -> str:
        path = self.folder / f"said-{role}"
        return path.read_text() if path.exists() else ""


def _warm() -> None:
    """Do once what every process would do for itself after it was forked."""
    for module in _IMPORTED_LATE:
        importlib.import_module(module)
    trusted = httpx.create_ssl_context()  # 30 ms to read all authorities
    default.create_ssl_context = lambda *_, **__: trusted  # type: ignore[attr-defined]
    gc.collect()
    gc.freeze()  # else each process looks through, and so copies, all that is here


# --- In a child ----------------------------------------------------------------------


def _be_born(life: Life, role: str, kill: Kill | None) -> None:
    """Do what the role does, and never return."""
    code, folder = 1, life.folder
    try:
        die_with_parent()
        log = logging.FileHandler(folder / f"log-{role}")
        logging.basicConfig(handlers=[log], level=logging.WARNING, force=True)
        passing = _Passing(folder, role, kill)
        if role in (LEADER, HELPER):
            noting = Noting(folder, role, passing)
            serve_aggregator(life.place.aggregator(role), passing=noting)
        elif role == COORDINATOR:
            _coordinate(life, passing)
        elif role == DRIVER:
            _drive(life)
        else:
            _participate(life, passing)
        code = 0
    except BaseException as error:
        (folder / f"said-{role}").write_text(f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)


@dataclass
class _Passing:
    """Counts passages, and kills the process at the one that was chosen."""

    folder: Path
    role: str
    kill: Kill | None
    seen: Counter[str] = field(default_factory=Counter)

    def __call__(self, point: str) -> None:
        if point == "coordinator_added":
            self._wait()
        self.seen[point] += 1
        kill = self.kill
        if kill is not None and (kill.point, kill.time) == (point, self.seen[point]):
            os.kill(os.getpid(), signal.SIGKILL)

    def _wait(self) -> None:
        """Say that both sums are there, and go on when the supervisor has seen them."""
        with _reading(self.folder / COORDINATOR / "coordinator.db") as file:
            [(number,)] = file.execute("SELECT max(number) FROM rounds")
        (self.folder / f"added-{number}").touch()
        while not (self.folder / f"held-{number}").exists():
            time.sleep(0.002)


def _coordinate(life: Life, passing: Callable[[str], None]) -> None:
    """Coordinate, overheard: each sum, and whether the ledger was there in time."""
    close, open_ = OperatorClient.close, OperatorClient.open
    public, void = Coordinator.public, Coordinator._void
    folder, ledger = life.folder, life.folder / COORDINATOR / "run" / "ledger.json"

    def closed(
        self: OperatorClient, round_id: bytes, chosen: bytes = b""
    ) -> bytes | None:
        found = close(self, round_id, chosen)
        if found is not None:
            note(folder / "overheard", f"{self.name} {_names(round_id, found)}")
        return found

    def check_ledger(sent: bytes, what: str) -> None:
        number = read_document(sent[128:], SumFields).round
        begun = 0
        if ledger.exists():
            begun = json.loads(ledger.read_text())["rounds_begun"]
        if begun <= number:
            note(folder / "violations", f"round {number} was {what} before its line")

    def opened(self: OperatorClient, sent: bytes) -> bytes:
        check_ledger(sent, "opened")
        return open_(self, sent)

    def shown(self: Coordinator) -> PublicRounds:
        found: PublicRounds = public.fget(self)  # type: ignore[attr-defined]
        for sent in found.manifests.values():
            check_ledger(sent, "shown")
        return found

    def voided(
        self: Coordinator, row: RoundState, why: str, *, ends_run: bool = False
    ) -> None:
        void(self, row, why, ends_run=ends_run)
        (folder / "void").touch()

    Coordinator._void = voided  # type: ignore[method-assign, assignment]
    OperatorClient.close = closed  # type: ignore[method-assign]
    OperatorClient.open = opened  # type: ignore[method-assign]
    Coordinator.public = property(shown)  # type: ignore[assignment]
    # Some honest clients come too late, unless a slow one is waited for.
    late = 0 if life.has_client else life.seed % 3
    enough = life.enough or HONEST + life.has_client - late
    schedule = replace(_SCHEDULE, enough=enough)
    serve_coordinator(life.place.coordinator(schedule), life.world.run, passing=passing)


def _drive(life: Life) -> None:
    for number in range(ROUNDS):
        drive(
            life.place.url("public"),
            ("127.0.0.1", life.place.ports.reports),
            life.folder / f"sent-{number}",
            number=number,
            seed=life.seed + number,
            impatient=0 if life.has_client else IMPATIENT,
        )


def _participate(life: Life, passing: Callable[[str], None]) -> None:
    """Join, and answer rounds until the last one; what is sent is overheard."""
    folder, url = life.folder / CLIENT, life.place.url("public")
    _overhear_client(life.folder, passing)
    if not (folder / "client.json").exists():
        _patiently(
            lambda: FederationClient.join(folder, url, lambda _: History(HISTORY))
        )
    quick = lambda seconds: time.sleep(min(seconds, 0.02))  # noqa: E731
    with FederationClient(folder, sleep=quick, seconds=10.0) as client:
        own = client._client
        participate, finished = own.participate, own.finished

        def noted(*args: Any, **kwargs: Any) -> bytes | None:
            passing("noted")
            found = participate(*args, **kwargs)
            passing("kept")
            return found

        def ended(*args: Any, **kwargs: Any) -> None:
            finished(*args, **kwargs)
            passing("finished")

        own.participate = noted  # type: ignore[method-assign]
        own.finished = ended  # type: ignore[method-assign]
        for outcome in client.outcomes(now=True, every=0.02):
            if outcome.kind is Kind.REFUSED:
                raise RuntimeError(outcome.message)


def _overhear_client(folder: Path, passing: Callable[[str], None]) -> None:
    post, seal = Exchange.post_report, TwoHalves.seal

    def sealed(self: TwoHalves, row: Any, manifest: Any) -> bytes:
        passing("charged")
        made = seal(self, row, manifest)
        own = made[ROUND_BYTES : ROUND_BYTES + ID_BYTES].hex()
        note(folder / "client-made", json.dumps([own, row.tolist()]))
        return made

    def posted(self: Exchange, leader: str, body: bytes, **kwargs: Any) -> Answered:
        round_id, own = body[:ROUND_BYTES], body[ROUND_BYTES : ROUND_BYTES + ID_BYTES]
        name = _names(round_id, body)
        note(folder / "client-sent", f"{name} {own.hex()} 0")
        found = post(self, leader, body, **kwargs)
        told = re.match(r"status (\d+)", found.said)
        note(folder / "client-sent", f"{name} {own.hex()} {told[1] if told else 0}")
        passing("answered")
        return found

    TwoHalves.seal = sealed  # type: ignore[method-assign]
    Exchange.post_report = posted  # type: ignore[method-assign]


def _patiently(join: Callable[[], object]) -> None:
    """Join as soon as somebody invites."""
    while True:
        try:
            join()
            return
        except TacitError:
            time.sleep(0.02)


def note(path: Path, line: str) -> None:
    """Add a line to a file that several processes write to."""
    handle = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def _names(round_id: bytes, said: bytes) -> str:
    return f"{round_id.hex()[:16]} {sha256(said).hexdigest()[:32]}"


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    file = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        yield file
    finally:
        file.close()
