"""Real services in threads of the test's process, on free ports of this machine."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from service.ports import free_ports

from tacit.data.catalog import Catalog
from tacit.experiment.settings import Experiment, check_experiment
from tacit.service.federation.aggregator import Limits
from tacit.service.federation.coordinated_run import CoordinatedRun
from tacit.service.federation.coordinator import Coordinator, CoordinatorSchedule
from tacit.service.federation.intake import IntakeLimits
from tacit.service.federation.operator_client import OperatorClient
from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.services import run_of, serve_aggregator
from tacit.service.federation.settings import (
    AggregatorSettings,
    CoordinatorSettings,
    read_secret,
)
from tacit.service.server import Server

ITEMS = 15
SETTINGS: Mapping[str, Any] = {
    "data": {"source": "synthetic", "population": 12},
    "method": {"name": "federated_popularity"},
    "privacy": {
        "mechanism": "central",
        "channel": "two_servers",
        "target_epsilon": 8.0,
        "delta": 1e-6,
    },
    "run": {"rounds": 1},
    "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
}
QUICK = IntakeLimits(linger=0.005)
ANY = "127.0.0.1:0"


@dataclass
class Place:
    """The folders and keys of all three roles, and the settings of each."""

    folder: Path

    def __post_init__(self) -> None:
        self.keys = {
            role: make_signing_key(self.folder / role / "keys").hex()
            for role in ("leader", "helper")
        }
        for pair in ("leader", "helper", "pair", "own"):
            make_secret(self.secret(pair))

    def secret(self, pair: str) -> Path:
        return self.folder / f"{pair}.secret"

    def aggregator(self, role: str, **changes: object) -> AggregatorSettings:
        found = AggregatorSettings(
            role,  # type: ignore[arg-type]
            self.folder / role,
            self.folder / role / "keys" / "signing.key",
            self.keys["leader"],
            self.keys["helper"],
            self.secret(role),
            self.secret("pair"),
            Limits(0.01, free_bytes=0),
            *(ANY, ANY, ANY),
            url="https://leader.invalid",
            helper_url="https://helper.invalid",
            intake=QUICK,
        )
        return replace(found, **changes)  # type: ignore[arg-type]

    def coordinator(self, **changes: object) -> CoordinatorSettings:
        found = CoordinatorSettings(
            self.folder / "experiment.toml",
            self.folder / "coordinator",
            *("https://leader.invalid", "https://helper.invalid"),
            "https://leader.invalid",
            self.keys["leader"],
            self.keys["helper"],
            self.secret("leader"),
            self.secret("helper"),
            self.secret("own"),
            *(ANY, ANY, ANY),
        )
        return replace(found, **changes)  # type: ignore[arg-type]

    def client_of(self, role: str, url: str) -> OperatorClient:
        return OperatorClient(role, url, read_secret(self.secret(role)), seconds=10.0)


@dataclass(frozen=True)
class Urls:
    """Where both aggregators are."""

    reports: str
    leader: str
    helper: str
    leader_page: str = ""
    helper_page: str = ""


def catalog(items: int = ITEMS) -> Catalog:
    return Catalog.of_ids([f"item {n}" for n in range(items)])


def experiment(**changes: Mapping[str, Any]) -> Experiment:
    table = {name: {**one, **changes.get(name, {})} for name, one in SETTINGS.items()}
    return check_experiment(table)


def a_run(place: Place, made: Experiment | None = None, items: int = ITEMS, **changes):
    settings = place.coordinator(**changes)
    return run_of(made or experiment(), catalog(items), settings)


@contextlib.contextmanager
def in_thread(serve: Callable[..., None], *args: Any, **kwargs: Any) -> Iterator[dict]:
    """The URLs of a service's listeners by name; it is stopped, and has ended."""
    told: queue.Queue[Any] = queue.Queue()

    def started(listening, server: Server) -> None:
        ports = {name: one.getsockname()[1] for name, one in listening}
        told.put(({n: f"http://127.0.0.1:{p}" for n, p in ports.items()}, server))

    def work() -> None:
        try:
            serve(*args, started=started, **kwargs)
        except BaseException as error:
            told.put(error)
            raise

    thread = threading.Thread(target=work)
    thread.start()
    found = told.get(timeout=30)
    if isinstance(found, BaseException):
        thread.join()
        raise found
    urls, server = found
    try:
        yield urls
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()


@contextlib.contextmanager
def aggregators(place: Place, *, leader=None, helper=None, **kwargs: Any):
    """Both aggregators; the leader knows its own address before it listens."""
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with in_thread(
        serve_aggregator, place.aggregator("helper", **(helper or {})), **kwargs
    ) as urls:
        private = urls["private"]
        made = place.aggregator(
            "leader",
            public=f"127.0.0.1:{port}",
            url=url,
            helper_url=private,
            **(leader or {}),
        )
        with in_thread(serve_aggregator, made, **kwargs) as own:
            pages = own["page"], urls["page"]
            yield Urls(url, own["private"], private, *pages)


def coordinator(
    place: Place, urls: Urls, run: CoordinatedRun, **schedule: Any
) -> Coordinator:
    return Coordinator(
        run,
        place.folder / "coordinator",
        leader=place.client_of("leader", urls.leader),
        helper=place.client_of("helper", urls.helper),
        leader_url=urls.reports,
        schedule=CoordinatorSchedule(**{"poll": 0.02, "window": 600, **schedule}),
    )


def step_until(coordinator: Coordinator, state: str, *, steps: int = 500) -> None:
    import time

    for _ in range(steps):
        rounds = coordinator.rounds()
        if rounds and rounds[-1].state == state:
            return
        time.sleep(min(coordinator.step(), 0.02))
    raise AssertionError(f"never {state}: {coordinator.rounds()}")
