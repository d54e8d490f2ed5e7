"""Proxies, cookies and the protocol of all connections that are made."""

import ast
import contextlib
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.errors import Unanswered
from tacit.service.connections import may_use_proxy
from tacit.service.federation.exchange import Exchange, Fate

_MAKES = {
    f"httpx.{name}"
    for name in ("Client", "AsyncClient", "get", "post", "put", "request", "stream")
}
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def test_whoever_makes_a_connection_says_what_the_environment_may_do():
    """httpx takes proxies from it by default, also for this machine and for secrets."""
    found = 0
    for path in Path(tacit.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _MAKES:
                assert "trust_env" in {one.arg for one in node.keywords}, path
                found += 1
    assert found >= 5


@pytest.fixture
def dead_proxy(monkeypatch):
    """A proxy in the environment at which nobody answers."""
    for name in (*_PROXIES, "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in _PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")


@contextlib.contextmanager
def server():
    """Answers one request, and tells what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            taken, _ = listening.accept()
            with taken:
                asked.append(taken.recv(1 << 16))
                body = b'{"is_over": false, "state": "open", "reports": 3}'
                head = b"HTTP/1.1 200 OK\r\nset-cookie: who=you\r\n"
                head += b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
                taken.sendall(head + body)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1], asked
        finally:
            thread.join(10)
            assert not thread.is_alive()


def test_a_clients_requests_to_this_machine_use_no_proxy(dead_proxy):
    with server() as (port, asked), Exchange(seconds=5.0) as exchange:
        assert exchange.get(f"http://127.0.0.1:{port}/v1/manifest", most=100)
        assert b"tacit-protocol: 1" in asked[0].lower()
    with server() as (port, _), Exchange(seconds=5.0) as exchange:
        url = f"http://127.0.0.1:{port}"
        assert exchange.post_report(url, b"x", path="/").fate is Fate.DELIVERED


def test_what_leaves_this_machine_uses_it(dead_proxy):
    """Where there is no other way out; nobody answers, so it is not reached."""
    with (
        Exchange(seconds=5.0) as exchange,
        pytest.raises(Unanswered, match="cannot be reached"),
    ):
        exchange.get("https://films.example/v1/manifest", most=100)
    assert may_use_proxy("https://films.example")
    assert not may_use_proxy("http://[::1]:8000")


def test_a_proxy_is_asked_for_a_tunnel_and_sees_no_more(dead_proxy, monkeypatch):
    with server() as (port, asked), Exchange(seconds=5.0) as exchange:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        found = exchange.post_report("https://films.example", b"sealed", path="/v1/x")
        assert found.fate is Fate.AGAIN
    assert asked[0].startswith(b"CONNECT films.example:443 ")
    assert b"/v1/x" not in asked[0]
    assert b"sealed" not in asked[0]


def test_operators_use_no_proxy_anywhere(dead_proxy):
    from tacit.service.federation.operator_client import OperatorClient

    with server() as (port, asked):
        one = OperatorClient("helper", f"http://127.0.0.1:{port}", b"s" * 32)
        assert one.status(bytes(32)).reports == 3
        one.close_connection()
        assert b"s" * 32 in asked[0]
    assert OperatorClient("helper", "https://a.example", b"s")._http.trust_env is False


def test_commands_and_trials_ask_their_own_coordinator_directly(dead_proxy, tmp_path):
    from tacit.service.federation.one_machine import TwoServersTrial
    from tacit.service.federation.trial import Cast, write_toml

    secret = tmp_path / "own.secret"
    secret.write_text("s" * 40)
    secret.chmod(0o600)
    with server() as (port, _):
        settings = {"secret": secret.name, "private": f"127.0.0.1:{port}"}
        write_toml(tmp_path / "coordinator.toml", settings)
        no_one: Any = None
        cast = Cast(simulated=1, seats=0, population=1)
        trial = TwoServersTrial(tmp_path, no_one, no_one, cast, "", True, ())
        assert trial.status()["is_over"] is False


def test_a_model_is_fetched_without_a_cookie_and_with_the_protocol(
    dead_proxy, tmp_path
):
    from tacit.service.client import Connection

    with (
        server() as (port, asked),
        Connection(f"http://127.0.0.1:{port}", tmp_path) as found,
    ):
        found._got("/v1/model", most=100)
        assert not [*found._http.cookies.jar]
    assert b"tacit-protocol: 1" in asked[0].lower()
