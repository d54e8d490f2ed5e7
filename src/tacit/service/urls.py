"""URLs of servers: encrypted, unless they are on this machine.

Over these URLs go secrets of operators, tickets and sealed reports, and what comes back
is believed. In plain HTTP whoever is on the way reads the secrets and can change what
is not signed. So `http://` is for the loopback interface, and for hosts that the
operator names because they share a private network with this one.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address

from tacit.errors import BadValue

_HOST = r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]"
# One form that all parsers of URLs read alike: no user, no query and no fragment.
_URL = re.compile(rf"(https?)://({_HOST})(?::\d{{1,5}})?(?:/[A-Za-z0-9._~%+-]*)*")
_USER = re.compile(r"//[^/]*@")


def checked_url(
    url: str, name: str = "url", *, plain_hosts: Collection[str] = ()
) -> str:
    """The beginning of a server's URLs, without a slash at its end.

    Refuses what is not encrypted, but for this machine and for `plain_hosts`.

    >>> checked_url("https://films.example/"), checked_url("http://127.0.0.1:8000")
    ('https://films.example', 'http://127.0.0.1:8000')
    """
    scheme, host = _parts(url, name)
    if scheme == "http" and not is_loopback(host) and host not in plain_hosts:
        raise BadValue(
            f"{name}={url!r} is not encrypted, so others can read and change what goes "
            "there; use https://, or http:// to this machine alone (127.0.0.1, ::1, "
            "localhost)"
        )
    return url.rstrip("/")


def public_url(url: str, name: str = "url") -> str:
    """The same for a server that hands out public content, encrypted or not."""
    _parts(url, name)
    return url.rstrip("/")


def _parts(url: str, name: str) -> tuple[str, str]:
    """Scheme and host of a URL in the one form that is allowed."""
    found = _URL.fullmatch(url)
    if found is None:
        given = _USER.sub("//…@", url)  # it may have a password
        raise BadValue(
            f"{name}={given!r} must be like https://host or https://host:8443/path: "
            "with http or https, and without a user, a query and a #fragment"
        )
    return found[1], found[2].strip("[]")


def checked_host(text: str, name: str) -> str:
    """The name or address of a host; refuses a URL, a port and a wildcard."""
    if not re.fullmatch(_HOST, text):
        raise BadValue(
            f"{name}={text!r} must be the name of one host, such as 'leader', without "
            "http:// and without a port"
        )
    return text.strip("[]")


def host_of(header: str) -> str:
    """The host of a `Host` header, in small letters and without its port.

    >>> host_of("Films.example:8201"), host_of("[::1]:80"), host_of("::1")
    ('films.example', '::1', '')
    """
    found = re.fullmatch(rf"({_HOST})(?::\d{{1,5}})?", header)
    return "" if found is None else found[1].strip("[]").lower()


def is_address(host: str) -> bool:
    """Whether a host is an address, which no other name can lead to.

    >>> is_address("10.0.0.7"), is_address("::1"), is_address("films.example")
    (True, True, False)
    """
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_on_this_machine(url: str) -> bool:
    """Whether a URL is one of this machine's own."""
    found = _URL.match(url)
    return found is not None and is_loopback(found[2].strip("[]"))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, and nobody else can be reached by its name."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
