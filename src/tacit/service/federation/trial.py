"""A run whose operators are one machine: its folder, its processes and its clients.

    prepared   a folder with the settings of all roles; it is there as a whole or not
    running    the roles as processes, which end with this one whatever ends it
    play       every round, with simulated clients and with real ones in their seats

What the roles are, and what stands in their settings, is told by the trial of each
channel: `federation.one_machine` and `relay.one_machine`.
"""

from __future__ import annotations

import abc
import contextlib
import math
import os
import shutil
import socket
import sys
import time
import tomllib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import httpx
import numpy as np
import tomli_w

from tacit import check
from tacit.child_processes import ChildProcess, stop_all
from tacit.data.impressions import Impressions
from tacit.data.splits import Heldout
from tacit.errors import BadValue, ChildEnded, Refused, Unanswered
from tacit.experiment.assemble import Assembled
from tacit.files import draft_directory, make_folders, write_atomically
from tacit.keys import Key
from tacit.service.federation.invited_run import InvitedRun
from tacit.service.federation.public_rounds import OPEN
from tacit.service.federation.settings import read_secret
from tacit.service.federation.simulated_clients import SimulatedClients
from tacit.service.server import Address, reserve
from tacit.text import nth_round

HOST = "127.0.0.1"
TICKETS_FILE = "tickets"  # one per seat, where reports need them
STATE = "state"  # what the roles remember outside of their folders
_PATIENCE = 60.0  # seconds for a process to listen
_LOOK = 0.1  # seconds between two looks
_LASTING = 5.0  # seconds after which trouble is told: most of it passes sooner
_DYING = 1.0  # seconds between an answer that stays away and the end of its process

Told = Callable[[str], None]
Counted = Callable[[int, int, str], None]  # done, of how many, what


@dataclass(frozen=True)
class Cast:
    """Who takes part: simulated clients, real ones, and all who are declared."""

    simulated: int
    seats: int  # for real clients
    population: int

    @property
    def present(self) -> int:
        """All who are there to report."""
        return self.simulated + self.seats


