"""`tacit reproduce`: published tables beside ours."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tacit.cli import console
from tacit.cli.options import Json, RetryDiverged

if TYPE_CHECKING:
    from tacit.reporting.tables import Table
    from tacit.reproduction.estimates import Estimate
    from tacit.reproduction.study import Scale
    from tacit.reproduction.tables import ReproducedTable, Reproduction, Row

_BESIDE = (
    "popularity",
    "MF-NP",
    "random",
    "printed rate",
    "hr@2",
    "hr@5",
    "shown in top 10",
    "untrained",
    "one list",
    "one list, untrained",
    "MRR",
    "nDCG@5",
    "nDCG@10",
    "bytes up",
    "bytes down",
    "ms",
    "se over seeds",
)  # the rest is in the documents
_NOTHING = "–"  # a figure that there is not
_DIVERGED = "diverged"  # one of a training that left the numbers


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            metavar="PAPER",
            help="The folder of its study, such as privrec or dpvae.",
            show_default=False,
        ),
    ],
    table: Annotated[
        str | None,
        typer.Option(
            help="Its number in the paper, or a name such as frontier; all if left out."
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="smoke: seconds, on an invented world; quick: minutes; full: hours, "
            "as large as the paper."
        ),
    ] = "quick",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the answer and its charts into this directory. Runs are kept "
            "in it as they are made: the same command, once stopped, goes on from them."
        ),
    ] = None,
    studies: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder of studies; reproductions/ here or in the checkout if "
            "left out.",
            show_default=False,
        ),
    ] = None,
    estimate: Annotated[
        bool,
        typer.Option(
            help="Print how long it would take on this machine, and stop. A few "
            "rounds of each kind of run are trained for it. With --scale full the "
            "same is printed first."
        ),
    ] = False,
    retry_diverged: RetryDiverged = False,
    json: Json = False,
) -> None:
    """Show a paper's tables: published, reproduced literally, and as we would.

    The exit code is 1 if a figure differs from the published one without a reason.
    """
    from tacit import check
    from tacit.reproduction import estimate as time
    from tacit.reproduction import reproduce as make
    from tacit.reproduction.study import SCALES

    check.one_of(SCALES, scale=scale)
    asked: dict[str, Any] = {
        "table": table,
        "scale": cast("Scale", scale),
        "out": out,
        "studies": studies,
        "retry_diverged": retry_diverged,
    }
    needed = None
    try:
        if estimate or scale == "full":
            with console.Bar(f"timing {paper}") as bar:
                needed = time(paper, watch=bar, **asked)
        if estimate and needed is not None:
            _print_estimate(needed, as_json=json)
            return
        if needed is not None:
            console.note(needed.text)
        with console.Bar(f"reproducing {paper}") as bar:
            found = make(paper, watch=bar, **asked)
    except KeyboardInterrupt:
        kept = (
            "nothing is kept without --out"
            if out is None
            else "the same command goes on"
        )
        console.note(f"stopped; {kept}.")
        raise
    document = {**found.to_json(), "estimate": needed and needed.to_json()}
    if out is not None:
        _write(found, document, paper, out)
    if json:
        console.print_json(document)
    else:
        _print(found)
    if found.unexplained:
        raise typer.Exit(1)


def _print_estimate(needed: Estimate, *, as_json: bool) -> None:
    from tacit.reporting.terminal import wrapped

    if as_json:
        console.print_json({"estimate": needed.to_json()})
    else:
        console.tell(wrapped(needed.text, console.width()))


def _write(
    found: Reproduction, document: dict[str, Any], paper: str, out: Path
) -> None:
    """The same document as `--json`, and a page with the charts."""
    # Here, because `json` is the name of an option above.
    import json

    from tacit.files import write_atomically
    from tacit.reproduction.page import render

    text = json.dumps(document, indent=2, ensure_ascii=False)
    write_atomically(out / f"{paper}.json", (text + "\n").encode())
    write_atomically(out / f"{paper}.html", render(found, paper).encode())
    console.note(f"wrote {paper}.json and {paper}.html into {out}")


def _print(found: Reproduction) -> None:
    from tacit.reporting.terminal import wrapped

    width = console.width()
    for table in found.tables:
        _print_table(table)
    for claim in found.claims:
        verdict = "holds" if claim.ok else "does not hold"
        console.tell(
            wrapped(f"{claim.text}: {verdict}; {claim.evidence}", width, later="    ")
        )
    for sentence in found.diverged:
        console.tell(wrapped(f"DIVERGED: {sentence}", width, later="    "))
    rows = [row for table in found.tables for row in table.rows]
    reasons = {r.reason for r in rows if r.reason and not r.has_diverged}
    for reason in sorted(reasons):
        console.tell(wrapped(f"DIFFERS: {reason}", width, later="    "))


def _print_table(table: ReproducedTable) -> None:
    from tacit.reporting.tables import to_rich

    console.out().print(to_rich(_table(table)))


def _table(found: ReproducedTable) -> Table:
    """One line per row of the paper; a column in which nothing stands is left out."""
    from tacit.reporting.tables import Table

    rows = found.rows
    columns = {
        "published": [_number(row.published) for row in rows],
        "paper mode": [_number(row.paper) for row in rows],
        "sound mode": [_number(row.sound) for row in rows],
        "verdict": [_verdict(row) for row in rows],
        **{name: [_number(row.beside.get(name)) for row in rows] for name in _BESIDE},
        "spent": [row.budget for row in rows],
    }
    told = {n: cells for n, cells in columns.items() if {*cells} - {"", _NOTHING}}
    lines = zip((row.label for row in rows), *told.values(), strict=True)
    texts = {"verdict", "spent"}
    numeric = frozenset(i for i, name in enumerate(told, 1) if name not in texts)
    return Table(found.name, ("", *told), tuple(lines), numeric)


def _verdict(row: Row) -> str:
    if row.has_diverged:
        return _DIVERGED
    if not row.ok:
        return "DIFFERS"
    return "" if row.published is None else "same"


def _number(value: float | None) -> str:
    if value is None:
        return _NOTHING
    if math.isnan(value):
        return _DIVERGED
    # From 100 on it is a count or an epsilon that protects nobody.
    return f"{value:,.0f}" if value >= 100 else f"{value:.4f}"
