"""`tacit serve sign-rotation` and `add-rotation`: new signing keys, step by step."""

from __future__ import annotations

import pytest
import tomli_w

from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.rotation import SigningKeys, followed
from tacit.service.federation.services import coordinated_run
from tacit.service.federation.settings import CoordinatorSettings, read_settings

EXPERIMENT = """
[data]
source = "table"
population = 40

[data.table]
path = "none.csv"
user = "user"
item = "film"

[data.table.items]
path = "films.csv"
item = "film"

[method]
name = "federated_popularity"

[privacy]
mechanism = "central"
channel = "two_servers"
target_epsilon = 4.0
delta = 1e-6

[run]
rounds = 1

[evaluate]
baselines = []
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    (tmp_path / "films.csv").write_text("film\n1\n2\n3\n")
    make_secret(tmp_path / "a.secret")
    keys = {role: make_signing_key(tmp_path / role).hex() for role in ROLES}
    for role in ROLES:
        write(tmp_path / f"{role}.toml", aggregator(role, keys))
    write(tmp_path / "coordinator.toml", coordinator(keys))
    return tmp_path


ROLES = ("leader", "helper")


def write(path, table):
    path.write_text(tomli_w.dumps(table))


def aggregator(role, keys):
    return {
        **{"role": role, "folder": "x", "signing_key": f"{role}/signing.key"},
        **{f"{one}_key": key for one, key in keys.items()},
        **{"coordinator_secret": "a.secret", "pair_secret": "a.secret"},
        **{"url": "https://l.example", "helper_url": "https://h.example"},
        "limits": {"least_multiplier": 0.1},
    }


def coordinator(keys):
    return {
        **{"experiment": "experiment.toml", "folder": "c", "rotation": "rotations"},
        **{f"{one}_url": f"https://{one}.example" for one in (*ROLES, "reports")},
        **{f"{one}_key": key for one, key in keys.items()},
        **dict.fromkeys(("leader_secret", "helper_secret", "secret"), "a.secret"),
    }


def rotate(tacit, place, run, old, number):
    """One whole rotation; `old` is the folder of each operator's key before it."""
    new = {r: make_signing_key(place / f"{r}{number}").hex() for r in ROLES}
    told = ["--leader", new["leader"], "--helper", new["helper"]]
    signed = {}
    for role in ROLES:
        table = aggregator(
            role,
            {r: (place / old[r] / "signing.pub").read_text().strip() for r in ROLES},
        )
        write(
            place / f"{role}.toml", table | {"signing_key": f"{old[role]}/signing.key"}
        )
        found = tacit(
            *("serve", "sign-rotation", "--config", place / f"{role}.toml"),
            *("--run", run, "--number", number, *told),
        )
        assert found.code == 0, found.err
        signed[role] = "".join(found.out.split())
    return told, signed


def add(tacit, place, told, signed):
    return tacit(
        *("serve", "add-rotation", "--config", place / "coordinator.toml", *told),
        *("--leader-signature", signed["leader"]),
        *("--helper-signature", signed["helper"]),
    )


def test_two_rotations_are_followed_by_a_client_with_the_first_keys(tacit, place):
    settings = read_settings(place / "coordinator.toml", CoordinatorSettings)
    invitation = coordinated_run(settings).invitation
    old = {role: role for role in ROLES}
    for number in (1, 2):
        told, signed = rotate(tacit, place, invitation.run.hex(), old, number)
        found = add(tacit, place, told, signed)
        assert found.code == 0, found.err
        assert f"rotation {number} is served" in found.out
        old = {role: f"{role}{number}" for role in ROLES}
    first = SigningKeys(invitation.leader, invitation.helper)
    content = (place / "rotations").read_bytes()
    newest = followed(first, content, run=invitation.run)
    assert newest.number == 2
    assert (
        newest.leader.hex() == (place / "leader2" / "signing.pub").read_text().strip()
    )


def test_one_operator_alone_replaces_nothing(tacit, place):
    settings = read_settings(place / "coordinator.toml", CoordinatorSettings)
    run = coordinated_run(settings).invitation.run.hex()
    told, signed = rotate(tacit, place, run, {role: role for role in ROLES}, 1)
    found = add(tacit, place, told, {**signed, "helper": signed["leader"]})
    assert found.code == 2
    assert "the helper has not signed" in found.err
    assert not (place / "rotations").exists()


def test_digits_that_are_none_are_refused(tacit, place):
    found = tacit(
        *("serve", "sign-rotation", "--config", place / "leader.toml", "--run", "zz"),
        *("--leader", "11" * 32, "--helper", "22" * 32),
    )
    assert found.code == 2
    assert "run='zz' must be hexadecimal digits" in found.err