@dataclass(frozen=True, eq=False)
class Trial(abc.ABC):
    """The files of a run on one machine, its processes, and its clients' data."""

    folder: Path
    assembled: Assembled  # with the data of the simulated clients
    run: InvitedRun  # without
    cast: Cast
    url: str
    is_new: bool  # whether there was no folder before
    files: tuple[str, ...]  # that this trial has put into the folder
    reserved: Sequence[socket.socket] = ()  # keep ports until the processes listen
    children: list[ChildProcess] = field(default_factory=list)
    tickets: list[str] = field(default_factory=list)  # the first are for the seats

    roles: ClassVar[tuple[str, ...]]  # in the order in which they start
    listeners: ClassVar[tuple[str, ...]]  # each `role name`
    front: ClassVar[str]  # the role that clients join at, and that publishes
    takes: ClassVar[str]  # the role that reports are sent to
    told_of: ClassVar[str]  # what becomes of reports that were sent

    def __post_init__(self) -> None:
        weakref.finalize(self, _close, self.reserved)  # of a trial that never starts

    @classmethod
    def prepared(
        cls,
        assembled: Assembled,
        folder: Path,
        *,
        clients: int | None = None,
        seats: int = 0,
        port: int = 0,
    ) -> Self:
        """Write keys, settings and the invitation into a new folder.

        Refuses a run that cannot come to a model, before anything is there.
        """
        cast = _cast(assembled, clients, seats)
        _refuse_too_few(assembled, cast)
        refuse_used_folder(folder)
        reserved = reserve_ports(len(cls.listeners), first=port)
        public = f"{cls.front} public"
        others = (name for name in cls.listeners if name != public)
        numbers = (bound.getsockname()[1] for bound in reserved)
        ports = dict(zip((public, *others), numbers, strict=True))
        is_new = not folder.exists()
        with contextlib.ExitStack() as binding, draft_directory(folder) as draft:
            for bound in reserved:
                binding.enter_context(bound)
            run = cls._write(draft, assembled, cast, ports)
            write_toml(draft / "experiment.toml", run.assembled.experiment.resolved())
            write_atomically(draft / "invitation", run.invitation.encode())
            write_history(draft, assembled)
            for role in (*cls.roles, STATE):
                make_folders(draft / role)
            files = (*os.listdir(draft), TICKETS_FILE)
            binding.pop_all()
        url = f"http://{HOST}:{ports[public]}"
        return cls(folder, assembled, run, cast, url, is_new, files, reserved)

    @classmethod
    @abc.abstractmethod
    def _write(
        cls, folder: Path, assembled: Assembled, cast: Cast, ports: Mapping[str, int]
    ) -> InvitedRun:
        """Write what the roles need; the run that they play."""

    @abc.abstractmethod
    def _hand_out(self) -> Iterable[str]:
        """New tickets for all who are present, if reports need them."""

    # processes

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The processes of all roles, answering; they are stopped at the end.

        If one of them does not start, what this trial has put into its folder goes.
        """
        try:
            self._start()
        except BaseException:
            self._stop()
            self._remove()
            raise
        try:
            yield
        except Exception:
            self._refuse_dying()
            raise
        finally:
            self._stop()

    def _start(self) -> None:
        if sys.platform != "linux":
            _close(self.reserved)
        environment = {**os.environ, "TACIT_STATE": str(self.folder / STATE)}
        for role in self.roles:
            config = self.folder / f"{role}.toml"
            command = ("-m", "tacit", "serve", role, "--config", str(config))
            child = ChildProcess.start(
                role,
                (sys.executable, *command),
                log=self.folder / role / "log",
                environment=environment,
                reads_lifeline=True,
            )
            self.children.append(child)
            try:
                wait_for(child.popen, config)
            except ChildEnded:
                said = f"{child.ending} before it listened; its log ended with: "
                raise ChildEnded(said + child.last_lines) from None
        _close(self.reserved)
        self.tickets.extend(self._hand_out())
        if own := self.tickets[: self.cast.seats]:
            text = "".join(f"{ticket}\n" for ticket in own)
            write_atomically(self.folder / TICKETS_FILE, text.encode(), is_private=True)

    def _stop(self) -> None:
        _close(self.reserved)
        stop_all(self.children)
        self.children.clear()

    def _remove(self) -> None:
        """Remove what this trial has put into its folder, and nothing else."""
        for path in (self.folder / name for name in self.files):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if self.is_new:
            with contextlib.suppress(OSError):  # somebody has put something there
                self.folder.rmdir()

    def refuse_ended(self) -> None:
        """Raise if the process of a role has ended: nothing goes on without it."""
        for child in self.children:
            child.refuse_ended()

    def _refuse_dying(self) -> None:
        """The same after an error, whose reason may be a process that is ending.

        One that was told to end closes its port first, and may work for a minute more.
        """
        until = time.monotonic() + _DYING
        while time.monotonic() < until:
            self.refuse_ended()
            time.sleep(0.02)
        for child in self.children:
            if not is_listening(self.folder / f"{child.name}.toml"):
                said = f"{child.name} does not listen any more; its log {child.log} "
                raise ChildEnded(f"{said}ends with: {child.last_lines}")

    def wait(self) -> None:
        """Serve until a process ends, which it should not, or Ctrl-C."""
        while True:
            self.refuse_ended()
            time.sleep(_LOOK)

    # rounds

    def play(self, *, told: Told, counted: Counted) -> dict[str, Any]:
        """Answer every round with all clients; the status when the model is out.

        Refuses a run that ends without a model, with the reason.
        """
        clients, delivered = self._clients(), dict[int, int]()
        waiting = Lasting(told)
        while not (found := self.status())["is_over"]:
            self.refuse_ended()
            waiting.look(found["trouble"] or self._awaited(found, delivered))
            what = f"reports of round {len(found['rounds'])}"
            answered = clients.answer(
                progress=lambda done, total, what=what: counted(done, total, what),  # type: ignore[misc]
                check=self.refuse_ended,
            )
            if answered is None:
                time.sleep(_LOOK)
                continue
            number, delivered[answered.round] = answered.round, answered.delivered
            if answered.delivered < answered.clients:
                raise Unanswered(
                    f"{answered.clients - answered.delivered} of {answered.clients} "
                    f"reports of {nth_round(number)} were not taken; look into "
                    f"{self.folder}/{self.takes}/log"
                )
            told(f"{nth_round(number)}: {answered.delivered:,} reports {self.told_of}")
        if not found["is_published"]:
            raise Refused(f"no model was published: {self._why(found, delivered)}")
        return found

    def _clients(self) -> SimulatedClients:
        simulation = self.assembled.simulation
        rows = np.arange(self.cast.simulated)
        groups = None if simulation.groups is None else simulation.groups[rows]
        return SimulatedClients(
            self.url,
            self.run.invitation,
            simulation.shards.take(rows),
            Key.from_os(),
            profiles=simulation.profiles.take(rows),
            groups=groups,
            tickets=self.tickets[self.cast.seats :],
        )

    def _awaited(self, found: dict[str, Any], delivered: Mapping[int, int]) -> str:
        """Whom an open round waits for when the simulated clients have reported."""
        last = found["rounds"][-1] if found["rounds"] else None
        if last is None or last["state"] != OPEN or last["round"] not in delivered:
            return ""
        if not self.cast.seats:
            return ""
        whom = f"{self.cast.seats} real client{'s' if self.cast.seats > 1 else ''}"
        return f"{whom} to answer {nth_round(last['round'])}"

    def _why(self, found: dict[str, Any], delivered: Mapping[int, int]) -> str:
        """Why a run is over without a model; only a trial knows how many reported."""
        least = self.run.invitation.least_reports
        whys = [found["withheld"]] if found["withheld"] else []
        for row in found["rounds"]:
            number, n = row["round"], delivered.get(row["round"], least)
            if row["why"] and n < least:
                few = f"{n:,} of at least {least:,} reports"
                whys.append(f"{nth_round(number)} is void: {few}")
            elif row["why"]:
                whys.append(f"{nth_round(number)} is void: {row['why']}")
        return "; ".join(whys) or "the run was ended by its operator"

    def status(self) -> dict[str, Any]:
        """Where the run is, as its front tells its operator."""
        settings = self._settings()
        token = read_secret(self.folder / settings["secret"]).decode()
        url = f"http://{settings['private']}/v1/status"
        try:
            found = httpx.get(
                url,
                headers={"authorization": f"Bearer {token}"},
                timeout=60,
                trust_env=False,
            )
            found.raise_for_status()
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise Unanswered(f"the {self.front} at {url}: {why}") from None
        answer: dict[str, Any] = found.json()
        return answer

    @property
    def page(self) -> str:
        """The address of the page for the operator of the front."""
        return f"http://{self._settings()['page']}"

    @property
    def published(self) -> Path:
        """The run directory with the published model."""
        return self.folder / self.front / "run"

    def _settings(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / f"{self.front}.toml").read_text())


class Lasting:
    """Tells what a run waits for, if it lasts; the same thing once."""

    def __init__(
        self, told: Told, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._told, self._clock = told, clock
        self._now, self._since = "", 0.0
        self._known: set[str] = set()

    def look(self, reason: str | None) -> None:
        """Take why nothing goes on, as often as it is asked for."""
        now, clock = reason or "", self._clock()
        if now != self._now:
            self._now, self._since = now, clock
        if now and now not in self._known and clock - self._since >= _LASTING:
            self._known.add(now)
            self._told(f"waiting: {now}")


# --- Who takes part -------------------------------------------------------------------


def _cast(assembled: Assembled, wanted: int | None, seats: int) -> Cast:
    """As many simulated clients as are wanted; refuses more than there are."""
    n = len(assembled.simulation.shards)
    if wanted is not None and not 1 <= wanted <= n:
        raise BadValue(
            f"clients={wanted} must be from 1 to {n}: so many users of the data set "
            "train"
        )
    check.not_negative(seats=seats)
    simulated = n if wanted is None else wanted
    declared = assembled.experiment.data.declared_users or 0
    return Cast(simulated, seats, max(declared, simulated + seats))


def _refuse_too_few(assembled: Assembled, cast: Cast) -> None:
    """Refuse a trial in which no round can be expected to reach its minimum."""
    plan, least = assembled.plan, assembled.experiment.privacy.min_contributors
    least = cast.population if least == "all" else least
    share = plan.cohort_size / plan.population  # of all clients, in one round
    expected = math.floor(cast.present * share)
    if expected >= least:
        return
    needed = math.ceil(least / share) - cast.seats
    users = len(assembled.simulation.shards)
    more = f"--clients {needed} or more, or " if needed <= users else ""
    seats = f" and {cast.seats:,} seats" if cast.seats else ""
    raise Refused(
        f"{cast.simulated:,} clients{seats} make {expected:,} of at least {least:,} "
        f"reports a round (privacy.min_contributors), and of fewer nothing is "
        f"published; take {more}a smaller minimum with --set "
        "privacy.min_contributors=N"
    )


# --- Files ----------------------------------------------------------------------------


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


# --- Ports ----------------------------------------------------------------------------


class Process(Protocol):
    """A process that may have ended."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""


def wait_for(process: Process, config: Path) -> None:
    """Until the service listens; refuses if it ends before."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise ChildEnded(f"{config.stem} ended before it listened")
        if is_listening(config):
            return
        time.sleep(0.02)
    raise Unanswered(f"{config.stem} does not listen after {_PATIENCE:g} seconds")


def is_listening(config: Path) -> bool:
    """Whether the service with these settings takes connections."""
    port = int(tomllib.loads(config.read_text())["private"].rpartition(":")[2])
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
        return True
    return False


def _close(sockets: Iterable[socket.socket]) -> None:
    for bound in sockets:
        bound.close()


def reserve_ports(n: int, *, first: int = 0) -> list[socket.socket]:
    """Sockets that keep `n` ports for the processes that will listen there.

    The first is bound to `first` if that is not 0; refuses a port that is in use.
    """
    with contextlib.ExitStack() as binding:
        reserved = [
            binding.enter_context(reserve(Address(HOST, port)))
            for port in [first] + [0] * (n - 1)
        ]
        binding.pop_all()
    return reserved
