"""`tacit reproduce`: published tables beside ours."""

from __future__ import annotations

from typing import Annotated

import typer

from tacit.cli import console
from tacit.cli.options import Json


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(metavar="PAPER", help="Such as privrec.", show_default=False),
    ],
    table: Annotated[
        int | None,
        typer.Option(help="Its number in the paper; all if left out."),
    ] = None,
    json: Json = False,
) -> None:
    """Show a paper's tables: published, reproduced literally, and provable.

    The exit code is 1 if a published figure could not be reproduced.
    """
    from tacit.reproduction import reproduce as make

    console.note("computing …")
    found = make(paper, table=table)
    if json:
        console.print_json(found)
    else:
        _print(found)
    if not all(row.ok for t in found.tables for row in t.rows):
        raise typer.Exit(1)


def _print(found: object) -> None:
    from rich.table import Table

    from tacit.reproduction.tables import Reproduction

    assert isinstance(found, Reproduction)
    out = console.out()
    for table in found.tables:
        shown = Table("", "published", "as published", "provable", "", title=table.name)
        for row in table.rows:
            numbers = [
                "–" if x is None else f"{x:.4f}"
                for x in (row.published, row.paper, row.sound)
            ]
            shown.add_row(row.label, *numbers, "same" if row.ok else "DIFFERS")
        out.print(shown)
    for claim in found.claims:
        verdict = "holds" if claim.ok else "does not hold"
        out.print(f"{claim.text}: {verdict}; {claim.evidence}", markup=False)
