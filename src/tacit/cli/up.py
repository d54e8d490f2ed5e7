"""`tacit up`: a federation on one machine, from nothing to a published model."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Changes, Json
from tacit.errors import MissingExtra, Refused
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.experiment.settings import Experiment
    from tacit.service.federation.one_machine import Trial

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

    Example: tacit up --out federation

    Then, elsewhere: tacit client join http://127.0.0.1:8000 --history
    federation/history.csv; tacit client recommend
    """
    settings = _experiment(experiment, changes)
    try:
        from tacit.service.federation.one_machine import Trial
        from tacit.service.relay.one_machine import RelayTrial
    except ImportError as error:
        raise MissingExtra(error.name or "starlette", "serve") from error
    from tacit.experiment.assemble import assemble
    from tacit.experiment.needs import refuse_few_rounds

    refuse_few_rounds(settings)
    with console.Bar("up") as bar:
        bar.say("preparing the data")
        assembled = assemble(settings, progress=bar.texts)
        kind = Trial if settings.privacy.channel == "two_servers" else RelayTrial
        trial = kind.prepared(assembled, out, clients=clients, port=port)
        bar.say(f"starting {', '.join(trial.roles)} on {trial.url}")
        with trial.running():
            found = trial.play(told=bar.say, counted=bar.step)
            if not found["is_published"]:
                whys = [one["why"] for one in found["rounds"] if one["why"]]
                whys += [found["withheld"]] if found["withheld"] else []
                raise Refused(f"no model was published: {'; '.join(whys)}")
            _tell(trial, found, json=json)
            if not once and not json:
                console.note("serving until Ctrl-C")
                _wait()


def _wait() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        console.note("stopped")


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


def _tell(trial: Trial, found: dict[str, Any], *, json: bool) -> None:
    """Print what was published, what it tells, and how to go on."""
    from tacit.documents import read_document
    from tacit.experiment.build_report import statement_of
    from tacit.reporting.guarantees import in_short
    from tacit.runtime.run import RunDirectory
    from tacit.service.federation.one_machine import TICKET

    result = read_document(RunDirectory(trial.published).result)
    if json:
        told = {"url": trial.url, "run": trial.published, "clients": trial.clients}
        console.print_json({**told, "status": found, "epsilons": result["epsilons"]})
        return
    out = console.out()
    out.print(f"{trial.url}: the model of {trial.clients:,} clients is published")
    out.print("a trial: one machine is both operators, so the server's view is open")
    console.tell(in_short(map(statement_of, result["epsilons"]), console.width()))
    out.print(f"the published run: {shown(str(trial.published))}")
    out.print(f"the operator's page: {trial.page}")
    history, seen = (trial.folder / f"{one}.csv" for one in ("history", "impressions"))
    if history.exists():
        out.print("in another terminal:")
        files = f"--history {shown(str(history))}"
        if seen.exists():
            files += f" --impressions {shown(str(seen))}"
        if (trial.folder / TICKET).exists():
            files += f" --ticket {(trial.folder / TICKET).read_text()}"
        out.print(f"  tacit client join {trial.url} {files}")
        out.print("  tacit client recommend")
