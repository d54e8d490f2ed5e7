"""A federation on one machine, for a trial: real processes, simulated clients.

    leader, helper, coordinator   processes of their own, on loopback, with the settings
                                  files that they would have on three machines
    clients                       in the process that starts them, from a data set

It promises nothing against whoever runs it: the machine holds both halves of every
report, and the statements of the run say so.

    DIR/leader.toml helper.toml coordinator.toml     settings, to be read and copied
    DIR/leader/ helper/ coordinator/                 what each keeps; coordinator/run is
                                                     the published run
    DIR/experiment.toml invitation                   the run
    DIR/ticket                                       for a real client, if it needs one
    DIR/history.csv impressions.csv                  a user's files for `tacit client`;
                                                     with slates if it needs them
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import httpx
import numpy as np
import tomli_w

from tacit.data.impressions import Impressions
from tacit.data.splits import Heldout
from tacit.errors import BadValue, Refused, Unanswered
from tacit.experiment.assemble import Assembled
from tacit.files import make_folders, write_atomically
from tacit.keys import Key
from tacit.service.federation.coordinated_run import CoordinatedRun
from tacit.service.federation.invited_run import InvitedRun
from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.services import run_of
from tacit.service.federation.settings import (
    CoordinatorSettings,
    read_secret,
    read_settings,
)
from tacit.service.federation.simulated_clients import SimulatedClients

HOST = "127.0.0.1"
TICKET = "ticket"  # the file of a trial with a ticket for a real client
ROLES = ("helper", "leader", "coordinator")  # in the order in which they start
_PATIENCE = 60.0  # seconds for a process to listen
_LOOK = 0.1  # seconds between two looks
_LASTING = 5.0  # seconds after which trouble is told: most of it passes sooner
_WINDOW = 24 * 3600  # seconds: a round closes when all clients have reported

Told = Callable[[str], None]
Counted = Callable[[int, int, str], None]  # done, of how many, what


@dataclass(frozen=True, eq=False)
class Trial:
    """The files of a federation on one machine, and its clients' data."""

    folder: Path
    assembled: Assembled  # with the data of the simulated clients
    run: InvitedRun  # without
    clients: int
    url: str

    roles: ClassVar[tuple[str, ...]] = ROLES
    takes: ClassVar[str] = "leader"  # the role that reports are sent to
    told_of: ClassVar[str] = "are counted; both operators close it"

    @classmethod
    def prepared(
        cls, assembled: Assembled, folder: Path, *, clients: int | None, port: int
    ) -> Self:
        """Write keys, settings and the invitation into a new folder."""
        n = how_many_clients(assembled, clients)
        refuse_used_folder(folder)
        make_folders(folder)
        ports = dict(zip(_LISTENERS, free_ports(len(_LISTENERS)), strict=True))
        ports["coordinator public"] = port or ports["coordinator public"]
        _write_settings(folder, assembled.experiment.resolved(), ports, n)
        settings = read_settings(folder / "coordinator.toml", CoordinatorSettings)
        run = run_of(
            assembled.experiment,
            assembled.split.catalog,
            settings,
            population=declared_population(assembled, n),
        )
        write_toml(folder / "experiment.toml", run.assembled.experiment.resolved())
        write_atomically(folder / "invitation", run.invitation.encode())
        _write_limits(folder, run)
        write_history(folder, assembled)
        url = f"http://{HOST}:{ports['coordinator public']}"
        return cls(folder, assembled, run, n, url)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The processes of all roles, answering; they are stopped at the end."""
        with contextlib.ExitStack() as held:
            for role in self.roles:
                held.enter_context(_process(self.folder, role))
            yield

    def play(self, *, told: Told, counted: Counted) -> dict[str, Any]:
        """Answer every round with all clients; the status when the run is over."""
        simulation = self.assembled.simulation
        rows = np.arange(self.clients)
        groups = None if simulation.groups is None else simulation.groups[rows]
        clients = SimulatedClients(
            self.url,
            self.run.invitation,
            simulation.shards.take(rows),
            Key.from_os(),
            profiles=simulation.profiles.take(rows),
            groups=groups,
            tickets=self.tickets(),
        )
        trouble = LastingTrouble(told)
        while not (found := self.status())["is_over"]:
            trouble.look(found["trouble"])
            what = f"reports of round {len(found['rounds'])}"
            answered = clients.answer(
                progress=lambda done, total, what=what: counted(done, total, what)  # type: ignore[misc]
            )
            if answered is None:
                time.sleep(_LOOK)
                continue
            if answered.delivered < answered.clients:
                raise Unanswered(
                    f"{answered.clients - answered.delivered} of {answered.clients} "
                    f"reports of round {answered.round} were not taken; look into "
                    f"{self.folder}/{self.takes}/log"
                )
            told(
                f"round {answered.round}: {answered.delivered:,} reports {self.told_of}"
            )
        return found

    def tickets(self) -> Sequence[str]:
        """New tickets, one for each simulated client, where reports need them."""
        return ()

    def status(self) -> dict[str, Any]:
        """Where the run is, as the coordinator tells its operator."""
        private, path = self._private()
        secret = read_secret(path).decode()
        found = httpx.get(
            f"http://{private}/v1/status",
            headers={"authorization": f"Bearer {secret}"},
            timeout=60,
            trust_env=False,
        )
        found.raise_for_status()
        answer: dict[str, Any] = found.json()
        return answer

    @property
    def page(self) -> str:
        """The address of the coordinator's page for its operator."""
        settings = read_settings(self.folder / "coordinator.toml", CoordinatorSettings)
        return f"http://{settings.page}"

    def _private(self) -> tuple[str, Path]:
        """The address for whoever runs it, and the file with the secret."""
        settings = read_settings(self.folder / "coordinator.toml", CoordinatorSettings)
        return settings.private, settings.secret

    @property
    def published(self) -> Path:
        """The run directory with the published model."""
        return self.folder / "coordinator" / "run"


