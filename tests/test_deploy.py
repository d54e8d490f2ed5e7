"""The files of deploy/ cannot be run in the tests, but all that they name is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import typer

from tacit.cli.app import app
from tacit.experiment.settings import read_experiment
from tacit.service.federation.settings import (
    AggregatorSettings,
    CoordinatorSettings,
    address,
    read_settings,
)

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DIGEST = "0f" * 32
ROLES = {
    "coordinator": ("product", CoordinatorSettings),
    "leader": ("product", AggregatorSettings),
    "helper": ("helper", AggregatorSettings),
}


def settings(role: str):
    folder, cls = ROLES[role]
    return read_settings(DEPLOY / folder / f"{role}.toml", cls)


@pytest.fixture(scope="module")
def compose():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which the extra docs has")
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


@pytest.mark.parametrize("role", ROLES)
def test_settings_are_read(role):
    found = settings(role)
    assert str(found.folder) == "/var/tacit"
    assert getattr(found, "role", role) == role


def test_both_operators_agree_on_keys_secrets_and_addresses():
    coordinator, leader, helper = map(settings, ROLES)
    for name in ("leader_key", "helper_key"):
        keys = {getattr(one, name) for one in (coordinator, leader, helper)}
        assert len(keys) == 1
    assert coordinator.leader_key != coordinator.helper_key
    assert coordinator.leader_secret.name == leader.coordinator_secret.name
    assert coordinator.helper_secret.name == helper.coordinator_secret.name
    assert leader.pair_secret.name == helper.pair_secret.name
    assert coordinator.reports_url == leader.url
    assert coordinator.helper_url == leader.helper_url


def test_the_experiment_can_be_coordinated_and_its_limits_are_met(tmp_path):
    """The noise and the sizes of the example's rounds are what both operators sign."""
    from tacit.service.federation.services import coordinated_run

    run = coordinated_run(settings("coordinator"))
    experiment = read_experiment(DEPLOY / "product" / "experiment.toml")
    for role in ("leader", "helper"):
        limits = settings(role).limits
        assert run.invitation.least_reports >= limits.least_reports
        assert experiment.data.population <= limits.most_reports
        assert settings("coordinator").schedule.window >= limits.least_window
        for phase in range(len(run.invitation.agreement.reports)):
            shared = run.invitation.shared(phase)
            assert shared.sigma / shared.limit**0.5 >= limits.least_multiplier


def test_no_secret_and_no_key_lies_in_the_folder():
    found = [path.name for path in DEPLOY.rglob("*") if path.is_file()]
    assert not [name for name in found if name.endswith((".secret", ".key"))]


# --- compose.yaml ---------------------------------------------------------------------


def test_its_commands_are_ours(compose):
    group = typer.main.get_command(app)
    for role in ROLES:
        words = shlex.split(compose["services"][role]["command"])
        found = group.commands[words[0]].commands[words[1]]
        parsed, rest, _ = found.make_parser(click.Context(found)).parse_args(words[2:])
        assert rest == []
        assert words[1] == role
        assert parsed == {"config": f"/etc/tacit/{role}.toml"}


def test_each_operator_has_a_profile_and_none_has_both(compose):
    profiles = {n: one["profiles"] for n, one in compose["services"].items()}
    assert profiles == {
        **{name: ["product"] for name in ("caddy", "coordinator", "leader")},
        **{name: ["helper"] for name in ("helper_caddy", "helper")},
    }


def test_pages_are_on_loopback_and_what_they_mount_is_there(compose):
    for role in ROLES:
        service = compose["services"][role]
        port = address(settings(role).page, "page").port
        assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
        assert service["read_only"] is True
        assert service["environment"] == {"TACIT_STATE": "/var/anchor"}
        volumes = dict(one.split(":", 1) for one in service["volumes"])
        assert volumes.pop(f"./{ROLES[role][0]}") == "/etc/tacit:ro"
        assert set(volumes) <= compose["volumes"].keys()
        assert {*volumes.values()} == {"/var/tacit", "/var/anchor"}
    for name in ("caddy", "helper_caddy"):
        source = compose["services"][name]["volumes"][0].split(":")[0]
        assert (DEPLOY / source).is_file()


def test_the_image_has_what_services_write_to():
    image = (ROOT / "Dockerfile").read_text()
    assert "chown nobody /var/tacit /var/anchor" in image
    assert ",serve]" in image


# --- Caddyfiles -----------------------------------------------------------------------


def site(file: str, name: str) -> str:
    text = (DEPLOY / file).read_text()
    [found] = re.findall(rf"(?m)^{re.escape(name)} \{{\n(.*?)^\}}", text, re.DOTALL)
    return found


def public_paths(found: str) -> re.Pattern[str]:
    [pattern] = re.findall(r"path_regexp (\S+)", found)
    return re.compile(pattern)


def test_clients_reach_every_public_path_of_the_coordinator_and_no_other():
    from tacit.service.federation import coordinator_endpoints as endpoints

    found = public_paths(site("product/Caddyfile", "films.example"))
    told = (endpoints.__doc__ or "").split("The operator's own listener")
    public, own = (re.findall(r"(?:GET|POST) +(/\S+?),?\s", part) for part in told)
    assert "/v1/invitation" in public
    for path in public:
        assert found.search(re.sub(r"\{\w+\}", DIGEST, path)), path
    assert found.search(f"/v1/candidates/{DIGEST}")
    for path in (*own, "/metrics", "/", "/v1/rounds", "/v1/invitation/x"):
        assert not found.search(path), path


def test_clients_reach_the_path_of_reports_and_no_other():
    from tacit.service.federation import intake, operator_endpoints

    found = public_paths(site("product/Caddyfile", "reports.films.example"))
    [path] = re.findall(r"POST (/v1/\S+)", intake.__doc__ or "")
    assert found.search(path.replace("{round_id}", DIGEST))
    private = re.findall(r"(/v1/\S+)", operator_endpoints.__doc__ or "")
    assert len(private) >= 7
    for path in (*private, "/metrics", "/"):
        known = re.sub(r"\{\w+\}", DIGEST, path)
        assert not found.search(known), path


def test_the_helper_is_reached_at_what_operators_ask():
    from tacit.service.federation import operator_endpoints

    [line] = re.findall(r"\tpath (.*)", site("helper/Caddyfile", "helper.example"))
    allowed = [re.escape(one).replace(r"\*", ".*") for one in line.split()]
    for path in re.findall(r"(/v1/\S+)", operator_endpoints.__doc__ or ""):
        assert any(re.fullmatch(one, path) for one in allowed), path


@pytest.mark.parametrize("file", ["product/Caddyfile", "helper/Caddyfile"])
def test_no_request_is_logged_and_no_address_passed_on(file):
    text = (DEPLOY / file).read_text()
    sites = len(re.findall(r"(?m)^\S+\.example \{", text))
    for said in ("output discard", "header_up -X-Forwarded-For", "max_size"):
        assert text.count(said) == sites
    assert "exclude http" in text
    assert text.count("{") == text.count("}")


def test_where_caddy_proxies_to_a_service_listens():
    pairs = {
        "coordinator:8000": settings("coordinator").public,
        "leader:8001": settings("leader").public,
        "helper:8101": settings("helper").private,
    }
    text = "".join(path.read_text() for path in DEPLOY.rglob("Caddyfile"))
    assert {*re.findall(r"reverse_proxy (\S+)", text)} == pairs.keys()
    for target, listener in pairs.items():
        assert target.rsplit(":", 1)[1] == listener.rsplit(":", 1)[1]
