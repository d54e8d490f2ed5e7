"""The commands of `tacit serve` for local reports: a relay, and a collector."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import console
from tacit.cli.federation import Restored, needs_extra, teller
from tacit.cli.options import Json
from tacit.text import nth_round

Config = Annotated[
    Path,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The settings of this role, as TOML; docs/relay.md has examples.",
        show_default=False,
    ),
]


def relay(config: Config, restored: Restored = False, json: Json = False) -> None:
    """Run a relay: it takes sealed reports, mixes and forwards them, and opens none.

    It must belong to another operator than the collector. It sees who reports, and
    nothing of what. Below the minimum it forwards nothing and destroys everything.
    Ends with SIGTERM or Ctrl-C; what was acknowledged is on the disk.
    """
    with needs_extra():
        from tacit.service.relay.services import serve_relay
        from tacit.service.relay.settings import read_relay
    settings = read_relay(config)
    serve_relay(settings, is_restored=restored, started=teller("relay", json))
    console.note("relay stopped; open requests were answered")


def collector(config: Config, json: Json = False) -> None:
    """Run a collector: it opens epochs, adds up what a relay mixed, and publishes.

    It sees what was reported, and neither by whom nor which reports came together.
    When the run is over it goes on serving the model. Ends with SIGTERM or Ctrl-C, and
    goes on where it was.
    """
    with needs_extra():
        from tacit.service.relay.services import serve_collector
        from tacit.service.relay.settings import read_collector
    serve_collector(read_collector(config), started=teller("collector", json))
    console.note("collector stopped; its run goes on when it is started again")


def relay_tickets(
    config: Config,
    count: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="The number of new tickets.")
    ] = 1,
    json: Json = False,
) -> None:
    """Hand out tickets of a relay: each lets one client report once per round.

    A relay asks for them if its settings have limits.needs_tickets = true. It keeps
    digests only, and the collector never sees one.
    """
    with needs_extra():
        from tacit.service.federation.tickets import hand_out
        from tacit.service.relay.relay_store import FILE_NAME
        from tacit.service.relay.settings import read_relay
    made = hand_out(read_relay(config).folder, count, file_name=FILE_NAME)
    if json:
        console.print_json({"tickets": made})
        return
    console.tell(made)


def relay_destroy(
    config: Config,
    run: Annotated[
        str, typer.Option(help="The run, as the relay's page has it: its first digits.")
    ],
    round: Annotated[
        int, typer.Option(min=1, help="The round, as the relay's page counts them.")
    ],
    json: Json = False,
) -> None:
    """Destroy all reports of one round of a relay that is running.

    For a round that its collector never takes. Nothing of it is forwarded any more, and
    its collector voids it. Users have spent their budget on it nevertheless.
    """
    with needs_extra():
        from tacit.service.relay.destroying import destroy
        from tacit.service.relay.settings import read_relay
    number = round - 1  # files count from 0
    state = destroy(read_relay(config), run, number)
    if json:
        console.print_json({"run": run, "round": number, "state": state})
        return
    console.note(f"{nth_round(number)} of run {run} is {state}")
