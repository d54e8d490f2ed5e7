"""Flower's own programs, started and asked: SuperLink, SuperNodes and `flwr`.

Everything that Flower writes goes into a folder of ours (`FLWR_HOME`), its telemetry
and its look for newer versions are off, and it installs nothing while it runs. What
`flwr` says is read as JSON: its exit code is 0 even when it was refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import tomli_w

from tacit.child_processes import ChildProcess
from tacit.errors import BadValue, MissingExtra, Refused, Unanswered
from tacit.files import (
    PRIVATE,
    append,
    make_folders,
    make_private_folder,
    write_atomically,
)
from tacit.version import DISTRIBUTION, __version__

_SHARED = ("starlette", "uvicorn", "fastapi")  # that the extra `serve` asks for as well
_PATIENCE = 60.0  # seconds for a program of Flower's to start, on a busy machine
_REGISTERED = "public key already in use"  # says Flower to a key that it knows
_QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True)
class Link:
    """Where a SuperLink listens, and whose certificate it shows."""

    address: str  # host:port
    ca: Path | None = None  # None: no TLS, which is for one machine

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdigit():
            raise BadValue(
                f"superlink={self.address!r} must be HOST:PORT, as 127.0.0.1:9400"
            )
        is_here = host in ("127.0.0.1", "localhost", "[::1]")
        if self.ca is None and not is_here:
            raise Refused(
                f"{host} is another machine, and without TLS everybody on the way "
                "reads the sums of nodes; make certificates with `tacit flower keys` "
                "and give --ca"
            )

    @property
    def security(self) -> list[str]:
        """The options of Flower's programs for this link."""
        if self.ca is None:
            return ["--insecure"]
        return ["--root-certificates", str(self.ca.resolve())]


def program(name: str) -> str:
    """The path of one of Flower's programs; refuses where it cannot work."""
    _refuse_clash()
    found = Path(sys.executable).parent / name
    if not found.exists():
        raise MissingExtra("flwr", "flower")
    return str(found)


def _refuse_clash() -> None:
    """Refuse an environment whose Starlette or uvicorn is not one that Flower takes."""
    try:
        wanted = metadata.requires("flwr") or []
    except metadata.PackageNotFoundError:
        raise MissingExtra("flwr", "flower") from None
    from packaging.requirements import Requirement

    for text in wanted:
        needed = Requirement(text)
        if needed.name.lower() not in _SHARED:
            continue
        try:
            installed = metadata.version(needed.name)
        except metadata.PackageNotFoundError:
            continue  # pip will say so
        if not needed.specifier.contains(installed, prereleases=True):
            raise Refused(
                f"Flower needs {needed.name} {needed.specifier} and {installed} is "
                "installed, for the extra 'serve': the extras 'flower' and 'serve' "
                f"need an environment each; make one with: python -m venv .venv-flower "
                f"&& .venv-flower/bin/pip install '{DISTRIBUTION}[flower]'"
            )


def environment(home: Path) -> dict[str, str]:
    """The environment of Flower's programs, which write into `home`."""
    make_folders(home)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, **_QUIET, "FLWR_HOME": str(home.resolve()), "PATH": path}


def _start(name: str, command: Sequence[str], *, home: Path, log: Path) -> ChildProcess:
    return ChildProcess.start(name, command, log=log, environment=environment(home))


def start_superlink(
    folder: Path, *, port: int, host: str = "127.0.0.1", keys: Path | None = None
) -> ChildProcess:
    """A SuperLink; with `keys` it has TLS and only nodes that were registered.

    Its database has the sums of nodes without noise, also after Flower has deleted
    them. It is a file all the same: a SuperLink that is started again must know its
    nodes, because those that run do not register a second time.
    """
    make_private_folder(folder)
    database = folder / "superlink.db"
    append(database, b"", is_private=True)  # SQLite gives its other files this mode
    database.chmod(PRIVATE)  # one that an earlier version has left
    command = [program("flower-superlink"), "--host", host, "--port", str(port)]
    command += ["--disable-runtime-dependency-installation"]
    command += ["--database", str(database.resolve())]
    if keys is None:
        command += ["--insecure"]
    else:
        command += ["--ssl-certfile", str(keys / "server.crt")]
        command += ["--ssl-keyfile", str(keys / "server.key")]
        command += ["--ssl-ca-certfile", str(keys / "ca.crt")]
        command += ["--enable-supernode-auth"]
    log = folder / "superlink.log"
    return _start("the SuperLink", command, home=folder / "flwr", log=log)


