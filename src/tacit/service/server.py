"""A port, uvicorn on it, and an end that finishes what was begun.

SIGTERM and Ctrl-C close the port at once; open requests are answered, then the process
ends. There is no access log, and uvicorn's own log has no line about a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from tacit.errors import BadValue, Refused
from tacit.service.http_protocol import AwaitedConnections, HttpProtocol

_BACKLOG = 2048  # connections that wait to be accepted
_CONNECTIONS = 4096  # open ones; with more, uvicorn answers 503
_GRACE = 30  # seconds for open requests after SIGTERM


@dataclass(frozen=True)
class Address:
    """Where a server listens; port 0 asks the system for a free one."""

    host: str = "127.0.0.1"
    port: int = 8000

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise BadValue(
                f"port={self.port} must be from 0 to 65535; 0 chooses a free one"
            )

    @property
    def url(self) -> str:
        """The beginning of the server's URLs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def listen(address: Address) -> socket.socket:
    """A socket that listens there; refuses what is in use or not this machine's."""
    bound = reserve(address)
    try:
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise Refused(_why(address, error)) from error
    return bound


def reserve(address: Address) -> socket.socket:
    """A socket that has a port and does not listen; refuses as `listen` does.

    On Linux another process may listen at that port if it asks for its number, and the
    system gives the port to no one who takes any. Elsewhere the socket must be closed
    before another process can listen.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise Refused(_why(address, error)) from error
    return bound


def serve(
    app: ASGIApp,
    listening: socket.socket,
    *,
    started: Callable[[Server], None] | None = None,
) -> None:
    """Serve an application until SIGTERM, Ctrl-C or `Server.stop`.

    `started` is called with the server just before it takes requests.
    """
    serve_all([(app, listening)], started=started)


def serve_all(
    applications: Sequence[tuple[ASGIApp, socket.socket]],
    *,
    started: Callable[[Server], None] | None = None,
) -> None:
    """Serve several applications of one process, each on its own socket.

    They begin and end together. `started` is called with the first of the servers.
    """
    servers = [Server(_config(app)) for app, _ in applications]
    for one in servers:
        one.together = servers
    # What is here stays: looked through for garbage, it would hold up requests.
    gc.collect()
    gc.freeze()
    if started is not None:
        started(servers[0])

    async def serve_them() -> None:
        sockets = [listening for _, listening in applications]
        both = zip(servers, sockets, strict=True)
        await asyncio.gather(*(one.serve(sockets=[own]) for one, own in both))

    with asyncio.Runner(loop_factory=servers[0].config.get_loop_factory()) as runner:
        runner.run(serve_them())


class Server(uvicorn.Server):
    """A uvicorn server that ends with code 0 when it is told to end."""

    together: Sequence[Server] = ()  # those that end with it

    def stop(self) -> None:
        """Take no more requests, answer the open ones, end."""
        for one in self.together or (self,):
            one.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first signal; uvicorn's own would raise it again afterwards."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or (self.together[1:] and self is not self.together[0]):
            yield  # signals come to the main thread only, and one server is enough
            return
        signals = (signal.SIGTERM, signal.SIGINT)
        before = {one: signal.signal(one, self._told) for one in signals}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _told(self, number: int, frame: FrameType | None) -> None:
        self.stop()


def _config(app: ASGIApp) -> uvicorn.Config:
    # Its warnings are about single requests, with the time of each.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return uvicorn.Config(
        app,
        loop=_loop(),
        http=partial(HttpProtocol, awaited=AwaitedConnections()),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # nobody's address is looked at
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
    )


def _loop() -> str:
    try:
        import uvloop  # noqa: F401
    except ImportError:  # Windows has none
        return "asyncio"
    return "uvloop"


def _why(address: Address, error: OSError) -> str:
    where = f"port {address.port} of {address.host}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use; choose another with --port, or 0 for a free one"
    if error.errno == errno.EACCES:
        return f"{where} needs rights that this user has not; use a --port above 1023"
    reason = error.strerror or str(error)
    return f"cannot listen on {where}: {reason}; give an address of this machine"
