"""The settings of relay and collector, as TOML files; each is checked whole.

    relay.toml       folder, addresses, keys, the collector, [limits], [intake]
    collector.toml   experiment, folder, addresses, keys, the relay, [schedule]

They are read like those of a federation: paths are relative to the file, addresses are
`host:port`, a secret stands in a file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tacit import check
from tacit.service.federation.settings import (
    address,
    check_client_url,
    check_operator_urls,
    public_signing_key,
    read_settings,
)
from tacit.service.federation.stepwise_run import Schedule
from tacit.service.relay.relay import RelayLimits
from tacit.service.relay.relay_intake import RelayIntakeLimits


@dataclass(frozen=True)
class RelaySettings:
    """One relay: what it listens on, whom it forwards to, and what it signs."""

    folder: Path  # its database
    signing_key: Path
    relay_key: str  # public signing keys of both operators, in hexadecimal
    collector_key: str
    pair_secret: Path  # that relay and collector share
    url: str  # of this relay, as clients reach it
    collector_url: str  # the collector's private listener
    public: str = "127.0.0.1:8001"  # for clients
    private: str = "127.0.0.1:8101"  # for the collector
    page: str = "127.0.0.1:8201"  # for the operator alone
    poll: float = 0.5  # seconds between two looks for what is due
    plain_http_hosts: tuple[str, ...] = ()  # of a private network, without TLS
    limits: RelayLimits = field(default_factory=RelayLimits)
    intake: RelayIntakeLimits = field(default_factory=RelayIntakeLimits)

    def __post_init__(self) -> None:
        _check(self, "public", "private", "page")
        check.positive(poll=self.poll)
        check_client_url(self.url, "url")
        check_operator_urls(self, "collector_url")


@dataclass(frozen=True)
class CollectorSettings:
    """One collector: its run, its key, and the relay."""

    experiment: Path
    folder: Path  # its database, the keys of open epochs, the published run
    signing_key: Path
    relay_key: str
    collector_key: str
    pair_secret: Path
    secret: Path  # of this collector's own operator
    relay_url: str  # the relay's private listener
    reports_url: str  # the relay, as clients reach it
    public: str = "127.0.0.1:8000"  # for clients
    private: str = "127.0.0.1:8100"  # for the relay and the operator
    page: str = "127.0.0.1:8200"  # for the operator alone
    title: str = ""
    contact: str = ""
    edition: str = ""  # of the run: another one trains the same experiment again
    invitation: Path | None = None  # has items and population; else the experiment
    rotation: Path | None = None  # new signing keys, signed by the old ones
    one_machine: bool = False  # both operators are this machine: a trial
    processes: int = 2  # that open seals
    plain_http_hosts: tuple[str, ...] = ()  # of a private network, without TLS
    free_bytes: int = 256 * 2**20  # with less room on the disk, nothing is taken
    schedule: Schedule = field(default_factory=Schedule)

    def __post_init__(self) -> None:
        _check(self, "public", "private", "page")
        check.count(processes=self.processes)
        check_client_url(self.reports_url, "reports_url")
        check_operator_urls(self, "relay_url")
        check.not_negative(free_bytes=self.free_bytes)


def _check(settings: RelaySettings | CollectorSettings, *listeners: str) -> None:
    for name in ("relay_key", "collector_key"):
        public_signing_key(getattr(settings, name), name)
    for name in listeners:
        address(getattr(settings, name), name)


_RELAY: Mapping[str, type] = {"limits": RelayLimits, "intake": RelayIntakeLimits}
_COLLECTOR: Mapping[str, type] = {"schedule": Schedule}


def read_relay(path: Path) -> RelaySettings:
    """The settings of a relay in a TOML file."""
    return read_settings(path, RelaySettings, _RELAY)


def read_collector(path: Path) -> CollectorSettings:
    """The settings of a collector in a TOML file."""
    return read_settings(path, CollectorSettings, _COLLECTOR)
