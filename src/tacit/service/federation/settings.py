"""The settings of each role, as TOML files; each is checked whole.

    leader.toml        role, folder, addresses, keys, [limits]
    helper.toml        the same, without a listener that clients reach
    coordinator.toml   experiment, folder, addresses, both operators, [schedule]

Paths are relative to the file. Addresses are `host:port`; port 0 asks for a free one.
A secret stands in a file of its own, which its owner alone can read. URLs are https;
http is for this machine, and for hosts of a private network that are named in
`plain_http_hosts`.
"""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from tacit.errors import BadExperiment, BadValue
from tacit.experiment.dataclass_fields import Problems
from tacit.service.federation.aggregator import Limits
from tacit.service.federation.coordinator import CoordinatorSchedule
from tacit.service.federation.intake import IntakeLimits
from tacit.service.server import Address
from tacit.service.urls import checked_host, checked_url
from tacit.system_errors import explained

_LEAST_SECRET = 32  # characters
_KEY_BYTES = 32


@dataclass(frozen=True)
class AggregatorSettings:
    """One aggregator: what it listens on, whom it knows, and what it signs."""

    role: Literal["leader", "helper"]
    folder: Path  # its database and the keys of open rounds
    signing_key: Path
    leader_key: str  # public signing keys of both operators, in hexadecimal
    helper_key: str
    coordinator_secret: Path
    pair_secret: Path  # that leader and helper share
    limits: Limits
    private: str = "127.0.0.1:8101"  # for the coordinator and the other operator
    page: str = "127.0.0.1:8201"  # for the operator alone
    public: str = "127.0.0.1:8001"  # for clients; a helper has none
    url: str = ""  # of a leader, as clients reach it
    helper_url: str = ""  # of a leader: the helper's private listener
    plain_http_hosts: tuple[str, ...] = ()  # of a private network, without TLS
    intake: IntakeLimits = field(default_factory=IntakeLimits)

    def __post_init__(self) -> None:
        for name in ("leader_key", "helper_key"):
            public_signing_key(getattr(self, name), name)
        for name in ("private", "page", "public"):
            address(getattr(self, name), name)
        if self.role == "leader" and not (self.url and self.helper_url):
            raise BadValue(
                "a leader needs url, under which clients reach it, and helper_url, the "
                "private address of the helper"
            )
        if self.role == "leader":
            check_client_url(self.url, "url")
            check_operator_urls(self, "helper_url")


@dataclass(frozen=True)
class CoordinatorSettings:
    """One coordinator: its run, and both aggregators."""

    experiment: Path
    folder: Path
    leader_url: str  # private listeners of both operators
    helper_url: str
    reports_url: str  # the leader, as clients reach it
    leader_key: str
    helper_key: str
    leader_secret: Path
    helper_secret: Path
    secret: Path  # of this coordinator's own operator
    public: str = "127.0.0.1:8000"
    private: str = "127.0.0.1:8100"
    page: str = "127.0.0.1:8200"  # for the operator alone
    title: str = ""
    contact: str = ""
    edition: str = ""  # of the run: another one trains the same experiment again
    invitation: Path | None = None  # has items and population; else the experiment
    rotation: Path | None = None  # new signing keys, signed by the old ones
    new_items: Path | None = None  # a table of items that came after the catalog
    plain_http_hosts: tuple[str, ...] = ()  # of a private network, without TLS
    one_machine: bool = False  # both operators are this machine: a trial
    schedule: CoordinatorSchedule = field(default_factory=CoordinatorSchedule)

    def __post_init__(self) -> None:
        for name in ("leader_key", "helper_key"):
            public_signing_key(getattr(self, name), name)
        for name in ("private", "public", "page"):
            address(getattr(self, name), name)
        check_client_url(self.reports_url, "reports_url")
        check_operator_urls(self, "leader_url", "helper_url")


