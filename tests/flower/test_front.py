"""With TLS, node keys and a front: nodes pass, and an anonymous run is refused."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is in .venv-flower: make test-flower")

import os
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

from flower.loopback import (
    Federation,
    below,
    experiment,
    free_ports,
    guarded,
    rounds_of,
)

from tacit.child_processes import ChildProcess
from tacit.cli.flower_keys import write_keys
from tacit.cli.flower_processes import (
    Flwr,
    Link,
    start_superlink,
    start_supernode,
    write_bundle,
)
from tacit.errors import Unanswered

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("nginx") is None,
        reason="nginx is not here: apt-get install nginx-light",
    ),
]
WORLD = "users = 200, items = 1500, events_per_user = 40.0"
# A sum of 900 by 900 items has some MB.
METHOD = """
[method]
name = "gram"
count_rounds = 1
head = 900
rank = 4
[privacy]
channel = "secure_sum"
"""


@pytest.fixture
def place(tmp_path):
    before = {**os.environ}
    guarded(tmp_path)
    yield tmp_path
    assert not (tmp_path / "connections.log").exists()
    os.environ.clear()
    os.environ.update(before)


def post(url, keys, *, certificate=None, body=b""):
    """The status of a bare request, with the operator's certificate or without."""
    context = ssl.create_default_context(cafile=str(keys / "ca.crt"))
    if certificate is not None:
        pair = (keys / f"{certificate}.crt", keys / f"{certificate}.key")
        context.load_cert_chain(*map(str, pair))
    request = urllib.request.Request(url, data=body, method="POST")
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def tacit_flower(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "tacit", "flower", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def test_an_anonymous_run_is_refused_and_nodes_pass(place):
    port = free_ports(4)
    front, keys = port + 3, place / "keys"
    write_keys(
        keys,
        nodes=1,
        hosts=[],
        listen=f"127.0.0.1:{front}",
        superlink=f"127.0.0.1:{port}",
    )
    path = experiment(place, "front", METHOD, rounds=2)
    small = "users = 90, items = 40, events_per_user = 8.0"
    path.write_text(path.read_text().replace(small, WORLD))
    made = Federation(place, port)
    link = Link(f"127.0.0.1:{port}", keys / "ca.crt")  # on loopback, for the operator
    outside = replace(link, address=f"127.0.0.1:{front}")
    nginx = subprocess.Popen(["nginx", "-c", str(keys / "nginx.conf")])
    try:
        made.processes["link"] = start_superlink(place, port=port, keys=keys)
        made.wait(made._answers, "the SuperLink answers")
        operator = Flwr(link, place / "operator")
        operator.ask("supernode", "register", str(keys / "node-0.pub"))
        words = ["--share", "0/1", "--superlink", outside.address]
        words += ["--ca", str(keys / "ca.crt"), "--key", str(keys / "node-0.key")]
        words += ["--folder", str(place / "node-0"), "--port", str(port + 1)]
        node = tacit_flower("node", str(path), *words, "--json")
        made.processes["node 0"] = ChildProcess("node 0", node, place / "node.log")
        # A node that nobody registered is not one of the federation.
        write_keys(place / "strangers", nodes=1, hosts=[])
        stranger = place / "strangers" / "node-0.key"
        (place / "stranger").mkdir()
        made.processes["stranger"] = start_supernode(
            place / "stranger", outside, port=port + 2, key=stranger
        )
        operator.wait_for_nodes(1, [made.processes["node 0"]])

        # Whoever has ca.crt and reaches the front, and nothing more, starts no run.
        settings = {
            "experiment": str(path),
            "changes": "",
            "out": str(place / "run"),
            "resume": False,
            "name": "films",
            "shares": 1,
            "deadline": 60.0,
            "min-nodes": 0,
        }
        bundle = write_bundle(place, settings)
        anonymous = Flwr(outside, place / "anonymous")
        with pytest.raises(Unanswered):
            anonymous.start_run(bundle)
        start = f"https://{outside.address}/v1/control/start-run"
        assert post(start, keys) == 403
        assert post(f"https://{outside.address}/health", keys) == 403
        assert post(f"https://{outside.address}/v1/runtime/x", keys) == 403
        assert post(start, keys, certificate="operator") not in (403, 200)  # no run
        assert operator.ask("list").get("runs", []) == []

        # A message of some MB passes as well, and is never written to a disk here.
        push = f"https://{outside.address}/v1/fleet/push-object"
        status = post(push, keys, body=bytes(8 * 2**20))
        assert status == post(push, keys, body=b"x") < 500
        assert not [one for one in keys.glob("nginx-*/**/*") if one.is_file()]

        number = operator.start_run(bundle)
        made.wait(
            lambda: operator.status(number)["status"].startswith("finished"),
            "the run is over",
        )
        assert operator.status(number)["status"] == "finished:completed"
        online = [one for one in operator.nodes() if one["status"] == "online"]
        assert len(online) == 1
        *_, last = rounds_of(place / "run")
        assert last["nodes"]["answered"] == ["part 0 of 1"]
        assert last["simulation_only"]["bytes_up"] > 2 * 2**20
        # As Ctrl-C does, it ends the node, and Flower's programs with it.
        started = below(node.pid)
        node.send_signal(signal.SIGTERM)
        assert node.wait(30) == 0
        assert started
        assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    finally:
        made.stop()
        nginx.terminate()
        nginx.wait(20)
