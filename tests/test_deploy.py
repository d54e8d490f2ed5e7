"""All that the files of deploy/ name is there, and caddy, if there is one, obeys them.

Images and the compose file are not run here; docs/operators.md tells who has.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click
import httpx
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
CADDYFILES = ("product/Caddyfile", "helper/Caddyfile")
CADDY = shutil.which("caddy")
needs_caddy = pytest.mark.skipif(
    CADDY is None, reason="needs caddy, such as Debian's package of that name"
)
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
            shared = run.invitation.form(phase).shared
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


@pytest.mark.parametrize("file", CADDYFILES)
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


def test_proxies_let_through_the_largest_report_and_all_that_operators_send():
    from tacit.service.federation.operator_endpoints import _MOST_CHOSEN
    from tacit.service.federation.sealing import body_size
    from tacit.service.federation.seed_batches import MOST_BATCH_BYTES
    from tacit.transport.shared_sum import MOST_NUMBERS

    reports = site("product/Caddyfile", "reports.films.example")
    assert body_size(MOST_NUMBERS) <= most_bytes(reports) < 2 * body_size(MOST_NUMBERS)
    helper = most_bytes(site("helper/Caddyfile", "helper.example"))
    assert max(_MOST_CHOSEN, MOST_BATCH_BYTES) <= helper


def most_bytes(found: str) -> int:
    """The largest body that a site takes."""
    [(number, unit)] = re.findall(r"max_size (\d+)(\w+)", found)
    return int(number) * {"KB": 10**3, "MB": 10**6, "MiB": 2**20}[unit]


# --- Caddy itself ---------------------------------------------------------------------


@needs_caddy
@pytest.mark.parametrize("file", CADDYFILES)
def test_caddy_takes_its_file(file, tmp_path):
    found = subprocess.run(
        [CADDY, "validate", "--adapter", "caddyfile", "--config", DEPLOY / file],
        env=homeless(tmp_path),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert found.returncode == 0, found.stderr


@needs_caddy
def test_caddy_lets_clients_reach_public_paths_and_nothing_else(tmp_path):
    with proxied("product/Caddyfile", tmp_path) as proxy:
        public = ("invitation", "manifest", f"broadcast/{DIGEST}", "model", "rotation")
        for path in public:
            assert proxy.ask("GET", "films.example", f"/v1/{path}") == 200
        reports = f"/v1/rounds/{DIGEST}/reports"
        assert proxy.ask("POST", "reports.films.example", reports, b"sealed") == 200
        taken = [f"/v1/{path}" for path in public] + [reports]
        assert [one.path for one in proxy.taken] == taken

        for path in ("/", "/metrics", "/v1/status", "/v1/open", "/v1/invitation/x"):
            assert proxy.ask("GET", "films.example", path) == 404
        assert proxy.ask("POST", "films.example", "/v1/invitation", b"x") == 404
        assert proxy.ask("GET", "films.example", reports) == 404
        assert proxy.ask("GET", "reports.films.example", reports) == 404
        for path in ("/v1/rounds", f"/v1/rounds/{DIGEST}/close", "/v1/signatures"):
            assert proxy.ask("POST", "reports.films.example", path, b"x") == 404
        assert len(proxy.taken) == len(taken)


@needs_caddy
def test_caddy_takes_the_largest_report_and_no_three_megabytes(tmp_path):
    from tacit.service.federation.sealing import body_size
    from tacit.transport.shared_sum import MOST_NUMBERS

    path = f"/v1/rounds/{DIGEST}/reports"
    with proxied("product/Caddyfile", tmp_path) as proxy:
        largest = bytes(body_size(MOST_NUMBERS))
        assert proxy.ask("POST", "reports.films.example", path, largest) == 200
        with contextlib.suppress(
            httpx.TransportError
        ):  # it may close before its answer
            too_long = bytes(3_000_000)
            status = proxy.ask("POST", "reports.films.example", path, too_long)
            assert status in (413, 502)
        assert [one.size for one in proxy.taken] == [len(largest)]


@needs_caddy
def test_the_helper_is_reached_from_one_address_alone(tmp_path):
    """Here it is ours, or that of the example, from which nobody comes."""
    path = f"/v1/rounds/{DIGEST}"
    with proxied("helper/Caddyfile", tmp_path / "other") as proxy:
        assert proxy.ask("GET", "helper.example", path) == 404
    with proxied("helper/Caddyfile", tmp_path / "own", product=HOST) as proxy:
        assert proxy.ask("GET", "helper.example", path) == 200
        assert proxy.ask("GET", "helper.example", "/metrics") == 404


@needs_caddy
def test_caddy_logs_nothing_of_a_request_and_passes_no_address_on(tmp_path):
    marked = "/v1/invitation?marked"
    with proxied("product/Caddyfile", tmp_path) as proxy:
        assert proxy.ask("GET", "films.example", marked) == 200
        assert proxy.ask("GET", "films.example", "/marked") == 404
        [taken] = proxy.taken
        proxy.stop_service()
        assert proxy.ask("GET", "films.example", marked) == 502
    log = (tmp_path / "log").read_text()
    assert "serving initial configuration" in log
    for told in ("marked", "invitation", "status", "remote_ip", "Mozilla"):
        assert told not in log
    assert HOST not in str(taken.headers)


HOST = "127.0.0.1"


@dataclass(frozen=True)
class Taken:
    """A request that went through, as the service behind the proxy has it."""

    path: str
    size: int
    headers: dict[str, str]


@dataclass
class Proxy:
    """A running caddy, a service behind it, and what that service was asked."""

    port: int
    trusted: ssl.SSLContext
    service: ThreadingHTTPServer
    taken: list[Taken] = field(default_factory=list)

    def ask(self, method: str, name: str, path: str, body: bytes = b"") -> int:
        """The status of the answer to one request over TLS."""
        with httpx.Client(verify=self.trusted, trust_env=False, timeout=10) as http:
            return http.request(
                method,
                f"https://{HOST}:{self.port}{path}",
                content=body,
                headers={"host": f"{name}:{self.port}", "user-agent": "Mozilla"},
                extensions={"sni_hostname": name},
            ).status_code

    def stop_service(self) -> None:
        self.service.shutdown()
        self.service.server_close()


@contextlib.contextmanager
def proxied(file: str, folder: Path, product: str = "203.0.113.7") -> Iterator[Proxy]:
    """Caddy with one of our files on loopback, and its own certificates.

    Names of services and ports are others; the rest of the file is as it stands.
    """
    from service.ports import free_ports

    [port] = free_ports(1)
    service = ThreadingHTTPServer((HOST, 0), Service)
    proxy = service.proxy = Proxy(port, ssl.create_default_context(), service)
    threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
    text = (DEPLOY / file).read_text().replace("203.0.113.7", product)
    text = re.sub(r"(?m)^(\S+\.example) \{", rf"https://\1:{port} {{", text)
    behind = f"reverse_proxy {HOST}:{service.server_port}"
    text = re.sub(r"reverse_proxy \S+", behind, text)
    folder.mkdir(exist_ok=True)
    (folder / "Caddyfile").write_text(text.replace("{\n", f"{{\n{_TRIAL}", 1))
    command = [CADDY, "run", "--adapter", "caddyfile", "--config", "Caddyfile"]
    with (folder / "log").open("wb") as log:
        caddy = subprocess.Popen(
            command, cwd=folder, env=homeless(folder), stdout=log, stderr=log
        )
        try:
            trust(proxy, folder)
            yield proxy
        finally:
            caddy.terminate()
            caddy.wait(10)
            proxy.stop_service()


# No port for commands, none for redirects, and no change to what this machine trusts.
_TRIAL = """\
	local_certs
	skip_install_trust
	admin off
	auto_https disable_redirects
"""


def trust(proxy: Proxy, folder: Path) -> None:
    """Until caddy has made its certificates and answers to one of its names."""
    root = folder / "data/caddy/pki/authorities/local/root.crt"
    name = re.findall(r"https://(\S+):", (folder / "Caddyfile").read_text())[-1]
    until = time.monotonic() + 20
    while True:
        try:
            proxy.trusted.load_verify_locations(root)
            assert proxy.ask("GET", name, "/") == 404
        except (OSError, httpx.TransportError):
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.05)
        else:
            return


class Service(BaseHTTPRequestHandler):
    """Answers whatever was sent as a whole, and notes it."""

    def _answer(self) -> None:
        size = int(self.headers.get("content-length", 0))
        with contextlib.suppress(OSError):
            if len(self.rfile.read(size)) < size:
                return
        proxy = self.server.proxy  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        proxy.taken.append(Taken(path, size, dict(self.headers)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Nothing: the tests look at what was taken."""


def homeless(folder: Path) -> dict[str, str]:
    """An environment in which caddy keeps everything in this folder."""
    kept = {"XDG_DATA_HOME": folder / "data", "XDG_CONFIG_HOME": folder / "config"}
    return {**os.environ, **{name: str(path) for name, path in kept.items()}}