Settings = TypeVar("Settings")
# Tables of a file that are dataclasses of their own, by the field that has them.
_TABLES: Mapping[type, Mapping[str, type]] = {
    AggregatorSettings: {"limits": Limits, "intake": IntakeLimits},
    CoordinatorSettings: {"schedule": CoordinatorSchedule},
}


def read_settings(
    path: Path, cls: type[Settings], parts: Mapping[str, type] | None = None
) -> Settings:
    """The settings in a TOML file; all its problems in one message.

    `parts` are the tables of the file that are dataclasses of their own.
    """
    with explained():
        text = path.read_bytes()
    try:
        table: dict[str, Any] = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadExperiment(str(path), [f"is no TOML: {error}"]) from error
    problems = Problems()
    parts = _TABLES[cls] if parts is None else parts
    given = {
        name: problems.read(kind, table.pop(name, {}), name)
        for name, kind in parts.items()
    }
    found = problems.read(cls, table, "settings", also=[*parts], given=given)
    if found is None or problems.found:
        raise BadExperiment(str(path), problems.found)
    return _beside(found, path.parent)


def _beside(found: Settings, folder: Path) -> Settings:
    """The settings with paths that do not depend on where the process runs."""
    assert is_dataclass(found)
    moved: dict[str, Any] = {
        name: folder / value
        for name, value in vars(found).items()
        if isinstance(value, Path)
    }
    return replace(found, **moved)  # type: ignore[type-var]


def read_secret(path: Path) -> bytes:
    """The secret in a file; refuses one that others may read, or that is too short."""
    with explained():
        mode, text = path.stat().st_mode, path.read_bytes().strip()
    if stat.S_IMODE(mode) & 0o077:
        raise BadValue(f"{path} can be read by others; chmod 600 {path.name}")
    if len(text) < _LEAST_SECRET or not text.isalnum():
        raise BadValue(
            f"{path} must hold at least {_LEAST_SECRET} letters and digits; make one "
            "with: tacit serve keys"
        )
    return text


def read_signing_key(path: Path) -> bytes:
    """The private signing key in a file, which has it in hexadecimal."""
    text = read_secret(path)
    try:
        found = bytes.fromhex(text.decode())
    except ValueError:
        found = b""
    if len(found) != _KEY_BYTES:
        raise BadValue(
            f"{path} is no signing key: it must hold {2 * _KEY_BYTES} hexadecimal "
            "digits; make one with: tacit serve keys"
        )
    return found


def public_signing_key(text: str, name: str) -> bytes:
    """A public signing key, from its hexadecimal digits."""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != _KEY_BYTES:
        raise BadValue(f"{name}={text!r} must have {2 * _KEY_BYTES} hexadecimal digits")
    return found


def address(text: str, name: str) -> Address:
    """An address to listen on, from `host:port`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise BadValue(f"{name}={text!r} must be host:port, such as 127.0.0.1:8001")
    return Address(host.strip("[]"), int(port))


class HasPlainHosts(Protocol):
    """Settings that name hosts which need no TLS."""

    @property
    def plain_http_hosts(self) -> Collection[str]: ...  # noqa: D102


def check_operator_urls(settings: HasPlainHosts, *names: str) -> None:
    """Refuse URLs over which the secret of a pair would go unencrypted."""
    hosts = [checked_host(one, "plain_http_hosts") for one in settings.plain_http_hosts]
    for name in names:
        try:
            checked_url(getattr(settings, name), name, plain_hosts=hosts)
        except BadValue as error:
            raise BadValue(
                f"{error}. If both services share a private network that nobody else "
                "can listen to, name the host in plain_http_hosts"
            ) from None


def check_client_url(url: str, name: str) -> None:
    """Refuse a URL to which no client would send: not encrypted, or of another form."""
    try:
        checked_url(url, name)
    except BadValue as error:
        raise BadValue(f"{error}. Clients refuse to send anything there") from None