class LastingTrouble:
    """Tells why nothing goes on, if it lasts; the same trouble once."""

    def __init__(
        self, told: Told, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._told, self._clock = told, clock
        self._now, self._since = "", 0.0
        self._known: set[str] = set()

    def look(self, trouble: str | None) -> None:
        """Take what a status says, as often as it is asked for."""
        now, clock = trouble or "", self._clock()
        if now != self._now:
            self._now, self._since = now, clock
        if now and now not in self._known and clock - self._since >= _LASTING:
            self._known.add(now)
            self._told(f"waiting: {now}")


# --- Files ----------------------------------------------------------------------------

_LISTENERS = (
    *("leader public", "leader private", "leader page"),
    *("helper private", "helper page"),
    *("coordinator public", "coordinator private", "coordinator page"),
)


def _write_settings(
    folder: Path, experiment: dict[str, Any], ports: dict[str, int], clients: int
) -> None:
    """Keys, secrets and settings of each role; paths are relative to the files."""
    keys = {
        role: make_signing_key(folder / role / "keys").hex()
        for role in ("leader", "helper")
    }
    for pair in ("coordinator-leader", "coordinator-helper", "leader-helper", "own"):
        make_secret(folder / f"{pair}.secret")
    write_toml(folder / "experiment.toml", experiment)
    at = {name: f"{HOST}:{port}" for name, port in ports.items()}
    public = {f"{role}_key": key for role, key in keys.items()}
    for role in ("leader", "helper"):
        table: dict[str, Any] = {
            "role": role,
            "folder": role,
            "signing_key": f"{role}/keys/signing.key",
            **public,
            "coordinator_secret": f"coordinator-{role}.secret",
            "pair_secret": "leader-helper.secret",
            "private": at[f"{role} private"],
            "page": at[f"{role} page"],
        }
        if role == "leader":
            table |= {
                "public": at["leader public"],
                "url": f"http://{at['leader public']}",
                "helper_url": f"http://{at['helper private']}",
            }
        write_toml(folder / f"{role}.toml", table)
    write_toml(
        folder / "coordinator.toml",
        {
            "experiment": "experiment.toml",
            "invitation": "invitation",
            "folder": "coordinator",
            "leader_url": f"http://{at['leader private']}",
            "helper_url": f"http://{at['helper private']}",
            "reports_url": f"http://{at['leader public']}",
            **public,
            "leader_secret": "coordinator-leader.secret",
            "helper_secret": "coordinator-helper.secret",
            "secret": "own.secret",
            "public": at["coordinator public"],
            "private": at["coordinator private"],
            "page": at["coordinator page"],
            "title": "a trial: both operators are one machine",
            "one_machine": True,
            "schedule": {"window": _WINDOW, "enough": clients, "poll": 0.1},
        },
    )


def _write_limits(folder: Path, run: CoordinatedRun) -> None:
    """What both operators sign: the least noise and the sizes of this run's rounds."""
    invitation = run.invitation
    phases = range(len(invitation.agreement.reports))
    shared = [invitation.shared(phase) for phase in phases]
    limits = {
        "least_multiplier": min(one.sigma / one.limit**0.5 for one in shared),
        "least_reports": invitation.least_reports,
        "most_reports": invitation.plan.population,
        "most_numbers": max(one.size for one in shared),
    }
    for role in ("leader", "helper"):
        path = folder / f"{role}.toml"
        text = path.read_text() + "\n" + tomli_w.dumps({"limits": limits})
        write_atomically(path, text.encode())


def refuse_used_folder(folder: Path) -> None:
    """Refuse a folder that has something in it."""
    if folder.exists() and any(folder.iterdir()):
        raise Refused(
            f"{folder} is not empty; a trial begins in a folder of its own: choose "
            "another with --out, or remove it"
        )


def write_toml(path: Path, table: dict[str, Any]) -> None:
    """Write a table as a settings file."""
    write_atomically(path, tomli_w.dumps(table).encode())


def write_history(folder: Path, assembled: Assembled) -> None:
    """The files of a user of the test part, if there is one, for `tacit client`."""
    heldout, ids = assembled.split.test, assembled.split.catalog.ids
    if isinstance(heldout, Heldout) and len(heldout.users):
        held = heldout.history.take([0]).items
    elif isinstance(heldout, Impressions) and len(heldout):
        own = heldout.first(1)
        held = own.slates.histories[own.slates.history_of[0]]
        if assembled.method.needs_impressions:
            shown = own.slates.shown
            rows = zip(shown.owners, shown.values, own.clicked, strict=True)
            lines = (
                f"{slate},{_quoted(ids[item])},{did:d}" for slate, item, did in rows
            )
            _write_table(folder / "impressions.csv", "impression,item,clicked", lines)
    else:
        return
    _write_table(folder / "history.csv", "item", (_quoted(ids[item]) for item in held))


def _quoted(item: str) -> str:
    return f'"{item.replace(chr(34), 2 * chr(34))}"'


def _write_table(path: Path, header: str, lines: Iterable[str]) -> None:
    write_atomically(path, "".join(f"{one}\n" for one in (header, *lines)).encode())


def how_many_clients(assembled: Assembled, wanted: int | None) -> int:
    """So many simulated clients as are wanted; refuses more than there are."""
    n = len(assembled.simulation.shards)
    if wanted is not None and not 1 <= wanted <= n:
        raise BadValue(
            f"clients={wanted} must be from 1 to {n}: so many users of the data set "
            "train"
        )
    return n if wanted is None else wanted


def declared_population(assembled: Assembled, clients: int) -> int:
    """The declared population, or the number of clients."""
    return max(assembled.experiment.data.declared_users or 0, clients)


# --- Processes ------------------------------------------------------------------------


@contextlib.contextmanager
def _process(folder: Path, role: str) -> Iterator[subprocess.Popen[bytes]]:
    """One service as a process of its own; it is stopped at the end."""
    place = folder / role
    make_folders(place)
    config = folder / f"{role}.toml"
    command = [sys.executable, "-m", "tacit", "serve", role, "--config", str(config)]
    # What a service remembers outside its folder stays with the trial.
    environment = {**os.environ, "TACIT_STATE": str(folder / "state")}
    with (place / "log").open("ab") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
        )
        try:
            wait_for(process, config, place / "log")
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Process(Protocol):
    """A process that may have ended."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""


def wait_for(process: Process, config: Path, log: Path) -> None:
    """Until the service listens; refuses with what it said if it ends before."""
    port = int(tomllib.loads(config.read_text())["private"].rpartition(":")[2])
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            said = log.read_text(errors="replace").strip().splitlines()
            raise Refused(
                f"{config.stem} did not start: {said[-1] if said else 'no reason'}; "
                f"{log} has all that it said"
            )
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
            return
        time.sleep(0.02)
    raise Unanswered(f"{config.stem} does not listen after {_PATIENCE:g} seconds")


def free_ports(n: int) -> Sequence[int]:
    """Ports that are free now; all are held until all are known."""
    with contextlib.ExitStack() as held:
        found = [held.enter_context(socket.socket()) for _ in range(n)]
        for one in found:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in found]
