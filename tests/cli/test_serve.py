"""`tacit serve recommendations`: it listens, ranks, refuses, and ends when told."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest
from service.worlds import trained

from tacit.cli.serve import _settings
from tacit.experiment.serve_settings import ServeSettings
from tacit.service.client import Connection


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a method that no server can rank for."""
    return trained(tmp_path_factory.mktemp("popular"), "federated_popularity", rounds=1)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A run of a method that a server can rank for."""
    return trained(tmp_path_factory.mktemp("gram"), "gram", rounds=2)


@contextmanager
def serving(*arguments):
    """The command in a process of its own, and what it said first."""
    command = [sys.executable, "-m", "tacit", "serve", "recommendations"]
    process = subprocess.Popen(
        [*command, *map(str, arguments), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NUMBA_NUM_THREADS": "1"},
    )
    try:
        lines = [process.stdout.readline()]
        while lines[-1].rstrip() != "}":  # one document, indented
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        yield process, json.loads("".join(lines))
    finally:
        process.kill()
        process.communicate()


def until(holds):
    """Wait until this holds, for some seconds at the most."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end


def is_open(url):
    """Whether somebody listens there."""
    try:
        return httpx.get(f"{url}/v1/health").is_success
    except httpx.TransportError:
        return False


def test_a_client_is_served_and_sigterm_ends_it(vectors, tmp_path):
    with serving(vectors, "--mode", "krr", "--epsilon", "2") as (process, told):
        assert (told["mode"], told["items"]) == ("krr", 15)
        ledger = tmp_path / "ledger"
        with Connection(told["url"], tmp_path / "fetched") as server:
            found = server.recommend(["item 1"], 3, ledger=ledger, epsilon=2.0)
            assert (found.ranked_by, len(found.items)) == ("server", 3)
            assert server.document.queries.bytes == told["query_bytes"]
        host, _, port = told["url"].removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as begun:
            size = told["query_bytes"]
            head = (
                f"POST /v1/topk HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
            )
            begun.sendall(head.encode())
            until(lambda: "open 1" in httpx.get(f"{told['url']}/v1/metrics").text)
            process.send_signal(signal.SIGTERM)
            until(lambda: not is_open(told["url"]))
            assert process.poll() is None
            begun.sendall(bytes(size))
            assert begun.recv(1000).startswith(b"HTTP/1.1 400")  # it was no query
        assert process.wait(20) == 0
        assert "open requests were answered" in process.stderr.read()


def test_on_device_is_the_default_and_ranks_nothing(run, tmp_path):
    with serving(run) as (process, told):
        assert (told["mode"], told["query_bytes"]) == ("on_device", None)
        assert httpx.post(f"{told['url']}/v1/topk").status_code == 404
        with Connection(told["url"], tmp_path / "fetched") as server:
            assert len(server.recommend(["item 1"], 3).items) == 3
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--mode", "krr"), "mode='krr' needs epsilon"),
        (("--epsilon", "2"), "need --mode krr"),
        (("--mode", "on_device", "--epsilon", "2"), "sends nothing"),
        (("--mode", "krr", "--epsilon", "0"), "epsilon=0"),
        (("--mode", "krr", "--epsilon", "1", "--axes", "2"), "axes=2 is for vdp"),
        (("--mode", "krr", "--epsilon", "1"), "serve it on_device"),
        (("--port", "70000"), "port=70000 must be from 0 to 65535"),
        (("--host", "192.0.2.1"), "192.0.2.1"),
    ],
)
def test_what_cannot_be_served_is_told(tacit, run, arguments, problem):
    port = () if "--port" in arguments else ("--port", "0")
    answer = tacit("serve", "recommendations", run, *arguments, *port)
    assert answer.code == 2
    assert problem in answer.err


def test_a_port_in_use_is_told(tacit, run):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        answer = tacit("serve", "recommendations", run, "--port", port, "--json")
    assert answer.code == 2
    assert answer.json["error"]["kind"] == "Refused"
    assert f"port {port} of 127.0.0.1 is in use" in answer.json["error"]["message"]


def test_the_section_serve_of_the_experiment_decides_unless_told(tmp_path):
    serve = {"mode": "krr", "epsilon": 1.0, "interests": 3}
    run = trained(tmp_path, "federated_popularity", rounds=1, serve=serve)
    unset = {"delta": 0.0, "interests": None, "noise": "sound", "theta": None}
    assert _settings(run, None, None, unset) == ServeSettings(**serve).queries
    assert _settings(run, "on_device", None, unset) is None


def test_a_folder_without_a_run_is_told(tacit, tmp_path):
    answer = tacit("serve", "recommendations", tmp_path, "--port", "0")
    assert answer.code == 2
    assert "holds no run" in answer.err


def test_a_missing_extra_is_named(tacit, run, monkeypatch):
    for name in [n for n in sys.modules if n.startswith("tacit.service")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    answer = tacit("serve", "recommendations", run, "--port", "0")
    assert answer.code == 2
    assert "[serve]" in answer.err


def test_the_help_says_what_to_do_next(tacit):
    said = tacit("serve", "recommendations", "--help").out
    for words in ("on_device", "nothing of a user is sent", "curl", "TLS"):
        assert words in said
