"""`tacit report`: a run as one static HTML page."""

from __future__ import annotations

from typing import Annotated

import typer

from tacit.cli import console
from tacit.cli.options import Json, RunPath
from tacit.text import shown


def report(
    run: RunPath,
    user: Annotated[
        str | None,
        typer.Option(
            help="The id of a user whose list is shown as well.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write report.html into a finished run: one file that opens without a network."""
    from tacit.experiment.build_report import Finished, write_report
    from tacit.experiment.saved_run import SavedRun

    path = write_report(Finished.saved(SavedRun.at(run)), user=user)
    if json:
        console.print_json({"report": path})
    else:
        console.out().print(shown(str(path)))
