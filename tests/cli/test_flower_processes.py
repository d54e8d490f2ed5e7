"""Flower's programs: refused where they cannot work, quiet, and read as JSON."""

import stat
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tacit.cli import flower_processes
from tacit.cli.flower_processes import (
    Flwr,
    Link,
    environment,
    program,
    write_bundle,
)
from tacit.errors import BadValue, MissingExtra, Refused, Unanswered

ROOT = Path(__file__).parents[2]


def test_both_extras_in_one_environment_get_one_clear_error(monkeypatch):
    wanted = ["uvicorn[standard]<0.50.0,>=0.49.0", "starlette<1.4", "numpy>=1"]
    monkeypatch.setattr(metadata, "requires", lambda name: wanted)
    monkeypatch.setattr(metadata, "version", lambda name: "0.54.0")
    with pytest.raises(Refused) as caught:
        program("flwr")
    said = str(caught.value)
    assert "needs uvicorn" in said
    assert "0.54.0 is installed, for the extra 'serve'" in said
    assert ".venv-flower" in said


def test_without_flower_the_extra_is_named(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    with pytest.raises(MissingExtra, match=r"\[flower\]"):
        program("flwr")


def test_the_constraints_of_both_environments_agree_but_for_the_clash():
    def pins(name):
        lines = (ROOT / name).read_text("utf-8").splitlines()
        named = [line.split("==") for line in lines if "==" in line and line[0] != "#"]
        return {name.lower(): version for name, version in named}

    ours, flowers = pins("constraints.txt"), pins("constraints-flower.txt")
    differ = {n for n in ours if n in flowers and ours[n] != flowers[n]}
    assert differ == {"starlette", "uvicorn"}
    assert flowers["flwr"] == "1.41.0"


def test_nothing_is_told_to_anybody_and_files_are_ours(tmp_path):
    made = environment(tmp_path / "home")
    assert made["FLWR_TELEMETRY_ENABLED"] == "0"
    assert made["FLWR_DISABLE_UPDATE_CHECK"] == "1"
    assert made["FLWR_HOME"] == str((tmp_path / "home").resolve())
    assert made["PATH"].startswith(str(Path(sys.executable).parent))


@pytest.mark.parametrize("address", ["here", "here:", ":80", "127.0.0.1:x", ""])
def test_a_link_is_a_host_and_a_port(address):
    with pytest.raises(BadValue, match="HOST:PORT"):
        Link(address)


def test_another_machine_needs_tls(tmp_path):
    assert Link("127.0.0.1:9400").security == ["--insecure"]
    with pytest.raises(Refused, match="without TLS"):
        Link("films.example.org:443")
    ca = tmp_path / "ca.crt"
    secure = Link("films.example.org:443", ca).security
    assert secure == ["--root-certificates", str(ca.resolve())]


def test_what_flwr_says_is_read_whatever_it_exits_with(tmp_path, monkeypatch):
    """It exits with 0 even when it was refused."""
    said = tmp_path / "said.py"
    monkeypatch.setattr(flower_processes, "program", lambda name: sys.executable)
    asked = Flwr(Link("127.0.0.1:9400"), tmp_path / "home")
    config = tomllib.loads((tmp_path / "home" / "config.toml").read_text())
    assert config["superlink"]["tacit"] == {
        "address": "127.0.0.1:9400",
        "insecure": True,
    }
    said.write_text('print(\'Loading {\'); print(\'{"success": true, "run-id": "7"}\')')
    assert asked.ask(str(said)) == {"success": True, "run-id": "7"}
    said.write_text('print(\'{"success": false, "error-message": "403 Forbidden"}\')')
    with pytest.raises(Unanswered, match="403 Forbidden"):
        asked.ask(str(said))
    said.write_text("import sys; print('no JSON', file=sys.stderr)")
    with pytest.raises(Unanswered, match="no JSON"):
        asked.ask(str(said))


def test_a_bundle_has_no_code(tmp_path):
    made = write_bundle(tmp_path, {"experiment": "e.toml", "shares": 3})
    assert [path.name for path in made.iterdir()] == ["pyproject.toml"]
    found = tomllib.loads((made / "pyproject.toml").read_text())
    app = found["tool"]["flwr"]["app"]
    assert app["components"]["clientapp"] == "tacit.cli.flower_app:client"
    assert app["config"] == {"experiment": "e.toml", "shares": 3}


def test_a_key_that_the_superlink_knows_is_registered_all_the_same(
    tmp_path, monkeypatch
):
    """Flower refuses the second time, and a SuperLink started again knows its keys."""
    asked = Flwr(Link("127.0.0.1:9400"), tmp_path / "home")
    said = ["[code: 7] Public key already in use.", "[code: 9] Not allowed."]

    def ask(*words):
        raise Unanswered(f"flwr supernode was refused: {said[0]}")

    monkeypatch.setattr(asked, "ask", ask)
    asked.register(tmp_path / "node-0.pub")
    del said[0]
    with pytest.raises(Unanswered, match="Not allowed"):
        asked.register(tmp_path / "node-0.pub")


def test_what_a_superlink_keeps_is_readable_by_its_owner_alone(tmp_path, monkeypatch):
    """Its database has the sums of nodes; SQLite's other files get its mode."""
    monkeypatch.setattr(flower_processes, "program", lambda name: "true")
    folder = tmp_path / "federation"
    folder.mkdir(mode=0o755)
    (folder / "superlink.db").touch(0o644)
    flower_processes.start_superlink(folder, port=9400).stop()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "superlink.db").stat().st_mode) == 0o600
    node = tmp_path / "node"
    link = Link("127.0.0.1:9400")
    flower_processes.start_supernode(node, link, port=9401).stop()
    assert stat.S_IMODE(node.stat().st_mode) == 0o700
