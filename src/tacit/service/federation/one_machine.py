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
    DIR/history.csv impressions.csv                  a user's files for `tacit client`;
                                                     with slates if it needs them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import tomli_w

from tacit.experiment.assemble import Assembled
from tacit.files import write_atomically
from tacit.service.federation.coordinated_run import CoordinatedRun
from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.services import run_of
from tacit.service.federation.settings import CoordinatorSettings, read_settings
from tacit.service.federation.trial import HOST, Cast, Trial, write_toml

_WINDOW = 24 * 3600  # seconds: a round closes when all clients have reported


class TwoServersTrial(Trial):
    """The files of leader, helper and coordinator on one machine, and their clients."""

    roles: ClassVar[tuple[str, ...]] = ("helper", "leader", "coordinator")
    listeners: ClassVar[tuple[str, ...]] = (
        *("leader public", "leader private", "leader page"),
        *("helper private", "helper page"),
        *("coordinator public", "coordinator private", "coordinator page"),
    )
    front: ClassVar[str] = "coordinator"
    takes: ClassVar[str] = "leader"
    told_of: ClassVar[str] = "are counted; both operators close it"

    @classmethod
    def _write(
        cls, folder: Path, assembled: Assembled, cast: Cast, ports: Mapping[str, int]
    ) -> CoordinatedRun:
        experiment = assembled.experiment
        _write_settings(folder, ports, cast.present)
        settings = read_settings(folder / "coordinator.toml", CoordinatorSettings)
        catalog = assembled.split.catalog
        run = run_of(experiment, catalog, settings, population=cast.population)
        _write_limits(folder, run)
        return run

    def _hand_out(self) -> Iterable[str]:
        return ()


def _write_settings(folder: Path, ports: Mapping[str, int], enough: int) -> None:
    """Keys, secrets and settings of each role; paths are relative to the files."""
    keys = {
        role: make_signing_key(folder / role / "keys").hex()
        for role in ("leader", "helper")
    }
    for pair in ("coordinator-leader", "coordinator-helper", "leader-helper", "own"):
        make_secret(folder / f"{pair}.secret")
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
            "schedule": {"window": _WINDOW, "enough": enough, "poll": 0.1},
        },
    )


def _write_limits(folder: Path, run: CoordinatedRun) -> None:
    """What both operators sign: the least noise and the sizes of this run's rounds."""
    invitation = run.invitation
    phases = range(len(invitation.agreement.reports))
    sums = [run.sum_fields(phase) for phase in phases]
    limits = {
        "least_multiplier": min(one.multiplier for one in sums),
        "least_reports": invitation.least_reports,
        "most_reports": invitation.plan.population,
        "most_numbers": max(one.numbers for one in sums),
    }
    for role in ("leader", "helper"):
        path = folder / f"{role}.toml"
        text = path.read_text() + "\n" + tomli_w.dumps({"limits": limits})
        write_atomically(path, text.encode())