def start_supernode(
    folder: Path, link: Link, *, port: int, key: Path | None = None
) -> ChildProcess:
    """A SuperNode whose messages the node in `folder` answers."""
    make_private_folder(folder)
    command = [program("flower-supernode"), *link.security, "--superlink", link.address]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--node-config", f"folder={json.dumps(str(folder.resolve()))}"]
    if key is not None:
        command += ["--auth-supernode-private-key", str(key.resolve())]
    log, name = folder / "supernode.log", f"the SuperNode of {folder.name}"
    return _start(name, command, home=folder / "flwr", log=log)


class Flwr:
    """The command `flwr`, asked about one SuperLink."""

    def __init__(self, link: Link, home: Path) -> None:
        self.link, self.home = link, home
        named: dict[str, Any] = {"address": link.address}
        if link.ca is None:
            named["insecure"] = True
        else:
            named["root-certificates"] = str(link.ca.resolve())
        make_folders(home)
        config = {"superlink": {"default": "tacit", "tacit": named}}
        write_atomically(home / "config.toml", tomli_w.dumps(config).encode())

    def ask(self, *words: str) -> dict[str, Any]:
        """What `flwr` answers, as JSON; refuses what it was refused."""
        command = [program("flwr"), *words, "--format", "json"]
        done = subprocess.run(
            command,
            env=environment(self.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        found = _json_of(done.stdout)
        if found is None or found.get("success") is False:
            said = (found or {}).get("error-message") or done.stderr or done.stdout
            raise Unanswered(
                f"flwr {words[0]} at {self.link.address} was refused: "
                f"{' '.join(str(said).split())[:400] or 'it said nothing'}"
            )
        return found

    def start_run(self, bundle: Path) -> int:
        """The number of a run that was begun with this bundle."""
        found = self.ask("run", str(bundle))
        return int(found["run-id"])

    def stop_run(self, run: int) -> None:
        """Stop a run; its directory can be resumed."""
        self.ask("stop", str(run))

    def register(self, public: Path) -> None:
        """Let the SuperLink know a node's public key; it may know it already."""
        try:
            self.ask("supernode", "register", str(public.resolve()))
        except Unanswered as error:
            if _REGISTERED not in str(error).lower():
                raise

    def status(self, run: int) -> dict[str, Any]:
        """What the SuperLink says of a run."""
        found = self.ask("list", "--run-id", str(run)).get("runs", [])
        if not found:
            raise Unanswered(f"{self.link.address} knows no run {run}")
        return dict(found[0])

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes that the SuperLink knows."""
        return list(self.ask("supernode", "list").get("nodes", []))

    def wait_for_nodes(self, n: int, processes: Sequence[ChildProcess]) -> None:
        """Wait until so many nodes are connected, or a process has ended."""
        ends = time.monotonic() + _PATIENCE + 5.0 * n
        while time.monotonic() < ends:
            for process in processes:
                process.refuse_ended()
            try:
                online = [one for one in self.nodes() if one["status"] == "online"]
            except Unanswered:
                online = []
            if len(online) >= n:
                return
            time.sleep(0.3)
        raise Unanswered(f"fewer than {n} nodes connected to {self.link.address}")


def _json_of(text: str) -> dict[str, Any] | None:
    """The JSON object in what `flwr` printed, whatever it printed around it."""
    start = text.find("{")
    while start >= 0:
        try:
            found, _ = json.JSONDecoder().raw_decode(text[start:])
        except ValueError:
            start = text.find("{", start + 1)
            continue
        return found if isinstance(found, dict) else None
    return None


def write_bundle(folder: Path, settings: Mapping[str, Any]) -> Path:
    """A bundle for Flower with no code in it: it names the apps of this package."""
    place = folder / "tacit-run"
    make_folders(place)
    apps = "tacit.cli.flower_app"
    project = {
        "project": {
            "name": "tacit-run",
            "version": __version__,
            "description": "A run of Tacit over nodes.",
        },
        "tool": {
            "flwr": {
                "app": {
                    "publisher": "tacit",
                    "components": {
                        "serverapp": f"{apps}:server",
                        "clientapp": f"{apps}:client",
                    },
                    "config": dict(settings),
                }
            }
        },
    }
    write_atomically(place / "pyproject.toml", tomli_w.dumps(project).encode())
    return place
