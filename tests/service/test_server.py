"""Tests of addresses and ports; `test_application` has servers that run."""

import socket

import pytest

from tacit.errors import BadValue, Refused
from tacit.service.server import Address, listen


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
