"""Ports for real services that must know each other's before they listen."""

import socket

from tacit.service.federation.trial import reserve_ports

# Held while the tests run: no service of another test is given one of them.
_RESERVED: list[socket.socket] = []


def free_ports(n: int) -> list[int]:
    """Ports at which only whoever asks for their numbers can listen."""
    reserved = reserve_ports(n)
    _RESERVED.extend(reserved)
    return [bound.getsockname()[1] for bound in reserved]
