"""With TLS, node keys and a front: nodes pass, and an anonymous run is refused."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is in .venv-flower: make test-flower")

import os
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from dataclasses import replace

from flower.loopback import Federation, experiment, free_ports, guarded

from tacit.cli.flower_keys import write_keys
from tacit.cli.flower_processes import (
    Flwr,
    Link,
    start_superlink,
    start_supernode,
    write_bundle,
)
from tacit.errors import Unanswered
from tacit.experiment.over_nodes import prepare_node
from tacit.experiment.settings import read_experiment
from tacit.transport.node_answer import Share

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("nginx") is None,
        reason="nginx is not here: apt-get install nginx-light",
    ),
]
METHOD = '[method]\nname = "federated_popularity"\n[privacy]\nchannel = "secure_sum"\n'


@pytest.fixture
def place(tmp_path):
    before = {**os.environ}
    guarded(tmp_path)
    yield tmp_path
    assert not (tmp_path / "connections.log").exists()
    os.environ.clear()
    os.environ.update(before)


def post(url, keys, *, certificate=None):
    """The status of a bare request, with the operator's certificate or without."""
    context = ssl.create_default_context(cafile=str(keys / "ca.crt"))
    if certificate is not None:
        pair = (keys / f"{certificate}.crt", keys / f"{certificate}.key")
        context.load_cert_chain(*map(str, pair))
    request = urllib.request.Request(url, data=b"", method="POST")
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


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
    path = experiment(place, "front", METHOD, rounds=1)
    prepare_node(read_experiment(path), Share(0, 1), place / "node-0")
    made = Federation(place, port)
    link = Link(f"127.0.0.1:{port}", keys / "ca.crt")  # on loopback, for the operator
    outside = replace(link, address=f"127.0.0.1:{front}")
    nginx = subprocess.Popen(["nginx", "-c", str(keys / "nginx.conf")])
    try:
        made.processes["link"] = start_superlink(place, port=port, keys=keys)
        made.wait(made._answers, "the SuperLink answers")
        operator = Flwr(link, place / "operator")
        operator.ask("supernode", "register", str(keys / "node-0.pub"))
        made.processes["node 0"] = start_supernode(
            place / "node-0", outside, port=port + 1, key=keys / "node-0.key"
        )
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

        number = operator.start_run(bundle)
        made.wait(
            lambda: operator.status(number)["status"].startswith("finished"),
            "the run is over",
        )
        assert operator.status(number)["status"] == "finished:completed"
        online = [one for one in operator.nodes() if one["status"] == "online"]
        assert len(online) == 1
    finally:
        made.stop()
        nginx.terminate()
        nginx.wait(20)
