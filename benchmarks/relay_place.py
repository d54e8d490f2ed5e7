"""A relay and a collector on this machine: keys, ports, settings and a run of votes."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.data.catalog import Catalog
from tacit.experiment.settings import check_experiment
from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.stepwise_run import Schedule
from tacit.service.relay.collected_run import CollectedRun
from tacit.service.relay.relay import RelayLimits
from tacit.service.relay.relay_intake import RelayIntakeLimits
from tacit.service.relay.services import run_of
from tacit.service.relay.settings import CollectorSettings, RelaySettings

RELAY, COLLECTOR = "relay", "collector"
HOST = "127.0.0.1"


@dataclass(frozen=True)
class RelayPlace:
    """The folder of both roles, and the ports that they listen on."""

    folder: Path
    ports: tuple[int, int, int, int]  # uploads, relay, public, collector
    keys: dict[str, str]
    secrets: Path

    @classmethod
    def made_in(cls, folder: Path) -> RelayPlace:
        """New keys and free ports."""
        keys = {
            role: make_signing_key(folder / "keys" / role).hex()
            for role in (RELAY, COLLECTOR)
        }
        for name in ("pair", "own"):
            make_secret(folder / "keys" / f"{name}.secret")
        return cls(folder, free_ports(), keys, folder / "keys")

    def elsewhere(self, folder: Path) -> RelayPlace:
        """The same operators with other files and ports."""
        return replace(self, folder=folder, ports=free_ports())

    def url(self, number: int) -> str:
        """The address of a listener, by its place in `ports`."""
        return f"http://{HOST}:{self.ports[number]}"

    def _of(self, role: str) -> dict[str, object]:
        return {
            "folder": self.folder / role,
            "signing_key": self.secrets / role / "signing.key",
            "relay_key": self.keys[RELAY],
            "collector_key": self.keys[COLLECTOR],
            "pair_secret": self.secrets / "pair.secret",
        }

    def relay(self, *, poll: float = 0.02, linger: float = 0.002) -> RelaySettings:
        """The settings of the relay."""
        return RelaySettings(
            **self._of(RELAY),  # type: ignore[arg-type]
            url=self.url(0),
            collector_url=self.url(3),
            public=f"{HOST}:{self.ports[0]}",
            private=f"{HOST}:{self.ports[1]}",
            page=f"{HOST}:0",
            poll=poll,
            limits=RelayLimits(most_delay=0.0, free_bytes=0, needs_tickets=False),
            intake=RelayIntakeLimits(linger=linger),
        )

    def collector(
        self, *, poll: float = 0.02, processes: int = 2, window: int = 24 * 3600
    ) -> CollectorSettings:
        """The settings of the collector."""
        return CollectorSettings(
            **self._of(COLLECTOR),  # type: ignore[arg-type]
            experiment=self.folder / "experiment.toml",
            secret=self.secrets / "own.secret",
            relay_url=self.url(1),
            reports_url=self.url(0),
            public=f"{HOST}:{self.ports[2]}",
            private=f"{HOST}:{self.ports[3]}",
            page=f"{HOST}:0",
            processes=processes,
            schedule=Schedule(window=window, poll=poll),
        )

    def run(
        self, *, people: int, votes: int, items: int, least: int, rounds: int = 1
    ) -> CollectedRun:
        """A run of FMF-LDP by votes over so many items."""
        made = check_experiment(
            {
                "data": {"source": "synthetic", "population": people},
                "method": {"name": "fmf_ldp", "factors": 5},
                "privacy": {
                    "mechanism": "local_bits",
                    "channel": "shuffle",
                    "epsilon": 2.0,
                    "votes": votes,
                    "delta": 1e-6,
                    "min_contributors": least,
                    "counted_by": "uploads",  # these clients have no tickets
                },
                "run": {"rounds": rounds},
                "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
            }
        )
        catalog = Catalog.of_ids([f"item {n}" for n in range(items)])
        return run_of(made, catalog, self.collector())


def free_ports() -> tuple[int, int, int, int]:
    """Ports that are free now; all are held until all are known."""
    with contextlib.ExitStack() as held:
        found = [held.enter_context(socket.socket()) for _ in range(4)]
        for one in found:
            one.bind((HOST, 0))
        one, two, three, four = (own.getsockname()[1] for own in found)
        return one, two, three, four
