"""What all connections of clients have: a protocol, no cookie, and few proxies.

httpx takes proxies from the environment unless it is told not to, for this machine and
for requests with secrets as well. Whoever makes a connection decides about that here:

    operators   reach each other directly, whatever the environment says
    clients     use a proxy where a request leaves this machine, because some networks
                have no other way out (`may_use_proxy`); it is encrypted then
"""

from __future__ import annotations

from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy

from tacit.service.http import PROTOCOL, PROTOCOL_HEADER
from tacit.service.urls import is_on_this_machine

HEADERS: Mapping[str, str] = {PROTOCOL_HEADER: str(PROTOCOL)}


def no_cookies() -> CookieJar:
    """A jar that keeps no cookie, whoever sends one."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def may_use_proxy(url: str) -> bool:
    """Whether a proxy of the environment may carry a client's requests to this URL.

    Never to this machine: what is said there stays there.
    """
    return not is_on_this_machine(url)
