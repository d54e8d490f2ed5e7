"""Relay and collector on one machine, for a trial: real processes, simulated clients.

It is the trial of a federation with two other roles. It promises what the local
mechanism promises and no more: the machine knows whose report is whose, and the
statements of the run say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tacit.errors import Refused
from tacit.experiment.assemble import Assembled
from tacit.plans import TICKETS
from tacit.sampling import Everyone
from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.tickets import hand_out
from tacit.service.federation.trial import HOST, STATE, Cast, Trial, write_toml
from tacit.service.relay.collected_run import CollectedRun
from tacit.service.relay.relay_store import FILE_NAME
from tacit.service.relay.services import run_of
from tacit.service.relay.settings import read_collector

_LONG = 24 * 3600  # seconds: an epoch is over when all clients have reported
_SHORT = 60  # seconds at the least, where some do not report in every epoch
_SLOWEST = 20  # clients per second that the window of such an epoch is made for


class RelayTrial(Trial):
    """The files of relay and collector on one machine, and their clients' data."""

    roles: ClassVar[tuple[str, ...]] = ("relay", "collector")
    listeners: ClassVar[tuple[str, ...]] = (
        *("relay public", "relay private", "relay page"),
        *("collector public", "collector private", "collector page"),
    )
    front: ClassVar[str] = "collector"
    takes: ClassVar[str] = "relay"
    told_of: ClassVar[str] = "are with the relay, which mixes and forwards them"

    @classmethod
    def _write(
        cls, folder: Path, assembled: Assembled, cast: Cast, ports: Mapping[str, int]
    ) -> CollectedRun:
        experiment = assembled.experiment
        asks = experiment.privacy.counted_by == TICKETS
        window = _window(assembled, cast)
        _write_settings(folder, ports, window=window, needs_tickets=asks)
        settings, catalog = (
            read_collector(folder / "collector.toml"),
            assembled.split.catalog,
        )
        return run_of(experiment, catalog, settings, population=cast.population)

    def _hand_out(self) -> Iterable[str]:
        if self.assembled.experiment.privacy.counted_by != TICKETS:
            return ()
        return hand_out(
            self.folder / "relay",
            self.cast.present,
            file_name=FILE_NAME,
            state=self.folder / STATE,
        )


def _window(assembled: Assembled, cast: Cast) -> int:
    """The seconds of an epoch; refuses seats that no relay would wait for."""
    is_everyone = isinstance(assembled.plan.sampler, Everyone)
    if is_everyone and cast.population == cast.present:
        return _LONG
    if cast.seats:
        raise Refused(
            f"--seats {cast.seats} over a relay need run.sampler.name = 'everyone' and "
            f"at most {cast.present:,} declared users (clients and seats): else a "
            "round ends with its window, whoever has answered; add --set "
            "run.sampler.name=everyone, or lower data.population"
        )
    return max(_SHORT, cast.simulated // _SLOWEST)


def _write_settings(
    folder: Path, ports: Mapping[str, int], *, window: int, needs_tickets: bool
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
