"""`tacit up`: a federation on one machine, from nothing to a published model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Changes, Json
from tacit.cli.signals import like_ctrl_c
from tacit.errors import MissingExtra, Refused
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.experiment.settings import Experiment
    from tacit.service.federation.trial import Trial

WORLD: dict[str, Any] = {  # as in the demo, for everybody who has no data at hand
    "data": {"source": "synthetic", "validation": 150, "test": 300},
    "method": {"name": "gram"},
    "privacy": {
        "mechanism": "central",
        "channel": "two_servers",
        "target_epsilon": 4.0,
        "delta": 1e-6,
        "min_contributors": 1000,
    },
    "run": {"rounds": 3},
}


_CHANNELS = ("two_servers", "shuffle")


@like_ctrl_c()
def up(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help="An experiment over the channel two_servers or shuffle.",
            show_default="a world of invented users",
        ),
    ] = None,
    clients: Annotated[
        int | None,
        typer.Option(
            help="The number of simulated clients.",
            show_default="all users who train",
        ),
    ] = None,
    seats: Annotated[
        int,
        typer.Option(
            min=0,
            help="The number of real clients that every round waits for.",
        ),
    ] = 0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of the trial: a new one.")
    ] = Path("federation"),
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="The port of the coordinator, or collector; 0 takes a free one.",
        ),
    ] = 8000,
    once: Annotated[
        bool,
        typer.Option("--once", help="End when the model is published."),
    ] = False,
    changes: Changes = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Run a whole federation on this machine: two operators, clients, a model.

    Leader, helper and coordinator are processes of their own; over the channel shuffle
    a relay and a collector are. Simulated clients seal their reports and send them
    over HTTP. When the model is published, its address is
    printed, and real clients can join and rank with it. It is a trial: one machine
    is both operators, and the statements say so. DIR has the settings
    files of all roles, as two operators would have them.

    With --seats, every round also waits for so many real clients, whose histories
    count like all others.

    It ends as one: after Ctrl-C, SIGTERM or SIGHUP, or when one of its processes has
    died, none is left.

    Example: tacit up --seats 1

    Then, elsewhere: tacit client join http://127.0.0.1:8000 --history
    federation/history.csv --wait; tacit client recommend --wait
    """
    settings = _experiment(experiment, changes)
    try:
        from tacit.service.federation.one_machine import TwoServersTrial
        from tacit.service.relay.one_machine import RelayTrial
    except ImportError as error:
        raise MissingExtra(error.name or "starlette", "serve") from error
    from tacit.experiment.assemble import assemble
    from tacit.experiment.needs import refuse_few_rounds

    refuse_few_rounds(settings)
    with console.Bar("up") as bar:
        bar.say("preparing the data")
        assembled = assemble(settings, progress=bar.texts)
        kinds: tuple[type[Trial], ...] = (TwoServersTrial, RelayTrial)
        kind = dict(zip(_CHANNELS, kinds, strict=True))[settings.privacy.channel]
        trial = kind.prepared(assembled, out, clients=clients, seats=seats, port=port)
        bar.say(f"starting {', '.join(trial.roles)} on {trial.url}")
        with trial.running():
            _tell_seats(trial, json=json)
            status = trial.play(told=bar.say, counted=bar.step)
            _tell(trial, status, json=json)
            if not once and not json:
                console.note("serving until Ctrl-C")
                _serve(trial)


def _serve(trial: Trial) -> None:
    try:
        trial.wait()
    except KeyboardInterrupt:
        console.note("stopped")


def _tell_seats(trial: Trial, *, json: bool) -> None:
    """Print how real clients take their seats, before any round waits for them."""
    seats = trial.cast.seats
    if not seats:
        return
    whom = "1 real client" if seats == 1 else f"{seats} real clients"
    lines = [f"every round waits for {whom}; in another terminal:"]
    for number in range(seats):
        command = f"  {_join_command(trial, number)} --wait"
        # Without one of its own each client would take the system's folder.
        own = trial.folder / f"client-{number + 1}"
        lines.append(command + (f" --folder {shown(str(own))}" if seats > 1 else ""))
    for line in lines:
        if json:
            console.note(line)
        else:
            console.out().print(line)
    sys.stdout.flush()  # a pipe would show the commands at the end only


def _join_command(trial: Trial, seat: int) -> str:
    command = f"tacit client join {trial.url}"
    for option in ("history", "impressions"):
        path = trial.folder / f"{option}.csv"
        # A data set without a test part has no user whose history is an example.
        if path.exists() or option == "history":
            command += f" --{option} {shown(str(path)) if path.exists() else 'FILE'}"
    if trial.tickets and seat < trial.cast.seats:
        command += f" --ticket {trial.tickets[seat]}"
    return command


def _experiment(path: Path | None, changes: list[str]) -> Experiment:
    from tacit.experiment.settings import check_experiment, read_experiment

    if path is not None:
        found = read_experiment(path, changes)
    elif changes:
        raise Refused("--set changes an experiment; name one")
    else:
        found = check_experiment(WORLD)
    if found.privacy.channel not in _CHANNELS:
        raise Refused(
            f"privacy.channel = '{found.privacy.channel}' has no two operators; add "
            "--set privacy.channel=two_servers"
        )
    return found


def _tell(trial: Trial, status: dict[str, Any], *, json: bool) -> None:
    """Print what was published, what it tells, and how to go on."""
    from tacit.documents import read_document
    from tacit.experiment.build_report import statement_of
    from tacit.reporting.guarantees import in_short
    from tacit.runtime.run import RunDirectory

    result, cast = read_document(RunDirectory(trial.published).result), trial.cast
    if json:
        who = {"clients": cast.simulated, "seats": cast.seats}
        told = {"url": trial.url, "run": trial.published, **who}
        console.print_json({**told, "status": status, "epsilons": result["epsilons"]})
        return
    out = console.out()
    among = f", {cast.seats:,} of them real," if cast.seats else ""
    out.print(f"{trial.url}: the model of {cast.present:,} clients{among} is published")
    out.print("a trial: one machine is both operators, so the server's view is open")
    console.tell(in_short(map(statement_of, result["epsilons"]), console.width()))
    out.print(f"the published run: {shown(str(trial.published))}")
    out.print(f"the operator's page: {trial.page}")
    if (trial.folder / "history.csv").exists() and not cast.seats:
        out.print("to rank with it in another terminal; nothing is contributed:")
        out.print(f"  {_join_command(trial, seat=0)}")
        out.print("  tacit client recommend")
