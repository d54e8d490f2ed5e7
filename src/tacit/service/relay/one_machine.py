"""Relay and collector on one machine, for a trial: real processes, simulated clients.

It is the trial of a federation with two other roles. It promises what the local
mechanism promises and no more: the machine knows whose report is whose, and the
statements of the run say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from tacit.errors import Refused
from tacit.experiment.assemble import Assembled
from tacit.files import make_folders, write_atomically
from tacit.plans import TICKETS
from tacit.sampling import Everyone
from tacit.service.federation.one_machine import (
    HOST,
    TICKET,
    Trial,
    declared_population,
    free_ports,
    how_many_clients,
    refuse_used_folder,
    write_history,
    write_toml,
)
from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.tickets import hand_out
from tacit.service.relay.relay_store import FILE_NAME
from tacit.service.relay.services import run_of
from tacit.service.relay.settings import read_collector

_LONG = 24 * 3600  # seconds: an epoch is over when all clients have reported
_SHORT = 60  # seconds at the least, where some do not report in every epoch
_SLOWEST = 20  # clients per second that the window of such an epoch is made for
_LISTENERS = (
    *("relay public", "relay private", "relay page"),
    *("collector public", "collector private", "collector page"),
)


class RelayTrial(Trial):
    """The files of relay and collector on one machine, and their clients' data."""

    roles: ClassVar[tuple[str, ...]] = ("relay", "collector")
    takes: ClassVar[str] = "relay"
    told_of: ClassVar[str] = "are with the relay, which mixes and forwards them"

    @classmethod
    def prepared(
        cls, assembled: Assembled, folder: Path, *, clients: int | None, port: int
    ) -> Self:
        """Write keys, settings and the invitation into a new folder."""
        n = how_many_clients(assembled, clients)
        population = declared_population(assembled, n)
        _refuse_endless(assembled, n, population)
        refuse_used_folder(folder)
        make_folders(folder)
        ports = dict(zip(_LISTENERS, free_ports(len(_LISTENERS)), strict=True))
        ports["collector public"] = port or ports["collector public"]
        is_full = population == n and isinstance(assembled.plan.sampler, Everyone)
        window = _LONG if is_full else max(_SHORT, n // _SLOWEST)
        asks = assembled.experiment.privacy.counted_by == TICKETS
        _write_settings(folder, ports, window=window, needs_tickets=asks)
        settings = read_collector(folder / "collector.toml")
        run = run_of(
            assembled.experiment,
            assembled.split.catalog,
            settings,
            population=population,
        )
        write_toml(folder / "experiment.toml", run.assembled.experiment.resolved())
        write_atomically(folder / "invitation", run.invitation.encode())
        write_history(folder, assembled)
        url = f"http://{HOST}:{ports['collector public']}"
        return cls(folder, assembled, run, n, url)

    def _private(self) -> tuple[str, Path]:
        settings = read_collector(self.folder / "collector.toml")
        return settings.private, settings.secret

    @property
    def page(self) -> str:
        """The address of the collector's page for its operator."""
        settings = read_collector(self.folder / "collector.toml")
        return f"http://{settings.page}"

    def tickets(self) -> Sequence[str]:
        """One for each simulated client; one more is written down for a real one."""
        if self.assembled.experiment.privacy.counted_by != TICKETS:
            return ()
        own, *others = hand_out(
            self.folder / "relay", 1 + self.clients, file_name=FILE_NAME
        )
        write_atomically(self.folder / TICKET, own.encode(), is_private=True)
        return others

    @property
    def published(self) -> Path:
        """The run directory with the published model."""
        return self.folder / "collector" / "run"


def _refuse_endless(assembled: Assembled, clients: int, population: int) -> None:
    """Refuse a trial whose relay would sign no round, or forward none."""
    privacy = assembled.experiment.privacy
    least = privacy.min_contributors
    least = population if least == "all" else least
    if clients < least:
        raise Refused(
            f"{clients:,} clients are fewer than privacy.min_contributors = {least:,}, "
            "and a relay forwards nothing of fewer; take more clients, or a smaller "
            "minimum with --set privacy.min_contributors=N"
        )


def _write_settings(
    folder: Path, ports: dict[str, int], *, window: int, needs_tickets: bool
) -> None:
    at = {name: f"{HOST}:{port}" for name, port in ports.items()}
    keys = {
        f"{role}_key": make_signing_key(folder / f"{role}-keys").hex()
        for role in ("relay", "collector")
    }
    for name in ("pair", "own"):
        make_secret(folder / f"{name}.secret")
    shared: dict[str, Any] = {**keys, "pair_secret": "pair.secret"}
    write_toml(
        folder / "relay.toml",
        {
            **shared,
            "folder": "relay",
            "signing_key": "relay-keys/signing.key",
            "url": f"http://{at['relay public']}",
            "collector_url": f"http://{at['collector private']}",
            "public": at["relay public"],
            "private": at["relay private"],
            "page": at["relay page"],
            "poll": 0.1,
            "limits": {"most_delay": 0.0, "needs_tickets": needs_tickets},
        },
    )
    write_toml(
        folder / "collector.toml",
        {
            **shared,
            "experiment": "experiment.toml",
            "invitation": "invitation",
            "folder": "collector",
            "signing_key": "collector-keys/signing.key",
            "secret": "own.secret",
            "relay_url": f"http://{at['relay private']}",
            "reports_url": f"http://{at['relay public']}",
            "public": at["collector public"],
            "private": at["collector private"],
            "page": at["collector page"],
            "title": "a trial: both operators are one machine",
            "one_machine": True,
            "schedule": {"window": window, "poll": 0.1},
        },
    )
