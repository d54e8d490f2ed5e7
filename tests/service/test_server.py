"""Tests of addresses and ports; `test_application` has servers that run."""

import contextlib
import socket
import sys

import pytest

from tacit.errors import BadValue, Refused
from tacit.service.server import Address, listen, reserve


def test_a_url_has_brackets_around_colons():
    assert Address("127.0.0.1", 80).url == "http://127.0.0.1:80"
    assert Address("::1", 80).url == "http://[::1]:80"


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(BadValue, match=f"port={port} must be"):
        Address(port=port)


def test_a_free_port_is_found_and_one_in_use_is_named():
    with listen(Address(port=0)) as first:
        port = first.getsockname()[1]
        assert port > 0
        with pytest.raises(Refused, match=f"port {port} .* in use; choose another"):
            listen(Address(port=port))


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(Refused, match=r"192\.0\.2\.1"):
        listen(Address("192.0.2.1", 0))


def test_it_listens_before_it_serves():
    """Whoever is told the address can connect at once."""
    with listen(Address(port=0)) as listening:
        socket.create_connection(listening.getsockname(), timeout=5).close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps such ports")
def test_a_reserved_port_is_for_those_who_ask_for_its_number():
    """Of 28,000 ports 300 are reserved: 5,000 draws would hit one but for e⁻⁵³."""
    with contextlib.ExitStack() as open_sockets:
        reserved = [
            open_sockets.enter_context(reserve(Address(port=0))) for _ in range(300)
        ]
        ports = {bound.getsockname()[1] for bound in reserved}
        for _ in range(5000):
            with listen(Address(port=0)) as taken:
                assert taken.getsockname()[1] not in ports
        wanted = Address(port=min(ports))
        listening = open_sockets.enter_context(listen(wanted))
        with socket.create_connection(listening.getsockname(), timeout=5):
            pass
        with pytest.raises(Refused, match="in use"):
            reserve(wanted)
