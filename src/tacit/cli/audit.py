"""`tacit audit`: does the code do what its account says?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Json


def audit(
    name: Annotated[
        str,
        typer.Argument(
            metavar="METHOD|RUN",
            help="An installed method such as gram, or a run directory.",
            show_default=False,
        ),
    ],
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also every other channel, groups, one machine, phases, samplers and "
            "ways of being served that there are: minutes.",
        ),
    ] = False,
    leaks: Annotated[
        bool,
        typer.Option(
            "--leaks",
            help="Also run the attacks, each with the mechanism off and on.",
        ),
    ] = False,
    page: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The HTML page that --leaks writes."),
    ] = Path("leaks.html"),
    seed: Annotated[
        int, typer.Option(min=0, help="The seed of the audit's own random draws.")
    ] = 0,
    json: Json = False,
) -> None:
    """Compare what a method or a run claims with what its code does.

    Canaries are planted before `privatize` and looked for in what the server sees, and
    reports of clients are compared for extreme inputs. In a run directory the answer is
    also written to audit.json. The last lines say what was looked at, and what was not.
    The exit code is 1 if a check fails. A passed audit is no proof.

    Example: tacit audit gram --leaks
    """
    from tacit.experiment.auditing import audit_named

    with console.Bar("audit") as bar:
        document = audit_named(
            name, seed=seed, looks_at_all=everything, progress=bar.advance
        )
    if leaks:
        # Attacks run on invented users, so they are not part of a run's audit.json.
        document["leaks"] = _attacks(document["method"], seed, page)
    if json:
        console.print_json(document)
    else:
        _print(document)
    if not document["ok"]:
        raise typer.Exit(1)


def _attacks(method: str, seed: int, page: Path) -> list[dict[str, Any]]:
    from tacit.attacks import leaks
    from tacit.files import write_atomically
    from tacit.reporting.leaks import render

    console.note("audit: attacks with the mechanism off and on")
    found = [finding.to_json() for finding in leaks.run(method=method, seed=seed)]
    write_atomically(page, render(found).encode())
    console.note(f"audit: wrote {page}")
    return found


def _print(document: dict[str, Any]) -> None:
    from tacit.reporting import audit
    from tacit.reporting.tables import to_rich

    out = console.out()
    for table in audit.check_tables(document):
        out.print(to_rich(table))
    for line in audit.notes(document):
        out.print(line, markup=False)
    for question, table in audit.leak_tables(document):
        out.print(question, markup=False)
        out.print(to_rich(table))
    out.print(audit.summary(document), markup=False)
