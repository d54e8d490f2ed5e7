"""A real relay and a real collector in threads, on free ports of this machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from service.federation.services import ANY, catalog, in_thread
from service.manifests import changed
from service.ports import free_ports

from tacit.data.shards import Shards
from tacit.experiment.settings import Experiment, check_experiment
from tacit.service.federation import simulated_clients
from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.stepwise_run import Schedule
from tacit.service.manifest import Manifest
from tacit.service.relay.batches import batch_body
from tacit.service.relay.collected_run import CollectedRun
from tacit.service.relay.collector import Collector
from tacit.service.relay.relay import Relay, RelayLimits
from tacit.service.relay.relay_intake import RelayIntakeLimits
from tacit.service.relay.services import run_of, serve_collector, serve_relay
from tacit.service.relay.settings import CollectorSettings, RelaySettings
from tacit.service.relay.uploads import EpochManifest, MessageFields

ITEMS = 15
QUICK = RelayLimits(most_delay=0.0, free_bytes=0, needs_tickets=False)
SETTINGS: Mapping[str, Any] = {
    "data": {"source": "synthetic", "population": 12},
    "method": {"name": "fmf_ldp", "factors": 2},
    "privacy": {
        "mechanism": "local_bits",
        "channel": "shuffle",
        "epsilon": 2.0,
        "votes": 6,
        "delta": 1e-6,
        "min_contributors": 5,
        "counted_by": "uploads",
    },
    "run": {"rounds": 1},
    "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
}
GRAM: Mapping[str, Any] = {
    "method": {"name": "gram", "head": 5},
    "privacy": {"mechanism": "local", "epsilon": 4.0, "votes": None},
    "run": {"rounds": 2},
}


def experiment(**changes: Mapping[str, Any]) -> Experiment:
    """The experiment with these changes; a value of None takes a setting away."""
    table = {}
    for name in SETTINGS:
        both = {**SETTINGS[name], **changes.get(name, {})}
        if name == "method" and "method" in changes:
            both = dict(changes["method"])
        table[name] = {key: value for key, value in both.items() if value is not None}
    return check_experiment(table)


def a_batch(epoch: bytes, seals: Sequence[bytes]) -> bytes:
    """The body of a batch of these sealed messages."""
    return batch_body(epoch, b"".join(seals), len(seals[0]) if seals else 1)


@dataclass
class Place:
    """The folders and keys of relay and collector, and the settings of each."""

    folder: Path

    def __post_init__(self) -> None:
        self.keys = {
            role: make_signing_key(self.folder / role / "keys").hex()
            for role in ("relay", "collector")
        }
        for name in ("pair", "own"):
            make_secret(self.folder / f"{name}.secret")

    def _shared(self, role: str) -> dict[str, Any]:
        return {
            "folder": self.folder / role,
            "signing_key": self.folder / role / "keys" / "signing.key",
            "relay_key": self.keys["relay"],
            "collector_key": self.keys["collector"],
            "pair_secret": self.folder / "pair.secret",
        }

    def relay(self, **changes: Any) -> RelaySettings:
        found = RelaySettings(
            **self._shared("relay"),
            url="https://relay.invalid",
            collector_url="https://collector.invalid",
            public=ANY,
            private=ANY,
            page=ANY,
            poll=0.02,
            limits=QUICK,
            intake=RelayIntakeLimits(linger=0.002),
        )
        return replace(found, **changes)

    def collector(self, **changes: Any) -> CollectorSettings:
        found = CollectorSettings(
            **self._shared("collector"),
            experiment=self.folder / "experiment.toml",
            secret=self.folder / "own.secret",
            relay_url="https://relay.invalid",
            reports_url="https://relay.invalid",
            public=ANY,
            private=ANY,
            page=ANY,
            schedule=Schedule(poll=0.02, window=600),
        )
        return replace(found, **changes)

    def run(self, made: Experiment | None = None, items: int = ITEMS) -> CollectedRun:
        return run_of(made or experiment(), catalog(items), self.collector())


@dataclass(frozen=True)
class Urls:
    """Where relay and collector are."""

    reports: str
    relay: str
    public: str
    collector: str


class Clock:
    """The time of a relay, its collector and simulated clients; it can be put forward.

    A window that is over soon is over before anybody has reported on a busy machine.
    """

    def __init__(self, monkeypatch) -> None:
        self.ahead = 0.0  # seconds
        for role in (Relay, Collector):
            monkeypatch.setitem(role.__init__.__kwdefaults__, "clock", self)
        now = SimpleNamespace(time=self, monotonic=time.monotonic)
        monkeypatch.setattr(simulated_clients, "time", now)

    def __call__(self) -> float:
        return time.time() + self.ahead


@contextlib.contextmanager
def both(place: Place, run: CollectedRun, *, relay=None, collector=None, window=600):
    """Relay and collector, which know each other's ports before they listen."""
    reports, private, public, own = free_ports(4)
    urls = Urls(
        *(f"http://127.0.0.1:{port}" for port in (reports, private, public, own))
    )
    relay_settings = place.relay(
        public=f"127.0.0.1:{reports}",
        private=f"127.0.0.1:{private}",
        url=urls.reports,
        collector_url=urls.collector,
        **(relay or {}),
    )
    settings = {
        "schedule": Schedule(poll=0.02, window=window),
        **(collector or {}),
    }
    collector_settings = place.collector(
        public=f"127.0.0.1:{public}",
        private=f"127.0.0.1:{own}",
        relay_url=urls.relay,
        reports_url=urls.reports,
        **settings,
    )
    with (
        in_thread(serve_relay, relay_settings),
        in_thread(serve_collector, collector_settings, run),
    ):
        yield urls


def patiently(look, *, seconds: float = 60.0):
    """What `look` gives, once it gives something."""
    until = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < until
        time.sleep(0.03)
    return found


def shards(n: int, items: int = ITEMS) -> Shards:
    held = [
        np.array([(user * 7 + i * i) % items for i in range(5)]) for user in range(n)
    ]
    return Shards.of_histories(held, n_items=items)


def a_manifest(**changes: Any) -> EpochManifest:
    """The manifest of an open epoch of five uploads, or more."""
    now = int(time.time())
    made = Manifest(
        run=bytes(range(16)),
        round=0,
        fields=MessageFields(8, 3),
        least_reports=5,
        most_reports=100,
        opens=now - 10,
        closes=now + 600,
        broadcast=bytes(32),
        url="https://relay.invalid",
        keys={"collector": bytes([7]) * 32},
    )
    return changed(made, **changes)
