"""The commands of `tacit serve` for a sum over two servers: keys, roles, status."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tacit.cli import console
from tacit.cli.options import Json
from tacit.errors import MissingExtra, Refused
from tacit.text import nth_round

if TYPE_CHECKING:
    from tacit.service.federation.services import Listening
    from tacit.service.server import Server

Config = Annotated[
    Path,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The settings of this role, as TOML; docs/operators.md has examples.",
        show_default=False,
    ),
]
Restored = Annotated[
    bool,
    typer.Option(
        "--restored",
        help="The machine was put back from a snapshot: every open round is void.",
    ),
]


def keys(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder for the new files.", show_default=False
        ),
    ],
    secret: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Also make NAME.secret, which two services share; can be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Make an operator's signing key, and secrets to share.

    signing.key stays on this machine, signing.pub goes to the other operators and to
    the coordinator. A secret goes to the one other service of its pair, by a way that
    nobody else reads. Nothing that is there is replaced.

    Example: tacit serve keys etc --secret coordinator --secret pair
    """
    with needs_extra():
        from tacit.service.federation.operator_keys import make_secret, make_signing_key
    public = make_signing_key(folder).hex()
    made = [folder / f"{name}.secret" for name in secret]
    for path in made:
        make_secret(path)
    if json:
        told = {"public_key": public, "secrets": [str(path) for path in made]}
        console.print_json(told)
        return
    console.out().print(f"public signing key: {public}")
    for path in (folder / "signing.key", *made):
        console.out().print(f"{path}: keep it to yourself and to its pair")


def leader(config: Config, restored: Restored = False, json: Json = False) -> None:
    """Run a leader: it takes reports, passes sealed seeds on, publishes noisy halves.

    It sees who reports, and uniform numbers. Ends with SIGTERM or Ctrl-C; what was
    acknowledged is on both disks.
    """
    _aggregator("leader", config, is_restored=restored, json=json)


def helper(config: Config, restored: Restored = False, json: Json = False) -> None:
    """Run a helper, which must belong to another operator than the leader.

    It sees sealed seeds and no client's address. Ends with SIGTERM or Ctrl-C.
    """
    _aggregator("helper", config, is_restored=restored, json=json)


def _aggregator(
    role: Literal["leader", "helper"], config: Path, *, is_restored: bool, json: bool
) -> None:
    with needs_extra():
        from tacit.service.federation.services import serve_aggregator
        from tacit.service.federation.settings import AggregatorSettings, read_settings
        from tacit.service.json_log import log_json_lines
    settings = read_settings(config, AggregatorSettings)
    log_json_lines()
    if settings.role != role:
        raise Refused(
            f"{config} is the file of a {settings.role}; run it with: tacit serve "
            f"{settings.role} --config {config}"
        )
    serve_aggregator(settings, is_restored=is_restored, started=teller(role, json))
    console.note(f"{role} stopped; open requests were answered")


def coordinator(config: Config, json: Json = False) -> None:
    """Run a coordinator: it opens rounds, adds up, and publishes the model.

    It sees both noisy sums and how many reported. When the run is over it goes on
    serving the model. Ends with SIGTERM or Ctrl-C, and goes on where it was.
    """
    with needs_extra():
        from tacit.service.federation.services import serve_coordinator
        from tacit.service.federation.settings import CoordinatorSettings, read_settings
        from tacit.service.json_log import log_json_lines
    settings = read_settings(config, CoordinatorSettings)
    log_json_lines()
    serve_coordinator(settings, started=teller("coordinator", json))
    console.note("coordinator stopped; its run goes on when it is started again")


def tickets(
    config: Config,
    count: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="The number of new tickets.")
    ] = 1,
    json: Json = False,
) -> None:
    """Hand out tickets of a leader: each lets one client report once per round.

    A leader asks for them if its settings have limits.needs_tickets = true. It keeps
    digests only: whoever loses a ticket needs another one.
    """
    with needs_extra():
        from tacit.service.federation.settings import AggregatorSettings, read_settings
        from tacit.service.federation.tickets import hand_out
    settings = read_settings(config, AggregatorSettings)
    made = hand_out(settings.folder, count)
    if json:
        console.print_json({"tickets": made})
        return
    console.tell(made)


def status(config: Config, json: Json = False) -> None:
    """Show where the run of a coordinator is, as its operator may see it.

    Counts are rounded down to 50 and hidden below the round's minimum.
    """
    found = asked(config, "GET", "/v1/status")
    if json:
        console.print_json(found)
        return
    console.tell(status_lines(found))


def status_lines(found: dict[str, Any]) -> list[str]:
    """What the status of a run says, line by line."""
    n = len(found["rounds"])
    lines = [
        found["state"],
        f"run {found['run']}: {n} of at most {found['rounds_planned']} rounds",
    ]
    for one in found["rounds"]:
        reports = "fewer than the minimum"
        if one["reports"] is not None:
            reports = f"at least {one['reports']:,}"
        lines.append(
            f"  {nth_round(one['round'])}, {one['leaf']}: {reports} reports; "
            f"{one['meaning']}"
        )
        if one["why"]:
            lines.append(f"    {one['why']}")
    return lines


def asked(config: Path, method: str, path: str) -> dict[str, Any]:
    """What a running coordinator answers its own operator."""
    with needs_extra():
        import httpx

        from tacit.service.federation.settings import (
            CoordinatorSettings,
            address,
            read_secret,
            read_settings,
        )
    settings = read_settings(config, CoordinatorSettings)
    url = address(settings.private, "private").url
    token = read_secret(settings.secret).decode()
    try:
        found = httpx.request(
            method,
            url + path,
            headers={"authorization": f"Bearer {token}"},
            timeout=30,
            trust_env=False,  # the secret is for this coordinator alone
        )
    except httpx.HTTPError as error:
        raise Refused(
            f"no coordinator answers at {url}: {error}; start it with: tacit serve "
            f"coordinator --config {config}"
        ) from None
    if found.status_code >= 400:
        raise Refused(f"the coordinator at {url} refuses: {found.text[:300]}")
    answer: dict[str, Any] = found.json()
    return answer


def teller(role: str, json: bool) -> Any:
    """What prints the addresses of a service just before it takes requests."""

    def tell(listening: Listening, _: Server) -> None:
        urls = {n: "http://{}:{}".format(*s.getsockname()[:2]) for n, s in listening}
        if json:
            console.print_json({"role": role, **urls})
        else:
            console.tell(f"{role}, {name}: {url}" for name, url in urls.items())
        sys.stdout.flush()  # a pipe would show the addresses at the end only

    return tell


@contextlib.contextmanager
def needs_extra() -> Iterator[None]:
    """Imports that need the extra `serve`; says so where it is missing."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(error.name or "starlette", "serve") from error
