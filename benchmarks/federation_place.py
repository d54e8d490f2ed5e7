"""Keys, settings and a small run of a federation on this machine, for its benchmarks.

The settings are those of two operators, though both are this machine: it is a trial.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.data.catalog import Catalog
from tacit.experiment.settings import check_experiment
from tacit.service.federation.aggregator import Limits
from tacit.service.federation.coordinated_run import CoordinatedRun
from tacit.service.federation.coordinator import CoordinatorSchedule
from tacit.service.federation.intake import IntakeLimits
from tacit.service.federation.operator_client import OperatorClient
from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.services import run_of
from tacit.service.federation.settings import (
    AggregatorSettings,
    CoordinatorSettings,
    read_secret,
)

LEADER, HELPER, COORDINATOR = "leader", "helper", "coordinator"
_PORTS = (20_000, 32_000)  # below those that the system gives to whoever connects
_UNUSED = "127.0.0.1:0"
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


@dataclass(frozen=True)
class Operators:
    """The keys and secrets of both operators and of the coordinator, in one folder."""

    folder: Path
    leader: str  # public signing keys, in hexadecimal
    helper: str

    @classmethod
    def made_in(cls, folder: Path) -> Operators:
        """New keys and secrets."""
        found = [make_signing_key(folder / role).hex() for role in (LEADER, HELPER)]
        for pair in (LEADER, HELPER, "pair", "own"):
            make_secret(folder / f"{pair}.secret")
        return cls(folder, *found)

    def signing_key(self, role: str) -> Path:
        """The private signing key of a role."""
        return self.folder / role / "signing.key"

    def secret(self, pair: str) -> Path:
        """What two services share."""
        return self.folder / f"{pair}.secret"


@dataclass(frozen=True)
class Ports:
    """Where everybody listens."""

    reports: int
    leader: int
    helper: int
    public: int  # of the coordinator
    own: int

    @classmethod
    def free(cls, draws: random.Random) -> Ports:
        """Five ports that nobody listens on now."""
        return cls(*(_free_port(draws) for _ in range(5)))


@dataclass(frozen=True)
class Place:
    """The settings of all three roles, whose files are in one folder."""

    operators: Operators
    folder: Path
    ports: Ports
    intake: IntakeLimits = field(default_factory=IntakeLimits)

    def url(self, name: str) -> str:
        """The address of a listener."""
        return f"http://{_at(getattr(self.ports, name))}"

    def aggregator(self, role: str) -> AggregatorSettings:
        """The settings of leader or helper."""
        own = self.operators
        return AggregatorSettings(
            role,  # type: ignore[arg-type]
            self.folder / role,
            own.signing_key(role),
            *(own.leader, own.helper),
            coordinator_secret=own.secret(role),
            pair_secret=own.secret("pair"),
            limits=Limits(1e-3, free_bytes=0),
            private=_at(getattr(self.ports, role)),
            page=_UNUSED,
            public=_at(self.ports.reports),
            url=self.url("reports"),
            helper_url=self.url(HELPER),
            intake=self.intake,
        )

    def coordinator(self, schedule: CoordinatorSchedule) -> CoordinatorSettings:
        """The settings of the coordinator."""
        own = self.operators
        return CoordinatorSettings(
            self.folder / "experiment.toml",
            self.folder / COORDINATOR,
            *(self.url(LEADER), self.url(HELPER), self.url("reports")),
            *(own.leader, own.helper),
            *(own.secret(LEADER), own.secret(HELPER), own.secret("own")),
            public=_at(self.ports.public),
            private=_at(self.ports.own),
            page=_UNUSED,
            schedule=schedule,
        )

    def client_of(self, role: str, *, seconds: float = 30.0) -> OperatorClient:
        """An aggregator, as the coordinator reaches it."""
        secret = read_secret(self.operators.secret(role))
        return OperatorClient(role, self.url(role), secret, seconds=seconds)


def popularity_run(
    operators: Operators, folder: Path, *, items: int, people: int, rounds: int
) -> CoordinatedRun:
    """A run of federated popularity over two servers, with nobody's data."""
    settings: Mapping[str, Any] = {
        "data": {"source": "synthetic", "population": people},
        "method": {"name": "federated_popularity"},
        "privacy": {
            "mechanism": "central",
            "channel": "two_servers",
            "target_epsilon": 8.0,
            "delta": 1e-6,
        },
        "run": {"rounds": rounds},
        "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
    }
    place = Place(operators, folder, Ports(1, 1, 1, 1, 1))
    catalog = Catalog.of_ids([f"item {n}" for n in range(items)])
    made = place.coordinator(CoordinatorSchedule())
    return run_of(check_experiment(settings), catalog, made)


def die_with_parent() -> None:
    """Have this process killed when the one that forked it ends; Linux alone can."""
    parent = os.getppid()
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it was quicker
        os._exit(1)


def _free_port(draws: random.Random) -> int:
    while True:
        port = draws.randrange(*_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _at(port: int) -> str:
    return f"127.0.0.1:{port}"
